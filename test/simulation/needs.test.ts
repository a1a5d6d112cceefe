// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { after, describe, it } from "node:test";
import {
  ASSIGNED_ADDRESSES,
  ASSIGNED_CLAIM,
  ASSIGNED_TOKEN,
  STICKY,
} from "../../allocator/manifest/annotations.ts";
import { addrs, claimRecord, reservationsOf } from "../support/fixtures.ts";
import { pod } from "../support/objects.ts";
import { objectOf } from "./cluster.ts";
import { Disks } from "./journal-disk.ts";
import { unfairness } from "./needs.ts";
import { World } from "./world.ts";

const TOLD = { [ASSIGNED_CLAIM]: "c", [ASSIGNED_ADDRESSES]: "10.0.0.2" };
/** Of a pod that is gone; it has one address more than the next one was told. */
const CLAIM = claimRecord({
  name: "c",
  identity: { kind: "Pod", apiVersion: "v1", name: "c" },
  addresses: addrs("10.0.0.2", "fd00::5"),
  binding: { token: "", podName: "c", podUID: "u1", node: "n2", since: 0 },
  retained: { since: 0, because: "deleted" },
});

describe("a pod that waits for a claim which has other addresses than it was told", () => {
  const disks = new Disks();
  after(() => disks.close());

  const judged = async (
    annotations: Record<string, string>,
    befell: "nothing" | "brokenOff" | "givenBack",
  ) => {
    const world = new World({ disks });
    for (const reservation of reservationsOf(CLAIM)) world.records.create("reservation", reservation, 0);
    world.records.create("claim", CLAIM, 0);
    world.cluster.keep(objectOf(pod("c", { uid: "u2", annotations, spec: { nodeName: "n1" } })));
    if (befell !== "nothing") world.clients[befell].add("u2");
    const words = unfairness(world);
    await world.close();
    return words;
  };

  const IN_VAIN = "pod c/u2 waits for claim c, which c/u1 had, who is gone";

  it("is treated unfairly if its client was told that it is there", async () => {
    assert.equal(await judged(TOLD, "nothing"), IN_VAIN);
  });

  it("is refused in words if its creation broke off and it asks for nothing", async () => {
    assert.equal(await judged(TOLD, "brokenOff"), undefined);
  });

  it("is owed what it asks for although its creation broke off, and what its claim has", async () => {
    assert.equal(await judged({ ...TOLD, [STICKY]: "true" }, "brokenOff"), IN_VAIN);
    assert.equal(await judged({ ...TOLD, [ASSIGNED_ADDRESSES]: "10.0.0.2,fd00::5" }, "brokenOff"), IN_VAIN);
  });

  it("is refused in words if a person gave its claim back and it is known by a token that this one has not", async () => {
    assert.equal(await judged({ ...TOLD, [ASSIGNED_TOKEN]: "t" }, "givenBack"), undefined);
    assert.equal(await judged({ ...TOLD, [ASSIGNED_TOKEN]: "t" }, "nothing"), IN_VAIN);
    assert.equal(await judged(TOLD, "givenBack"), IN_VAIN);
  });
});
