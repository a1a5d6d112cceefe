// SPDX-License-Identifier: Apache-2.0
// Which addresses of pools nodes and other CNIs' pods have (ADR 0026), from the watches.

import { isDeepStrictEqual } from "node:util";
import type { RecordCache } from "../../allocator/cache/cache.ts";
import { type Address, parseAddress } from "../../allocator/ip/address.ts";
import { ASSIGNED_CLAIM } from "../../allocator/manifest/annotations.ts";
import type { Occupant } from "../../allocator/model/occupant.ts";
import type { Occupied } from "../../allocator/planning/occupied.ts";
import type { ObservedNode, ObservedPod } from "./observed-objects.ts";

/** Objects that are watched. */
interface Watched<P> {
  all(): Iterable<readonly [key: string, one: P]>;
  onChange(handler: (key: string, now: P | undefined, before: P | undefined) => void): () => void;
}

interface Watches {
  readonly pods: Watched<ObservedPod>;
  readonly nodes: Watched<ObservedNode>;
}

type Known = Pick<
  RecordCache,
  "poolOf" | "reservation" | "blockOwning" | "occupy" | "vacate" | "occupants" | "onChange"
>;

/** Every node's address, and every one that a living pod has from somebody else, whether it is in a pool or not. */
export function* occupantsSeen({ pods, nodes }: Watches, cache: Known): Generator<Occupied, void, void> {
  for (const [, node] of nodes.all()) yield* ofNode(node);
  for (const [, pod] of pods.all()) yield* foreignOf(pod, cache);
}

function* ofNode({ name, addresses }: ObservedNode): Generator<Occupied, void, void> {
  for (const address of listed(addresses)) yield [address, { kind: "node", namespace: "", name }];
}

/** A machine that has joined under another name has two Nodes for a while, either of which may go. */
function* nodesWith(nodes: Watches["nodes"], address: Address): Generator<Occupied, void, void> {
  for (const [, node] of nodes.all())
    if (node.addresses !== undefined && listed(node.addresses).includes(address))
      yield [address, { kind: "node", namespace: "", name: node.name }];
}

/** A pod may have what a node had a moment ago, whose Node is there still. */
function* podsWith(pods: Watches["pods"], cache: Known, address: Address): Generator<Occupied, void, void> {
  const part = address.includes(":") ? ":" : address; // an IPv6 address may be written in several ways
  for (const [, pod] of pods.all()) {
    if (pod.addresses?.includes(part) !== true) continue;
    for (const one of foreignOf(pod, cache)) if (one[0] === address) yield one;
  }
}

/** What is reserved, or in a node's block, is Berth's; so is what a pod has that was admitted with a claim. */
function* foreignOf(pod: ObservedPod, cache: Known): Generator<Occupied, void, void> {
  if (pod.ended || pod.annotations[ASSIGNED_CLAIM] !== undefined) return;
  const { namespace, name } = pod;
  for (const address of listed(pod.addresses)) {
    if (cache.reservation(address) !== undefined || cache.blockOwning(address) !== undefined) continue;
    yield [address, { kind: "pod", namespace, name }];
  }
}

function listed(addresses: string | undefined): Address[] {
  return addresses === undefined ? [] : addresses.split(",").flatMap((text) => parseAddress(text) ?? []);
}

/**
 * Tells the cache of those that are in pools, from here on; gives what ends it. Whose an address is is decided when the pod gets it, and
 * anew when pools change: a pod of Berth's that ends may be seen for longer than its address is its own.
 */
export function followOccupants(watches: Watches, cache: Known): () => void {
  // whoever writes a pod's status may name a node's address in it, and let go of that
  const isNodes = (address: Address) => cache.occupants().get(address)?.kind === "node";
  const ofSeveral = new Set<Address>(); // that two pods or more had: who is left of them is looked for when one lets go
  const enter = (entries: Iterable<Occupied>) => {
    for (const [address, occupant] of entries) {
      if (cache.poolOf(address) === undefined || (occupant.kind !== "node" && isNodes(address))) continue;
      const before = cache.occupants().get(address);
      if (before?.kind === "pod" && !isDeepStrictEqual(before, occupant)) ofSeveral.add(address);
      cache.occupy(address, occupant);
    }
  };
  /** To whoever else has what one had. */
  const pass = (address: Address) => {
    enter(nodesWith(watches.nodes, address));
    if (!isNodes(address)) enter(podsWith(watches.pods, cache, address));
  };
  const leave = (addresses: string | undefined, kind: Occupant["kind"], key: string) => {
    for (const address of listed(addresses)) {
      const { kind: of, namespace = "", name = "" } = cache.occupants().get(address) ?? {};
      if (of !== kind || key !== (namespace === "" ? name : `${namespace}/${name}`)) continue;
      cache.vacate(address);
      if (ofSeveral.delete(address) || kind === "node") pass(address);
    }
  };
  const ends = [
    watches.nodes.onChange((key, now, before) => {
      if (now?.addresses === before?.addresses) return;
      leave(before?.addresses, "node", key);
      if (now !== undefined) enter(ofNode(now));
    }),
    watches.pods.onChange((key, now, before) => {
      const isSame = now?.uid === before?.uid && now?.addresses === before?.addresses;
      if (isSame && now?.ended === before?.ended) return;
      leave(before?.addresses, "pod", key);
      if (now !== undefined) enter(foreignOf(now, cache));
    }),
    cache.onChange("pool", (_, now, before) => {
      if (JSON.stringify(now?.record.spec) === JSON.stringify(before?.record.spec)) return;
      for (const address of [...cache.occupants().keys()]) cache.vacate(address);
      enter(occupantsSeen(watches, cache));
    }),
    cache.onChange("block", (_, now) => {
      if (now === undefined) return;
      // it was granted without what others have: whoever is in it has its address from the node
      for (const [address, { kind }] of [...cache.occupants()])
        if (kind === "pod" && cache.blockOwning(address) !== undefined) cache.vacate(address);
    }),
  ];
  enter(occupantsSeen(watches, cache));
  return () => {
    for (const end of ends) end();
  };
}
