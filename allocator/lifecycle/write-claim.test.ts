// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { applicantOf, bindingTo, claimRecord, granted, NOW } from "../../test/support/fixtures.ts";
import { requestFor } from "../demand/build-request.ts";
import { claimOf } from "./write-claim.ts";

describe("an admission", () => {
  it("is later than the binding that it comes after, whatever the clock of whoever admits says", () => {
    const identity = { kind: "Pod", apiVersion: "v1", name: "web" };
    const podIdentity = { kind: "named", claim: "web", identity } as const;
    const allocation = granted(
      requestFor(applicantOf({ podIdentity, request: { pools: ["db"] }, now: NOW })),
    );
    const admittedAt = (since: number) => {
      const known = claimRecord({ binding: { ...bindingTo("web", "node-a"), since } });
      const { addresses, nonce } = known;
      return claimOf(allocation, known, { addresses, nonce, now: NOW, seen: "pod" }).admittedAt;
    };
    assert.deepEqual([admittedAt(NOW - 500), admittedAt(NOW + 500)], [NOW, NOW + 501]);
  });

  it("is not said of a claim that is bound from its first write on: it waits for no pod", () => {
    const identity = { kind: "Pod", apiVersion: "v1", name: "web" };
    const podIdentity = { kind: "named", claim: "web", identity } as const;
    const allocation = granted(
      requestFor(applicantOf({ podIdentity, request: { pools: ["db"] }, now: NOW })),
    );
    const admittedAt = (node: string) => {
      const hold = { ...bindingTo("web", node), since: NOW - 1 };
      const to = { addresses: [], nonce: "n", now: NOW, seen: "nothing" } as const;
      return claimOf({ ...allocation, hold }, undefined, to).admittedAt;
    };
    assert.deepEqual([admittedAt("node-a"), admittedAt("")], [undefined, NOW]);
  });
});
