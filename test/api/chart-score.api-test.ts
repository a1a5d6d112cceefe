// SPDX-License-Identifier: Apache-2.0
// What a kept set of rules, kube-score's, says of the rendered chart: nothing but what is declined here, with why.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { run } from "../support/process.ts";
import { havePartsOrSkip, partOf } from "./binaries.ts";
import { VALUE_SETS } from "./chart-manifests.ts";
import { CHART, mustHelm } from "./chart-release.ts";

/** Rules of a newer kind, which have to be asked for. */
const OPTIONAL = ["container-seccomp-profile", "container-ports-check"];

/** What it says -> why it is so, of whom. */
const DECLINED: readonly {
  readonly says: string;
  readonly of: readonly string[];
  readonly because: string;
}[] = [
  {
    says: "CPU limit is not set",
    of: ["agent", "issuer", "webhook"],
    because:
      "a limit of the processor makes reviews and ADDs late; requests say what it takes, memory is limited",
  },
  {
    says: "Ephemeral Storage limit is not set",
    of: ["agent", "issuer", "webhook"],
    because:
      "root file systems are read-only and no emptyDir is on disk: only logs are written, which the kubelet rotates",
  },
  {
    says: "Ephemeral Storage request is not set",
    of: ["agent", "issuer", "webhook"],
    because: "as its limit",
  },
  {
    says: "ImagePullPolicy is not set to Always",
    of: ["agent", "issuer", "webhook"],
    because: "an agent has to start again while the registry is away; image.digest says which image it is",
  },
  {
    says: "The container is running with a low user ID",
    of: ["agent"],
    because: "the nodes' folders belong to root",
  },
  { says: "The container running with a low group ID", of: ["agent"], because: "as its user" },
  {
    says: "The pod does not have a matching NetworkPolicy",
    of: ["agent"],
    because: "it is on the nodes' network, of which policies say nothing, and listens on the loopback",
  },
  {
    says: "The pod does not have a matching egress NetworkPolicy",
    of: ["issuer", "webhook"],
    because: "the API server's address is the cluster's, and often no pod's that a policy could name",
  },
];

/** One finding as kube-score writes it for machines: `[CRITICAL] berth-agent/ns apps/v1/DaemonSet: (agent) words`. */
const FINDING = /^\[(?:CRITICAL|WARNING)\] berth-(?<who>[a-z]+)\/\S+ \S+: (?:\([a-z]+\) )?(?<says>.*)$/;

if (havePartsOrSkip(["kube-score", "helm"])) {
  describe("kube-score", () => {
    const seen = new Set<string>();

    for (const [title, values] of Object.entries(VALUE_SETS)) {
      it(`finds nothing in the chart but what is declined: ${title}`, async () => {
        const text = await mustHelm(["template", "berth", CHART, "--namespace", "berth-system"], { values });
        const optional = OPTIONAL.flatMap((name) => ["--enable-optional-test", name]);
        const args = ["score", "--kubernetes-version", "v1.32", "--output-format", "ci", ...optional, "-"];
        const { rc, stdout, stderr } = await run(partOf("kube-score"), args, { stdin: { text } });
        // 1: it found something
        assert.ok((rc === 0 || rc === 1) && stdout.includes("[OK]"), stderr);
        const lines = stdout.split("\n").filter((line) => /^\[(CRITICAL|WARNING)\]/.test(line));
        const left = lines.filter((line) => {
          const { who = "", says = "" } = FINDING.exec(line)?.groups ?? {};
          const row = DECLINED.find((each) => each.says === says && each.of.includes(who));
          if (row !== undefined) seen.add(`${says}: ${who}`);
          return row === undefined;
        });
        assert.deepEqual(left, []);
      });
    }

    it("still says all that is declined", () => {
      const declined = DECLINED.flatMap(({ says, of }) => of.map((who) => `${says}: ${who}`));
      assert.deepEqual(
        declined.filter((each) => !seen.has(each)),
        [],
      );
    });
  });
}
