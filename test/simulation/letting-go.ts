// SPDX-License-Identifier: Apache-2.0
import { isDeepStrictEqual } from "node:util";
import { type Claim, isReserved, type RetentionChoice } from "../../allocator/model/claim.ts";
import { isHeldBy } from "../../allocator/model/reservation.ts";
import type { Stored } from "../../allocator/store/store.ts";
import type { MemoryRecords, Written } from "../model/memory-records.ts";
import { FORMER_UID } from "./cast.ts";
import type { ClaimReads } from "./claim-reads.ts";
import type { Cluster } from "./cluster.ts";
import type { Doubt } from "./doubt.ts";
import type { Process } from "./process.ts";
import { BEGIN } from "./process.ts";
import { changesOf, type Saying, sayingOf, sayingsOfSet } from "./sayings.ts";
import type { Schedule } from "./schedule.ts";
import { releasedTooSoon } from "./terms.ts";
import { isOfWorkload, isUsed, type Want, wantOf } from "./wants.ts";

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
 * not want it at some moment since the process that lets them go came to know the claim, and the retention allows it, or
 * a person said so.
 */
export class LettingGo {
  readonly #records: MemoryRecords;
  readonly #cluster: Cluster;
  readonly #doubt: Doubt;
  readonly #schedule: Schedule;
  /** want/claim, or aspect and words/claim -> when it last was so, in happenings */
  readonly #last = new Map<string, number>();
  readonly #before = new Map<string, Claim>(); // claim -> as it was before its last change
  readonly #reads: ClaimReads;
  readonly #permits = new Set<Permit>();

  constructor(of: {
    records: MemoryRecords;
    cluster: Cluster;
    doubt: Doubt;
    reads: ClaimReads;
    schedule: Schedule;
  }) {
    this.#records = of.records;
    this.#cluster = of.cluster;
    this.#doubt = of.doubt;
    this.#reads = of.reads;
    this.#schedule = of.schedule;
  }

  /** The process may release what the permit says, until the returned function is called. */
  permit(permit: Permit): () => void {
    this.#permits.add(permit);
    return () => this.#permits.delete(permit);
  }

  /** Before an object comes, changes or goes: who is not wanted was not wanted until now. */
  beforeChange(): void {
    for (const { key, record } of this.#records.list("claim")) {
      this.#last.set(`${this.#wantOf(record)}/${key}`, this.#schedule.count);
    }
    for (const { claim, aspects } of this.#sayings()) {
      for (const [aspect, words] of Object.entries(aspects)) {
        this.#last.set(`${aspect} ${words}/${claim}`, this.#schedule.count);
      }
    }
  }

  /** The words for what must not have been written. To be asked before the doubts hear of it. */
  judge({ kind, key, before, after }: Written, by: Process | undefined): string | undefined {
    if (kind !== "claim" || before === undefined) return undefined;
    const [was, is] = [before.record as Claim, after?.record as Claim | undefined];
    if (!isReserved(was) || !this.#doubt.isSure({ key, record: was })) return undefined;
    if (is === undefined) return `claim ${key} was deleted without being released`;
    if (is.releasing === true) return this.#judgeRelease(before as Stored<"claim">, by);
    if (!isReserved(is) && this.#isWhole(was)) return `claim ${key} was taken back without being released`;
    const undone = isDeepStrictEqual(is, this.#before.get(key));
    this.#before.set(key, was);
    // What a person wrote is his to change.
    return was.handMade === true || undone ? undefined : this.#judgeChange(before as Stored<"claim">, is, by);
  }

  #isWhole({ addresses, nonce }: Claim): boolean {
    return addresses.every((address) => {
      const reservation = this.#records.get("reservation", address)?.record;
      return reservation !== undefined && isHeldBy(reservation, nonce);
    });
  }

  /**
   * ADR 0007: a claim that is there changes as a pod says which is in the cluster, and not as its review said; or it
   * becomes an ordinal's whose StatefulSet is in the cluster and wants it, with the addresses that it has.
   */
  #judgeChange(before: Stored<"claim">, is: Claim, by: Process | undefined): string | undefined {
    const { key, record: was } = before;
    const since = this.#reads.since(by, before);
    const taken = this.#judgeTaking(key, { was, is }, since);
    if (taken !== undefined) return taken;
    const now = this.#sayings();
    const becameOrdinals = was.identity.kind !== "StatefulSet" && isOfWorkload(is);
    for (const [aspect, words] of changesOf(was, is)) {
      const said = now.some((saying) => saying.claim === key && saying.aspects[aspect] === words);
      if (aspect !== "addresses" && becameOrdinals && this.#wantOf(is) === "wanted") continue;
      if (said || (this.#last.get(`${aspect} ${words}/${key}`) ?? -1) >= since) continue;
      return `the ${aspect} of claim ${key} became ${words}, and nothing that is there said so`;
    }
    return undefined;
  }

  /** Of all pods, and of the StatefulSets that own places. */
  #sayings(): readonly Saying[] {
    const ofPods = this.#cluster.all("Pod").flatMap((pod) => sayingOf(pod) ?? []);
    return [...ofPods, ...this.#cluster.all("StatefulSet").flatMap(sayingsOfSet)];
  }

  /** A place's claim stays its workload's, whoever's pod has the name, until that does not want it and nothing retains it. */
  #judgeTaking(key: string, { was, is }: { was: Claim; is: Claim }, since: number): string | undefined {
    const isFormers = is.identity.uid === FORMER_UID && was.identity.uid !== FORMER_UID;
    if (!isOfWorkload(was) || !(is.identity.kind === "Pod" || isFormers)) return undefined;
    const wants = this.#wantsSince(key, was, since);
    const owner = `${was.identity.kind} ${was.identity.name}`;
    if (wants.length === 0) return `claim ${key} was taken from ${owner}, which wanted it all the time`;
    // what no pod ever had has given nobody an address to rely on: its workload may never have come to be
    const isKept = isUsed(was) && wants.every((want) => retentionOf(was, want) === "Retain");
    return isKept ? `claim ${key} was taken from ${owner} although its retention keeps it` : undefined;
  }

  /** How it was not wanted, now or at some moment since then. */
  #wantsSince(key: string, claim: Claim, since: number): readonly Want[] {
    const now = this.#wantOf(claim);
    return UNWANTED.filter((want) => now === want || (this.#last.get(`${want}/${key}`) ?? -1) >= since);
  }

  #judgeRelease(stored: Stored<"claim">, by: Process | undefined): string | undefined {
    const { key, record: claim } = stored;
    const used = isUsed(claim);
    const isMeant = (permit: Permit) =>
      permit.process === by && permit.isFor(key) && !(permit.unused && used);
    if ([...this.#permits].some(isMeant)) return undefined;
    const soon = releasedTooSoon(stored, BEGIN + this.#schedule.time);
    if (soon !== undefined) return soon;
    if (claim.handMade === true) return `claim ${key} was made by hand and released by nobody's`;
    const since = this.#reads.since(by, stored);
    const wants = this.#wantsSince(key, claim, since);
    if (wants.length === 0) return `claim ${key} was released although its owner wanted it all the time`;
    const isKept = (want: Want) => used && retentionOf(claim, want) === "Retain" && !expires(claim);
    return wants.every(isKept) ? `claim ${key} was released although its retention keeps it` : undefined;
  }

  #wantOf(claim: Claim): Want {
    return wantOf(this.#cluster, claim);
  }
}

function retentionOf({ retention }: Claim, want: Want): RetentionChoice {
  return want === "scaled" ? retention.whenScaled : retention.whenDeleted;
}

function expires({ retention, retained }: Claim): boolean {
  return retention.ttlMs !== null && retained !== undefined;
}
