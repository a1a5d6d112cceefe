// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { describeOccupant } from "../../allocator/model/occupant.ts";
import { poolRecord, reservationRecord, storedAs, viewOf } from "../../test/support/fixtures.ts";
import type { ObservedNode, ObservedPod } from "./observed-objects.ts";
import { followOccupants, occupantsSeen } from "./occupants.ts";

type Handler<P> = (key: string, now: P | undefined, before: P | undefined) => void;

/** Objects that a test puts and takes. */
class Watched<P> {
  readonly #objects = new Map<string, P>(); // key -> object
  readonly #handlers = new Set<Handler<P>>();

  all(): Iterable<readonly [string, P]> {
    return this.#objects;
  }

  onChange(handler: Handler<P>): () => void {
    this.#handlers.add(handler);
    return () => this.#handlers.delete(handler);
  }

  put(key: string, now: P | undefined): void {
    const before = this.#objects.get(key);
    if (now === undefined) this.#objects.delete(key);
    else this.#objects.set(key, now);
    for (const handler of this.#handlers) handler(key, now, before);
  }
}

function podSeen(name: string, addresses: string, over: Partial<ObservedPod> = {}): ObservedPod {
  return {
    ...{ namespace: "shop", name, uid: `uid-of-${name}`, node: "node-a", labels: {}, annotations: {} },
    ...{ ended: false, up: true, deleting: false, exempt: false, addresses, ...over },
  };
}

function nodeSeen(name: string, addresses: string): ObservedNode {
  return { name, uid: `uid-of-${name}`, fenced: false, labels: {}, addresses };
}

const WEB = poolRecord("web", "10.0.0.0/24", { blockSize: { ipv4: 28 } });

function world() {
  const watches = { pods: new Watched<ObservedPod>(), nodes: new Watched<ObservedNode>() };
  const cache = viewOf({ pools: [WEB], blocks: [] });
  const reported = () =>
    [...cache.occupants()].map(([address, one]) => `${address} ${describeOccupant(one)}`).sort();
  return { watches, cache, reported, end: followOccupants(watches, cache) };
}

describe("what others have of pools", () => {
  it("is every address of a node, and of a pod that lives and has it from somebody else", () => {
    const { watches, reported, cache } = world();
    watches.nodes.put("node-a", nodeSeen("node-a", "10.0.0.2,192.0.2.1"));
    watches.pods.put("shop/calico", podSeen("calico", "10.0.0.60,fd00::60"));
    watches.pods.put("shop/job", podSeen("job", "10.0.0.61", { ended: true }));
    watches.pods.put("shop/own", podSeen("own", "10.0.0.62", { annotations: { "berth.dev/claim": "own" } }));
    assert.deepEqual(reported(), ["10.0.0.2 node node-a", "10.0.0.60 pod shop/calico"]);
    const all = [...occupantsSeen(watches, cache)].map(([address]) => address);
    assert.deepEqual(all.sort(), ["10.0.0.2", "10.0.0.60", "192.0.2.1", "fd00::60"], "for a pool to be");
    watches.pods.put("shop/calico", podSeen("calico", "10.0.0.60", { ended: true }));
    watches.nodes.put("node-a", nodeSeen("node-a", "10.0.0.3"));
    assert.deepEqual(reported(), ["10.0.0.3 node node-a"]);
    watches.nodes.put("node-a", undefined);
    assert.deepEqual(reported(), []);
  });

  it("is not what is reserved, or in a node's block, when the pod gets it, however long the pod is seen", () => {
    const { watches, reported, cache } = world();
    const reservation = storedAs("reservation", reservationRecord("10.0.0.70", { pool: "web" }));
    cache.apply("reservation", { type: "put", stored: reservation });
    const block = { cidr: "10.0.0.16/28", pool: "web", node: "node-a", nodeUID: "u", holes: [] };
    cache.apply("block", { type: "put", stored: storedAs("block", { ...block, granted: true }) });
    watches.pods.put("shop/claimed", podSeen("claimed", "10.0.0.70"));
    watches.pods.put("shop/any", podSeen("any", "10.0.0.20"));
    cache.apply("reservation", { type: "gone", key: "10.0.0.70" });
    cache.apply("block", { type: "gone", key: "10.0.0.16/28" });
    watches.pods.put("shop/any", podSeen("any", "10.0.0.20", { deleting: true }));
    assert.deepEqual(reported(), []);
  });

  it("is corrected when a block is heard of later than its pod", () => {
    const { watches, reported, cache } = world();
    watches.pods.put("shop/any", podSeen("any", "10.0.0.20"));
    watches.nodes.put("node-a", nodeSeen("node-a", "10.0.0.21"));
    const block = { cidr: "10.0.0.16/28", pool: "web", node: "node-a", nodeUID: "u", granted: true };
    const holes = ["10.0.0.21/32"];
    cache.apply("block", { type: "put", stored: storedAs("block", { ...block, holes }) });
    assert.deepEqual(reported(), ["10.0.0.21 node node-a"]);
  });

  it("is looked at anew when pools change, and not after the end", () => {
    const { watches, reported, cache, end } = world();
    watches.pods.put("shop/calico", podSeen("calico", "10.9.0.60"));
    assert.deepEqual(reported(), []);
    cache.apply("pool", { type: "put", stored: storedAs("pool", poolRecord("late", "10.9.0.0/24")) });
    assert.deepEqual(reported(), ["10.9.0.60 pod shop/calico"]);
    cache.apply("pool", { type: "gone", key: "late" });
    assert.deepEqual(reported(), []);
    end();
    watches.pods.put("shop/another", podSeen("another", "10.0.0.60"));
    assert.deepEqual(reported(), []);
  });

  it("of an address that two have is let go of by who has it last", () => {
    const { watches, reported } = world();
    watches.pods.put("shop/a", podSeen("a", "10.0.0.60"));
    watches.pods.put("shop/b", podSeen("b", "10.0.0.60"));
    watches.pods.put("shop/a", undefined);
    assert.deepEqual(reported(), ["10.0.0.60 pod shop/b"]);
  });

  it("of an address that several pods have stays that of one which is left, whichever goes", () => {
    const { watches, reported } = world();
    for (const name of ["a", "b", "c"]) watches.pods.put(`shop/${name}`, podSeen(name, "10.0.0.60"));
    watches.pods.put("shop/c", podSeen("c", "10.0.0.60", { ended: true }));
    const [left = ""] = reported();
    const [gone, last] = left.endsWith("/a") ? ["a", "b"] : ["b", "a"];
    assert.match(left, /^10\.0\.0\.60 pod shop\/[ab]$/);
    watches.pods.put(`shop/${gone}`, undefined);
    assert.deepEqual(reported(), [`10.0.0.60 pod shop/${last}`]);
    watches.pods.put(`shop/${last}`, podSeen(last, "10.0.0.61"));
    assert.deepEqual(reported(), [`10.0.0.61 pod shop/${last}`]);
  });

  it("of an address that several pods have stays, however they write it", () => {
    const { watches, cache, reported } = world();
    cache.apply("pool", { type: "put", stored: storedAs("pool", poolRecord("six", "fd00::/120")) });
    watches.pods.put("shop/a", podSeen("a", "10.0.0.60,FD00:0::60"));
    watches.pods.put("shop/b", podSeen("b", "fd00::60"));
    watches.pods.put("shop/b", undefined);
    assert.deepEqual(reported(), ["10.0.0.60 pod shop/a", "fd00::60 pod shop/a"]);
  });

  it("of a node's address stays that of the node whatever a pod says, and is the pod's once the Node is gone", () => {
    for (const order of [
      ["node", "pod"],
      ["pod", "node"],
    ]) {
      const { watches, reported } = world();
      const come = {
        node: () => watches.nodes.put("node-a", nodeSeen("node-a", "10.0.0.2")),
        pod: () => watches.pods.put("shop/a", podSeen("a", "10.0.0.2,fd00::2")),
      };
      for (const one of order) come[one as keyof typeof come]();
      assert.deepEqual(reported(), ["10.0.0.2 node node-a"]);
      watches.pods.put("shop/a", undefined);
      assert.deepEqual(reported(), ["10.0.0.2 node node-a"]);
      come.pod();
      watches.nodes.put("node-a", undefined);
      assert.deepEqual(reported(), ["10.0.0.2 pod shop/a"]);
    }
  });

  it("of an address that two Nodes have stays that of the one which is left, whichever goes", () => {
    for (const [left, gone] of [
      ["node-a", "node-b"],
      ["node-b", "node-a"],
    ] as const) {
      const { watches, reported } = world();
      for (const name of ["node-a", "node-b"]) watches.nodes.put(name, nodeSeen(name, "10.0.0.2,10.0.0.3"));
      watches.nodes.put(gone, undefined);
      assert.deepEqual(reported(), [`10.0.0.2 node ${left}`, `10.0.0.3 node ${left}`]);
      watches.nodes.put(left, nodeSeen(left, "10.0.0.2"));
      assert.deepEqual(reported(), [`10.0.0.2 node ${left}`]);
    }
  });
});
