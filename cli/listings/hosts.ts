// SPDX-License-Identifier: Apache-2.0
import { BerthError } from "../../allocator/base/errors.ts";
import type { Backend } from "../backend/backend.ts";
import { ageOf, timeOf } from "../terminal/output.ts";
import { listing } from "./listing.ts";

type Host = Awaited<ReturnType<NonNullable<Backend["hosts"]>>>[number];

interface Row {
  readonly host: Host;
  /** That its containers have. */
  readonly addresses: number;
}

/** Hosts that share an etcd. Whether a silent one is gone its record does not say. */
export const hosts = listing<Row>({
  names: ["hosts", "host"],
  noun: "host",
  scope: "cluster",
  async load(backend) {
    const all = await backend.hosts?.();
    if (all === undefined)
      throw new BerthError("CONFIG_INVALID", "hosts are kept in etcd alone; say which with --etcd URL");
    const counts = new Map<string, number>(); // host -> addresses
    for (const { record } of await backend.claims()) {
      const { binding, addresses } = record;
      if (binding !== undefined) counts.set(binding.node, (counts.get(binding.node) ?? 0) + addresses.length);
    }
    return all.map((host) => ({ host, addresses: counts.get(host.name) ?? 0 }));
  },
  keyOf: ({ host }) => ({ namespace: "", name: host.name }),
  manifest: ({ host: { name, record }, addresses }) => ({
    kind: "Host",
    metadata: { name },
    status: { ...record, seen: timeOf(record.seen), addresses, ...fencedOf(record) },
  }),
  columns: ({ now }) => [
    { title: "NAME", cell: ({ host }) => host.name },
    { title: "ADDRESSES", cell: ({ addresses }) => String(addresses) },
    // a host's clock may be ahead
    { title: "HEARD", cell: ({ host }) => `${ageOf(Math.min(host.record.seen, now), now)} ago` },
    { title: "STATE", cell: ({ host }) => stateOf(host, now) },
    { title: "JOURNAL", wide: true, cell: ({ host }) => host.record.journal },
  ],
});

/** A host writes every 10 s, by its own clock: what is silent may be gone, or be cut off from etcd. */
const SILENT_MS = 60_000;

function stateOf({ record: { fenced, seen, refusal } }: Host, now: number): string {
  if (fenced !== undefined) return `fenced ${timeOf(fenced.at)} by ${fenced.by}`;
  if (now - seen > SILENT_MS) return "silent";
  return refusal === undefined ? "up" : "up, gives no address"; // why, -o yaml has
}

function fencedOf({ fenced }: Host["record"]): object {
  return fenced === undefined ? {} : { fenced: { ...fenced, at: timeOf(fenced.at) } };
}
