// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Address } from "../../../allocator/ip/address.ts";
import type { Claim } from "../../../allocator/model/claim.ts";
import type { Dialects } from "../../../allocator/model/dialect.ts";
import { claimRecord } from "../../../test/support/fixtures.ts";
import type { ObservedPod } from "../../cluster-state/observed-objects.ts";
import { asking, look, POD } from "./testing/decided-pods.ts";

describe("lookAt", () => {
  const own = claimRecord();
  const asks = (annotations: Record<string, string>, more: Partial<ObservedPod> = {}) => ({
    ...POD,
    annotations,
    ...more,
  });
  const ips = (list: string, more?: Partial<ObservedPod>) => asks({ "berth.dev/ips": list }, more);
  const owner = (name: string) => ({
    ...{ name, owner: { apiVersion: "apps/v1", kind: "StatefulSet", name: name.slice(0, -2), uid: "s2" } },
  });
  const onNet1 = claimRecord({ interfaces: { net1: ["10.20.0.70" as Address] } });
  const unreviewed: readonly (readonly [string, string, ObservedPod, Claim?, Dialects?])[] = [
    ["due", "for the address that the claim has", ips("10.20.0.70")],
    ["waits: CLAIM_CHANGED", "for another", ips("10.20.0.99")],
    ["waits: CLAIM_CHANGED", "for another, and has no node", ips("10.20.0.99", { node: "" })],
    ["waits: REQUEST_INVALID", "for what nobody can read, and has no node", ips("10.20.0.7O", { node: "" })],
    ["settled", "for the address that the claim has, and has no node", ips("10.20.0.70", { node: "" })],
    ["waits: CLAIM_CHANGED", "for one more", ips("10.20.0.70,fd00::7")],
    ["waits: CLAIM_CHANGED", "for another in another system's words", asking('["10.20.0.99"]')],
    ["settled", "another system for another of its own", asking('["172.31.9.9"]')],
    [
      "waits: CLAIM_CHANGED",
      "for any address, where all words are Berth's",
      asking('["172.31.9.9"]'),
      own,
      {},
    ],
    ["waits: REQUEST_INVALID", "for what nobody can read", ips("10.20.0.7O")],
    ["due", "for the entry of its ordinal", ips("10.20.0.70; 10.20.0.71", owner("mysql-0"))],
    [
      "waits: CLAIM_CHANGED",
      "for a list whose entry of its ordinal is another",
      ips("10.20.0.70; 10.20.0.71", owner("mysql-1")),
    ],
    ["due", "for a list that begins with its ordinal", ips("10.20.0.70; 10.20.0.71", owner("late-3"))],
    ["waits: LIST_TOO_SHORT", "for a list that ends before it", ips("10.20.0.70", owner("late-4"))],
    ["due", "for another, or any", asks({ "berth.dev/ips": "10.20.0.99", "berth.dev/fallback": "any" })],
    [
      "due",
      "for another, and is up with that of the claim",
      ips("10.20.0.99", { up: true, addresses: "10.20.0.70" }),
    ],
    [
      "waits: CLAIM_CHANGED",
      "for another, and is up with that",
      ips("10.20.0.99", { up: true, addresses: "10.20.0.99" }),
    ],
    ["due", "for an address of the pool", asks({ "berth.dev/pools": "db" })],
    ["waits: CLAIM_CHANGED", "for an address of another pool", asks({ "berth.dev/pools": "web" })],
    ["due", "for the address, wherever", ips("10.20.0.70"), onNet1],
    ["due", "for the address on the interface", ips("10.20.0.70@net1"), onNet1],
    ["waits: CLAIM_CHANGED", "for the address on another interface", ips("10.20.0.70@eth0"), onNet1],
    ["due", "for the address on its first interface", ips("10.20.0.70@eth0")],
    ["waits: CLAIM_CHANGED", "for one on a further interface", asks({ "berth.dev/pools": "db@net1" })],
  ];
  for (const [expected, title, pod, claim = own, dialects] of unreviewed) {
    it(`a pod that no review has seen asks ${title}: ${expected}`, async () => {
      const seen = await look(pod, [{ ...claim, name: pod.name }], {
        ...(dialects && { dialects }),
      });
      assert.equal(seen.kind === "waits" ? `waits: ${seen.refusal.code}` : seen.kind, expected);
    });
  }

  it("says what to do where the claim of a pod's name is not what the pod asks for", async () => {
    const seen = await look(ips("10.20.0.99"), [own]);
    assert.ok(seen.kind === "waits");
    assert.deepEqual([seen.claims, seen.settles], [["shop/mysql-0"], false]);
    assert.equal(
      seen.refusal.message,
      "claim shop/mysql-0, which is kept for pods of this name, holds 10.20.0.70, and pod shop/mysql-0, which no review has seen, asks for 10.20.0.99; delete the pod and create it again, so that it is reviewed, or ask for what the claim holds",
    );
    const pinned = await look(ips("10.20.0.70"), [own]);
    assert.deepEqual(pinned.kind === "due" && pinned.target.assigned, ["10.20.0.70"], "and nothing else");
  });
});
