// SPDX-License-Identifier: Apache-2.0

/** What has an address that Berth did not give it (ADR 0026). */
export interface Occupant {
  readonly kind: "node" | "host" | "pod" | "service";
  /** Empty: it has none. */
  readonly namespace: string;
  /** Of the interface, if it is this host's own address. */
  readonly name: string;
}

/** As messages name it. */
export function describeOccupant({ kind, namespace, name }: Occupant): string {
  if (kind === "host") return `this host (${name})`;
  return `${kind} ${namespace === "" ? name : `${namespace}/${name}`}`;
}

/**
 * Whether it surely stands in the pool's network, whichever that is. A pool with `spec.networks` may be for another network than that of
 * pods and Services, in which their addresses mean nothing; those of nodes are the network's own more often than not.
 */
export function isOfPool(
  { kind }: Occupant,
  { spec }: { readonly spec: { readonly networks?: readonly string[] } },
): boolean {
  return spec.networks === undefined || kind === "node" || kind === "host";
}
