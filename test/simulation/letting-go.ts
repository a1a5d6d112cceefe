// SPDX-License-Identifier: Apache-2.0
import { isDeepStrictEqual } from "node:util";
import { type Claim, isReserved, type RetentionChoice } from "../../allocator/claim.ts";
import type { Stored } from "../../allocator/store/store.ts";
import type { Books, Written } from "../model/books.ts";
import type { Cluster } from "./cluster.ts";
import type { Doubt } from "./doubt.ts";
import type { Process } from "./process.ts";
import type { Schedule } from "./schedule.ts";

/** Whether the owner of the identity wants it, as the cluster is at this moment. */
type Want = "wanted" | "scaled" | "gone";
const UNWANTED: readonly Want[] = ["scaled", "gone"];

/** A person said so, or a review that is refused gives back what it took. */
export interface Permit {
  readonly process: Process;
  readonly isFor: (claim: string) => boolean;
  /** Only what no pod ever used. */
  readonly unused: boolean;
}

/**
 * Invariant 5, from what is true and not from what a process knew: an identity keeps its addresses until its owner did
 * not want it at some moment since the process that lets them go read the claim, and the retention allows it, or
 * a person said so.
 */
export class LettingGo {
  readonly #books: Books;
  readonly #cluster: Cluster;
  readonly #doubt: Doubt;
  readonly #schedule: Schedule;
  readonly #last = new Map<string, number>(); // want/claim -> when it last was so, in happenings
  readonly #reads = new WeakMap<Process, Map<string, number>>(); // process -> claim@revision -> when it first read it
  readonly #permits = new Set<Permit>();

  constructor(of: { books: Books; cluster: Cluster; doubt: Doubt; schedule: Schedule }) {
    this.#books = of.books;
    this.#cluster = of.cluster;
    this.#doubt = of.doubt;
    this.#schedule = of.schedule;
  }

  onRead(process: Process, { key, revision }: Stored<"claim">): void {
    const reads = this.#reads.get(process) ?? new Map<string, number>();
    this.#reads.set(process, reads);
    const id = `${key}@${revision}`;
    if (!reads.has(id)) reads.set(id, this.#schedule.count);
  }

  /** The process may release what the permit says, until the returned function is called. */
  permit(permit: Permit): () => void {
    this.#permits.add(permit);
    return () => this.#permits.delete(permit);
  }

  /** Before an object comes, changes or goes: who is not wanted was not wanted until now. */
  beforeChange(): void {
    for (const { key, record } of this.#books.list("claim")) {
      this.#last.set(`${this.#wantOf(record)}/${key}`, this.#schedule.count);
    }
  }

  /** The words for what must not have been written. To be asked before the doubts hear of it. */
  judge({ kind, key, before, after }: Written, by: Process | undefined): string | undefined {
    if (kind !== "claim" || before === undefined) return undefined;
    const [was, is] = [before.record as Claim, after?.record as Claim | undefined];
    if (!isReserved(was) || !this.#doubt.isSure({ key, record: was })) return undefined;
    if (is === undefined) return `claim ${key} was deleted without being released`;
    if (is.releasing === true) return this.#judgeRelease(before as Stored<"claim">, by);
    if (isDeepStrictEqual(is.addresses, was.addresses)) return undefined;
    // A pod of the name that asks for something else; what a person wrote stands whatever a pod asks for.
    if (was.handMade === true || !isDeepStrictEqual(is.request, was.request)) return undefined;
    return `claim ${key} had ${was.addresses.join("+")} and has ${is.addresses.join("+")}, and asks for the same`;
  }

  #judgeRelease(
    { key, revision, record: claim }: Stored<"claim">,
    by: Process | undefined,
  ): string | undefined {
    const used = isUsed(claim);
    const isMeant = (permit: Permit) =>
      permit.process === by && permit.isFor(key) && !(permit.unused && used);
    if ([...this.#permits].some(isMeant)) return undefined;
    if (claim.handMade === true) return `claim ${key} was made by hand and released by nobody's`;
    const since = (by && this.#reads.get(by)?.get(`${key}@${revision}`)) ?? 0;
    const now = this.#wantOf(claim);
    const wants = UNWANTED.filter(
      (want) => now === want || (this.#last.get(`${want}/${key}`) ?? -1) >= since,
    );
    if (wants.length === 0) return `claim ${key} was released although its owner wanted it all the time`;
    const isKept = (want: Want) => used && retentionOf(claim, want) === "Retain" && !expires(claim);
    return wants.every(isKept) ? `claim ${key} was released although its retention keeps it` : undefined;
  }

  #wantOf({ namespace, name, identity, binding }: Claim): Want {
    const { kind, ordinal } = identity;
    if (kind !== "StatefulSet" && kind !== "Deployment") {
      const podName = binding?.podName || name;
      return this.#cluster.pod(namespace, podName) === undefined ? "gone" : "wanted";
    }
    const workload = this.#cluster.workload(kind, namespace, identity.name);
    if (workload === undefined || workload === "unknown") return "gone";
    if (ordinal === undefined) return "wanted";
    return ordinal >= workload.start && ordinal < workload.start + workload.replicas ? "wanted" : "scaled";
  }
}

/** A pod has had it. */
function isUsed({ binding, retained, status }: Claim): boolean {
  return (binding?.node ?? "") !== "" || retained !== undefined || status.attachment !== undefined;
}

function retentionOf({ retention }: Claim, want: Want): RetentionChoice {
  return want === "scaled" ? retention.whenScaled : retention.whenDeleted;
}

function expires({ retention, retained }: Claim): boolean {
  return retention.ttlMs !== null && retained !== undefined;
}
