// SPDX-License-Identifier: Apache-2.0

import { type Family, parseAddress, parseCidr } from "../../../allocator/ip/address.ts";
import { type KubeItem, resource } from "../../../kube/api/resource.ts";

/** Of both versions that are tested, 1.15 and 1.20. */
export const CILIUM_NODES = resource("cilium.io/v2", "CiliumNode", "ciliumnodes", "cluster");

/** How Cilium's agents manage addresses (`ipam.mode` of Cilium's chart): what they read, and what they write back. */
export const CILIUM_MODES = ["crd", "cluster-pool", "multi-pool"] as const;
export type CiliumMode = (typeof CILIUM_MODES)[number];

/** An agent's part in giving an address back; what is not known counts as being in use. */
export type ReleaseState = "marked-for-release" | "ready-for-release" | "do-not-release" | "released";

/** CIDRs of a pool of Cilium's that an agent gives addresses from. */
export interface Allocation {
  readonly pool: string;
  readonly cidrs: readonly string[];
  readonly allowFirstIP?: boolean;
  readonly allowLastIP?: boolean;
}

interface Requested {
  readonly pool: string;
  readonly needed: Readonly<Record<Family, number>>;
}

/** A CiliumNode at one of its versions, as far as addresses are concerned. */
export interface CiliumNode {
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  /** `spec.ipam.pool`. */
  readonly pool: ReadonlySet<string>;
  /** Those of `pool` under a key that is written in another way (`FD00::5`): agents compare keys as they are, and give such an address whatever they were asked. */
  readonly misspelt: ReadonlySet<string>;
  readonly podCIDRs: readonly string[];
  /** `spec.ipam.pools.allocated`, whatever else an entry says. */
  readonly allocated: readonly Allocation[];
  readonly requested: readonly Requested[];
  /** `status.ipam.used`, 15 s late or more: no proof that an address is free. */
  readonly used: ReadonlySet<string>;
  readonly releases: ReadonlyMap<string, string>;
  /** `status.ipam.pod-cidrs`: only agents that grow in mode cluster-pool write it. */
  readonly cidrStates: ReadonlyMap<string, string>;
  /** What such an agent has been told of marks; undefined: nothing, or Cilium's definition has no such fields. */
  readonly marks: Readonly<Record<keyof typeof MARKS, number>> | undefined;
  readonly operatorError: string;
}

type Json = Readonly<Record<string, unknown>>;

/** How Cilium calls the marks in `spec.ipam`. */
export const MARKS = {
  growBelow: "pod-cidr-allocation-threshold",
  shrinkAbove: "pod-cidr-release-threshold",
} as const;

/** Reads what the API server gave: anything may be missing, and what is not understood is passed over. */
export function readCiliumNode(item: KubeItem): CiliumNode {
  const { name, uid, resourceVersion } = item.metadata;
  const { spec, status } = item as KubeItem & Json;
  const [given, said] = [objectAt(spec, "ipam"), objectAt(status, "ipam")];
  const pools = objectAt(given, "pools");
  const error = objectAt(said, "operator-status")["error"];
  const keys = Object.keys(objectAt(given, "pool"));
  return {
    ...{ name, uid, resourceVersion },
    pool: new Set(keys.map(canonical)),
    misspelt: new Set(keys.map(canonical).filter((address, n) => address !== keys[n])),
    podCIDRs: listAt(given, "podCIDRs").filter((cidr) => typeof cidr === "string"),
    allocated: listAt(pools, "allocated").flatMap((entry) => allocationOf(entry) ?? []),
    requested: listAt(pools, "requested").flatMap((entry) => requestOf(entry) ?? []),
    used: new Set(Object.keys(objectAt(said, "used")).map(canonical)),
    releases: new Map(
      Object.entries(objectAt(said, "release-ips")).map(([ip, state]) => [canonical(ip), String(state)]),
    ),
    cidrStates: new Map(
      Object.entries(objectAt(said, "pod-cidrs")).map(([text, entry]) => [
        parseCidr(text)?.text ?? text,
        String((entry as Json | null)?.["status"]),
      ]),
    ),
    marks: marksOf(given),
    operatorError: typeof error === "string" ? error : "",
  };
}

function marksOf(given: Json): CiliumNode["marks"] {
  const [growBelow, shrinkAbove] = [given[MARKS.growBelow], given[MARKS.shrinkAbove]];
  const isThere = typeof growBelow === "number" && typeof shrinkAbove === "number";
  return isThere ? { growBelow, shrinkAbove } : undefined;
}

function allocationOf(entry: unknown): Allocation | undefined {
  const given = entry as Json;
  const pool = given?.["pool"];
  if (typeof pool !== "string") return undefined;
  const cidrs = listAt(given, "cidrs").filter((cidr) => typeof cidr === "string");
  return { ...given, pool, cidrs };
}

function requestOf(entry: unknown): Requested | undefined {
  const pool = (entry as Json)?.["pool"];
  if (typeof pool !== "string") return undefined;
  const needed = objectAt(entry, "needed");
  return { pool, needed: { IPv4: count(needed["ipv4-addrs"]), IPv6: count(needed["ipv6-addrs"]) } };
}

function count(given: unknown): number {
  return typeof given === "number" && given > 0 ? Math.floor(given) : 0;
}

function canonical(text: string): string {
  return parseAddress(text) ?? text;
}

function objectAt(given: unknown, key: string): Json {
  const value = (given as Json | undefined)?.[key];
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Json) : {};
}

function listAt(given: unknown, key: string): readonly unknown[] {
  const value = (given as Json | undefined)?.[key];
  return Array.isArray(value) ? value : [];
}
