// SPDX-License-Identifier: Apache-2.0
// Claims made by hand for what has pods of other names, which ask for nothing themselves.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { DB_POOL } from "../../../test/support/fixtures.ts";
import { claimObject, deniedAs, type Json, ownedBy, pod } from "../../../test/support/objects.ts";
import { admitPod, createPod, send } from "../../../test/support/reviewing.ts";
import { openWorld } from "../../../test/support/world.ts";
import { assignedClaim, claimsOf } from "../testing/claims-bench.ts";
import { ask } from "../testing/node-world.ts";

const INDEX = "batch.kubernetes.io/job-completion-index";
const KINDS: readonly (readonly [string, string, (name: string) => Json])[] = [
  [
    "a machine",
    "win11",
    (name) => pod(name, { owner: ownedBy("VirtualMachineInstance", "win11", "kubevirt.io/v1") }),
  ],
  [
    "an index of a Job",
    "train-0",
    (name) => pod(name, { annotations: { [INDEX]: "0" }, owner: ownedBy("Job", "train", "batch/v1") }),
  ],
];

describe("a claim made by hand", () => {
  for (const [what, claim, podOf] of KINDS) {
    it(`serves the pods of ${what}, one after the other`, async () => {
      await using world = await openWorld({ pools: [DB_POOL] });
      const made = claimObject(claim, { request: { addresses: ["10.20.0.70"] } });
      assert.equal(deniedAs(await send(world, "/validate/claims", made)), "");
      const claims = claimsOf(world);
      for (const name of ["first-x7k2p", "second-p2k7x"]) {
        const kept = await createPod(world, podOf(name), name, `uid-${name}`);
        const got = await assignedClaim(claims, ask(name));
        assert.deepEqual(
          got.addresses.map(({ address }) => address),
          ["10.20.0.70"],
        );
        const { pod: it, attachment } = ask(name);
        await claims.attached({ claim: `shop/${claim}`, pod: it, attachment });
        assert.match(await admitPod(world, podOf("third-k2x7p")), /^SET_EXHAUSTED|^CLAIM_BUSY/);
        await claims.detached({ claim: `shop/${claim}`, pod: it, attachment });
        await send(world, "/validate/pods", kept, { operation: "DELETE" });
      }
    });
  }
});
