// SPDX-License-Identifier: Apache-2.0
// A host is marked as gone for good, and which claims are its own then: a new host of its name may serve at once.

import type { HostRecord, HostRegistry, StoredHost } from "../../allocator/store/etcd/hosts.ts";
import type { Stored } from "../../allocator/store/store.ts";
import type { EtcdBackend } from "../backend/etcd-backend.ts";

type Hosts = Pick<EtcdBackend, "claims"> & { readonly registry: Pick<HostRegistry, "get" | "put"> };

/** What a person says of a host that is gone. */
type Fence = NonNullable<HostRecord["fenced"]>;

export interface Marked {
  /** As the mark has left it. */
  readonly host: StoredHost;
  /** Its claims before the mark: while they were listed, nobody else served under its name. */
  readonly before: readonly Stored<"claim">[];
}

/** What of the claims under a host's name is surely that host's. */
interface FencedClaims {
  readonly claims: readonly Stored<"claim">[];
  /** The name is in use again, by another host or by this one without its containers: further claims may be that one's. */
  readonly isServing: boolean;
}

/** Everything that is the host's by name. */
export async function boundTo(
  { claims }: Pick<Hosts, "claims">,
  name: string,
): Promise<readonly Stored<"claim">[]> {
  return (await claims()).filter(({ record }) => record.binding?.node === name);
}

/** Of claims that a person made the next container may have them, wherever it is. */
export function staysForItsName({ record }: Stored<"claim">): boolean {
  return record.handMade === true;
}

async function claimsOf(etcd: Pick<Hosts, "claims">, name: string): Promise<readonly Stored<"claim">[]> {
  return (await boundTo(etcd, name)).filter((claim) => !staysForItsName(claim));
}

/** `alive`: a host has written the record since it was seen. Another person's mark of the same host is as good as this one's. */
export async function markGone(etcd: Hosts, seen: StoredHost, fenced: Fence): Promise<Marked | "alive"> {
  const { name, record, revision } = seen;
  if (record.fenced !== undefined) return { host: seen, before: [] };
  const before = await claimsOf(etcd, name);
  const host = await etcd.registry.put(name, { ...record, fenced }, revision);
  if (host !== "changed") return { host, before };
  const now = await etcd.registry.get(name);
  const isMarked = now?.record.fenced !== undefined && now.record.journal === record.journal;
  return isMarked ? { host: now, before: [] } : "alive";
}

/**
 * As long as the record is as the mark has left it, no host serves under the name: it would write the record first,
 * so that what was listed before that look is of the marked one. From then on only what was listed before the mark is surely so.
 */
export async function fencedClaims(etcd: Hosts, { host, before }: Marked): Promise<FencedClaims> {
  const after = await claimsOf(etcd, host.name);
  const now = await etcd.registry.get(host.name);
  return now?.revision === host.revision
    ? { claims: after, isServing: false }
    : { claims: before, isServing: true };
}
