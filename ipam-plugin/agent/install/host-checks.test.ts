// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { missingFromHost } from "./host-checks.ts";

const ROOT = "377 264 0:136 / / ro,relatime master:90 - overlay overlay rw,lowerdir=/a,upperdir=/b";
const OWN_RUN = "384 377 0:144 / /run rw,nosuid - tmpfs tmpfs rw,size=65536k,mode=755";
const mounted = (point: string, optional: string) =>
  `390 377 0:25 /netns ${point} ro,relatime ${optional}- tmpfs none rw`;
const SHARED_CLOCK = "monotonic           0         0\nboottime            0         0\n";

const UNSEEN = "the sandboxes of the host cannot be seen";
const ALIKE = "network namespaces that are made from now on cannot be told apart";
const OWN_CLOCK = "the agent is in a time namespace of its own";

const WELL = {
  mounts: [ROOT, mounted("/run/netns", "master:5 ")] as readonly string[],
  timeOffsets: SHARED_CLOCK,
  hasNamedNetns: true,
};
type Case = readonly [name: string, seen: Partial<typeof WELL>, expected: readonly string[]];

describe("what the agent's pod lacks", () => {
  const cases: readonly Case[] = [
    ["nothing with the host's folder", { mounts: [ROOT, mounted("/run/netns", "master:5 ")] }, []],
    ["nothing with the host's /run", { mounts: [ROOT, mounted("/run", "shared:5 master:6 ")] }, []],
    ["nothing where the kernel has no time namespaces", { timeOffsets: "" }, []],
    ["the folder", { mounts: [ROOT], hasNamedNetns: false }, [UNSEEN]],
    ["the folder, of which the image has one", { mounts: [ROOT] }, [UNSEEN]],
    ["the folder, under a /run of its own", { mounts: [ROOT, OWN_RUN], hasNamedNetns: false }, [UNSEEN]],
    ["the folder, beside one of a like name", { mounts: [ROOT, mounted("/run/net", "master:5 ")] }, [UNSEEN]],
    ["propagation", { mounts: [ROOT, mounted("/run/netns", "")] }, [ALIKE]],
    [
      "propagation of the mount on top",
      { mounts: [mounted("/run/netns", "master:5 "), mounted("/run/netns", "")] },
      [ALIKE],
    ],
    ["the host's clock", { timeOffsets: SHARED_CLOCK.replace("0         0", "-3         0") }, [OWN_CLOCK]],
    ["the host's clock, by nanoseconds", { timeOffsets: "monotonic  0  500\nboottime 0 0\n" }, [OWN_CLOCK]],
    ["nothing by the clock that counts sleep", { timeOffsets: "monotonic 0 0\nboottime 7 0\n" }, []],
  ];
  for (const [name, seen, expected] of cases) {
    it(name, () => {
      const all = { ...WELL, ...seen };
      const lacks = missingFromHost({ ...all, mounts: `${all.mounts.join("\n")}\n` });
      assert.deepEqual(
        lacks.map(({ message }) => message),
        expected,
      );
    });
  }
});
