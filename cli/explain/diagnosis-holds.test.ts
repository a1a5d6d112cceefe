// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { isRefusal } from "../../allocator/base/errors.ts";
import { HOLD_TIMEOUT_MS } from "../../allocator/lifecycle/hold.ts";
import { type KubeObject, readObject } from "../../allocator/manifest/kubernetes-object.ts";
import { bindingTo, claimRecord, NOW } from "../../test/support/fixtures.ts";
import { pod } from "../../test/support/objects.ts";
import { facts } from "../testing/facts.ts";
import { diagnosePod } from "./pod-diagnosis.ts";

/** A pod of the set that the claim is a slot of. */
function podOf(name: string, phase: string): KubeObject {
  const annotations = { "berth.dev/claim": "mysql-0", "berth.dev/token": `t-${name}` };
  const json = pod(name, { uid: `uid-of-${name}`, annotations, spec: { nodeName: "node-b" } });
  const read = readObject({ ...json, status: { phase } });
  assert.ok(!isRefusal(read));
  return read;
}

describe("what is said of a pod whose claim is held for another one", () => {
  const met = claimRecord({ binding: bindingTo("first", "", { token: "t-first" }) });
  const unmet = claimRecord({ binding: bindingTo("", "", { token: "t-first", podUID: "" }) });
  const running = { holder: podOf("first", "Running") };
  const late = { now: NOW + HOLD_TIMEOUT_MS };
  for (const [what, claim, over, waits] of [
    ["a pod that is there", met, { ...running, ...late }, true],
    ["a pod that has ended", met, { holder: podOf("first", "Succeeded") }, false],
    ["a pod that is gone", met, {}, false],
    ["a pod that nobody has met, in its time", unmet, {}, true],
    ["a pod that nobody has met, after its time", unmet, late, false],
    ["a pod on a host that is there", met, { place: "data", ...running, ...late }, true],
    ["a pod on a host that is not there, in its time", met, { place: "data" }, true],
    ["a pod on a host that is not there, after its time", met, { place: "data", ...late }, false],
  ] as const) {
    it(`${waits ? "waits for" : "does not wait for"} ${what}`, () => {
      const { stuck } = diagnosePod(podOf("next", "Pending"), facts(claim, over));
      assert.equal(stuck, waits);
    });
  }
});
