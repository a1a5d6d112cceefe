// SPDX-License-Identifier: Apache-2.0
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { type Address, parseAddress } from "../../../allocator/ip/address.ts";
import { isAbsence } from "../../../system/path-error.ts";
import type { NetworkKey } from "../../cni/config.ts";
import { attachmentKey } from "./attachment.ts";
import { type Host, isOfProcess, type Presence } from "./host.ts";
import { LeaseNames, namesIn } from "./lease-names.ts";
import { bootTime, fieldsOf, parsed, sandboxOf, textOf } from "./runtime-records.ts";

/** What host-local wrote when it gave an address away: a file of the address's name, in the folder of the network. */
interface Lease {
  readonly address: Address;
  /** Undefined: the file is there and cannot be read. */
  readonly containerID: string | undefined;
  readonly interface: string;
  /** Milliseconds since 1970. */
  readonly writtenAt: number;
}

/** What the runtime keeps of the lease's container. `unsaid`: it has a record, which names no network namespace. */
export type Evidence = "no record" | "unsaid" | Presence;

interface LeaseEvidence {
  readonly bootedAt: number;
  readonly now: number;
  /** Whether the runtime keeps records of this network at all. */
  readonly keepsRecords: boolean;
}

/** A lease is written before the runtime's record: so long an ADD may take. */
const ADD_MS = 10 * 60_000;

/**
 * Whether the container may be up. host-local forgets to give back what no DEL came for, so a lease alone proves nothing. No
 * sandbox outlives the boot. Where the runtime keeps records of the network, one that is missing was taken away by
 * its DEL; where it keeps none, nothing is known, and the lease holds until the next boot.
 */
export function isLive({ writtenAt }: Lease, evidence: Evidence, around: LeaseEvidence): boolean {
  if (evidence === "present") return true;
  if (evidence === "gone" || writtenAt < around.bootedAt) return false;
  if (evidence !== "no record" || !around.keepsRecords) return true;
  return writtenAt > around.now - ADD_MS;
}

/** Undefined for what is no lease: the lock, the positions. Before 0.8 of host-local a lease named no interface. */
export function readLease(name: string, text: string, writtenAt: number): Lease | undefined {
  const address = parseAddress(name);
  const [containerID = "", interfaceName = ""] = text.trim().split(/\r?\n/);
  if (address === undefined || containerID === "") return undefined;
  return { address, containerID, interface: interfaceName, writtenAt };
}

/**
 * What host-local gave away in a network: address -> id of the place that has it. Both throw STORE_UNAVAILABLE where the folder is
 * there and cannot be read.
 */
export interface HostLocalLeases {
  /** Whatever a file is there for, by the files' names alone; the ids are empty. Cheap: it is asked at each ADD. */
  readonly written: (scope: NetworkKey) => Promise<ReadonlyMap<Address, string>>;
  /** Those of containers that may be up: reads every file, and what the runtime says of its container. */
  readonly live: (scope: NetworkKey) => Promise<ReadonlyMap<Address, string>>;
}

const NONE: ReadonlyMap<Address, string> = new Map();

export const noLeases: HostLocalLeases = { written: async () => NONE, live: async () => NONE };

/** Reads host-local's own folder of the network, and what the runtime keeps of its containers in `results`. */
export function leasesOn(
  host: Pick<Host, "look" | "read">,
  results: readonly string[],
  now: () => number,
): HostLocalLeases {
  const names = new LeaseNames(now);
  return {
    written: (scope) => names.in(folderOf(scope)),
    live: async (scope) => {
      const leases = await leasesIn(folderOf(scope));
      if (leases.length === 0) return NONE;
      // Where records cannot be listed none are kept, as far as is known: then a lease holds until the next boot.
      const names = await Promise.all(results.map((path) => readdir(path).catch(() => [])));
      const keepsRecords = names.flat().some((name) => name.startsWith(`${scope.network}-`));
      const around = { bootedAt: await bootTime(host), now: now(), keepsRecords };
      const live = new Map<Address, string>();
      for (const lease of leases) {
        if (!isLive(lease, await evidenceOf(lease, scope, results, host), around)) continue;
        live.set(
          lease.address,
          attachmentKey({ scope, ...lease, containerID: lease.containerID ?? "unknown" }),
        );
      }
      return live;
    },
  };
}

function folderOf({ dataDir, network }: NetworkKey): string {
  return join(dataDir, network);
}

async function leasesIn(folder: string): Promise<readonly Lease[]> {
  const leases: Lease[] = [];
  for (const name of (await namesIn(folder)) ?? []) {
    const address = parseAddress(name);
    const lease = address && (await leaseAt(folder, name, address));
    if (lease !== undefined) leases.push(lease);
  }
  return leases;
}

async function leaseAt(folder: string, name: string, address: Address): Promise<Lease | undefined> {
  const path = join(folder, name);
  const [text, writtenAt] = await Promise.all([
    readFile(path, "utf8").catch(unreadable<string>("")),
    stat(path).then(({ mtimeMs }) => mtimeMs, unreadable<"absent">("absent")),
  ]);
  if (writtenAt === "absent") return undefined;
  const at = writtenAt ?? Number.POSITIVE_INFINITY;
  if (text === undefined) return { address, containerID: undefined, interface: "unknown", writtenAt: at };
  return readLease(name, text, at);
}

/** For `catch`: `none` for what is not there; undefined for what cannot be read, which says nothing. */
function unreadable<T>(none: T): (error: unknown) => T | undefined {
  return (error) => (isAbsence(error) ? none : undefined);
}

async function evidenceOf(
  { containerID, interface: name }: Lease,
  { network }: NetworkKey,
  results: readonly string[],
  host: Pick<Host, "look">,
): Promise<Evidence> {
  if (containerID === undefined) return "unknown";
  for (const folder of results) {
    const path = join(folder, `${network}-${containerID}-${name}`);
    const text = await readFile(path, "utf8").catch(unreadable(""));
    if (text === undefined) return "unknown";
    if (text === "") continue;
    const record = fieldsOf(parsed(text));
    const netns = textOf(record["netns"]) || sandboxOf(record);
    if (netns === undefined || isOfProcess(netns)) return "unsaid";
    return await host.look(netns);
  }
  return "no record";
}
