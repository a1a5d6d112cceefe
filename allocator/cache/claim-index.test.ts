// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { bindingTo, claimRecord, storedAs } from "../../test/support/fixtures.ts";
import type { Claim } from "../model/claim.ts";
import type { Stored } from "../store/store.ts";
import { ClaimIndex } from "./claim-index.ts";

function indexOf(...claims: readonly Partial<Claim>[]): ClaimIndex {
  const index = new ClaimIndex();
  for (const claim of claims) index.enter(storedAs("claim", claimRecord(claim)));
  return index;
}

const namesOf = (claims: readonly Stored<"claim">[]) => claims.map(({ record }) => record.name).sort();

describe("ClaimIndex", () => {
  it("finds a claim by the pod of its name, and by the one that it is bound to", () => {
    const index = indexOf(
      {},
      { name: "web-slot-0", binding: bindingTo("web-x7", "node-a") },
      { name: "web-slot-1", binding: bindingTo("", "", { token: "t" }) },
      { namespace: "bank" },
    );
    assert.deepEqual(namesOf(index.ofPod("shop", "mysql-0")), ["mysql-0"]);
    assert.deepEqual(namesOf(index.ofPod("shop", "web-x7")), ["web-slot-0"]);
    assert.deepEqual(index.ofPod("shop", ""), []);
    assert.deepEqual(index.ofPod("bank", "web-x7"), []);
  });

  it("finds a claim that changed by what it is now alone", () => {
    const index = indexOf({ binding: bindingTo("mysql-0", "node-a") }, { name: "mysql-1" });
    const moved = { binding: bindingTo("mysql-x", "node-b") };
    index.enter(storedAs("claim", claimRecord(moved)));
    assert.deepEqual(namesOf(index.onNode("node-a")), []);
    assert.deepEqual(namesOf(index.onNode("node-b")), ["mysql-0"]);
    assert.deepEqual(namesOf(index.ofPod("shop", "mysql-x")), ["mysql-0"]);
    assert.deepEqual(namesOf(index.ofWorkload("StatefulSet", "shop", "mysql")), ["mysql-0", "mysql-1"]);
  });

  it("finds one claim once, though it is bound to the pod of its name", () => {
    const index = indexOf({ binding: bindingTo("mysql-0", "node-a") });
    assert.equal(index.ofPod("shop", "mysql-0").length, 1);
  });

  it("finds the claims of a workload by kind, namespace and name", () => {
    const identity = { kind: "Deployment", apiVersion: "apps/v1", name: "mysql", slot: 0 };
    const index = indexOf({}, { name: "mysql-1" }, { name: "mysql-slot-0", identity }, { namespace: "bank" });
    assert.deepEqual(namesOf(index.ofWorkload("StatefulSet", "shop", "mysql")), ["mysql-0", "mysql-1"]);
    assert.deepEqual(namesOf(index.ofWorkload("Deployment", "shop", "mysql")), ["mysql-slot-0"]);
    assert.deepEqual(index.ofWorkload("StatefulSet", "shop", "mysql-0"), []);
  });

  it("finds the claims that are bound on a node; a hold is on none", () => {
    const promise = bindingTo("", "", { token: "t" });
    const index = indexOf(
      { binding: bindingTo("mysql-0", "node-a") },
      { name: "mysql-1", binding: bindingTo("mysql-1", "node-b") },
      { name: "mysql-2", binding: promise },
    );
    assert.deepEqual(namesOf(index.onNode("node-a")), ["mysql-0"]);
    assert.deepEqual([index.onNode(""), index.onNode("node-c")], [[], []]);
  });

  it("does not take a pod for a workload or a node of the same name", () => {
    const index = indexOf({ name: "x", identity: { kind: "pod", apiVersion: "v1", name: "y" } });
    assert.deepEqual([index.onNode("shop/x"), namesOf(index.ofPod("shop", "x"))], [[], ["x"]]);
  });

  it("has, after any changes, what is there and nothing else", () => {
    const anyClaim = fc
      .record({
        name: fc.constantFrom("a", "b", "c"),
        podName: fc.constantFrom("a", "b", ""),
        node: fc.constantFrom("x", "y", ""),
        bound: fc.boolean(),
      })
      .map(({ name, podName, node, bound }) =>
        storedAs("claim", claimRecord({ name, ...(bound ? { binding: bindingTo(podName, node) } : {}) })),
      );
    fc.assert(
      fc.property(fc.array(fc.tuple(anyClaim, fc.boolean()), { maxLength: 20 }), (steps) => {
        const index = new ClaimIndex();
        const there = new Map<string, Stored<"claim">>(); // key -> claim
        for (const [stored, stays] of steps) enterOrLeave(index, there, stored, stays);
        const fresh = new ClaimIndex();
        for (const stored of there.values()) fresh.enter(stored);
        assert.deepEqual(contentsOf(index), contentsOf(fresh));
        assert.equal(index.ofWorkload("StatefulSet", "shop", "mysql").length, there.size);
      }),
    );
  });
});

/** As the cache does it: what was there under the key leaves first. */
function enterOrLeave(
  index: ClaimIndex,
  there: Map<string, Stored<"claim">>,
  stored: Stored<"claim">,
  stays: boolean,
): void {
  const before = there.get(stored.key);
  if (before !== undefined) index.leave(before);
  there.delete(stored.key);
  if (!stays) return;
  index.enter(stored);
  there.set(stored.key, stored);
}

function contentsOf(index: ClaimIndex): unknown {
  const revisions = (claims: readonly Stored<"claim">[]) => claims.map(({ revision }) => revision).sort();
  return [
    ["a", "b", "c"].map((name) => revisions(index.ofPod("shop", name))),
    ["x", "y"].map((node) => revisions(index.onNode(node))),
    revisions(index.ofWorkload("StatefulSet", "shop", "mysql")),
  ];
}
