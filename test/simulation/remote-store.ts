// SPDX-License-Identifier: Apache-2.0

import { BerthError } from "../../allocator/base/errors.ts";
import type { BlockStatus } from "../../allocator/model/block.ts";
import type { Claim, ClaimStatus } from "../../allocator/model/claim.ts";
import { keyOf } from "../../allocator/store/codec.ts";
import type {
  Change,
  CreateResult,
  Kind,
  Records,
  RemoveResult,
  ReplaceResult,
  Store,
  Stored,
} from "../../allocator/store/store.ts";
import type { MemoryRecords, Written } from "../model/memory-records.ts";
import type { ClaimReads } from "./claim-reads.ts";
import { BEGIN, type Process } from "./process.ts";

/** How many claims the API server takes; undefined: any number. It refuses for good, and says so. */
export interface Quota {
  most: number | undefined;
}

const USED_UP = { kind: "used up" } as const;

function refusedWrite(): BerthError {
  return new BerthError("WRITE_REFUSED", "exceeded quota: claims");
}

/** The store that all share, as one process has it: every verb is a call over the network. */
export class RemoteStore implements Store {
  readonly #process: Process;
  readonly #records: MemoryRecords;
  readonly #quota: Quota;
  readonly #reads: ClaimReads;

  constructor(process: Process, of: { records: MemoryRecords; quota: Quota; reads: ClaimReads }) {
    this.#process = process;
    this.#records = of.records;
    this.#quota = of.quota;
    this.#reads = of.reads;
  }

  async create<K extends Kind>(kind: K, record: Records[K]): Promise<CreateResult<K>> {
    const now = () => BEGIN + this.#process.post.schedule.time;
    const result = await this.#process.call<CreateResult<K> | typeof USED_UP>({
      what: () => `create ${kind} ${describe(kind, record)}`,
      act: () => {
        if (kind === "claim" && this.#isUsedUp()) return USED_UP;
        const done = this.#records.create(kind, record, now());
        this.#told(kind, done.stored);
        return done;
      },
      tell: (done) => {
        if (done.kind === "used up") return "REFUSED by the quota";
        return done.kind === "created"
          ? `created ${revision(done.stored)}`
          : `is there: ${shown(kind, done.stored)}`;
      },
    });
    if (result.kind === "used up") throw refusedWrite();
    return result;
  }

  async mayCreate(claim: Claim): Promise<void> {
    if (this.#quota.most === undefined) return;
    const isRefused = await this.#process.call({
      what: () => `rehearse the creation of claim ${claim.name}`,
      act: () => this.#isUsedUp(),
      tell: (refused) => (refused ? "REFUSED by the quota" : "may be"),
    });
    if (isRefused) throw refusedWrite();
  }

  #isUsedUp(): boolean {
    const { most } = this.#quota;
    return most !== undefined && this.#records.list("claim").length >= most;
  }

  get<K extends Kind>(kind: K, key: string): Promise<Stored<K> | undefined> {
    return this.#process.call({
      what: () => `get ${kind} ${key}`,
      act: () => {
        const stored = this.#records.get(kind, key);
        if (stored === undefined || kind !== "claim") return stored;
        return this.#reads.read(this.#process, stored as Stored<"claim">) as Stored<K>;
      },
      tell: (stored) => (stored === undefined ? "none" : shown(kind, stored)),
    });
  }

  replace<K extends Kind>(kind: K, seen: Stored<K>, next: Records[K]): Promise<ReplaceResult<K>> {
    return this.#process.call({
      what: () => `replace ${kind} ${revision(seen)} by ${describe(kind, next)}`,
      act: () => this.#replace(kind, seen, next),
      tell: reported,
    });
  }

  #replace<K extends Kind>(kind: K, seen: Stored<K>, next: Records[K]): ReplaceResult<K> {
    if (kind !== "claim") return this.#records.replace(kind, seen, next);
    const result = this.#reads.restingOn(seen as Stored<"claim">, () =>
      this.#records.replace(kind, seen, next),
    );
    if (result.kind === "replaced") this.#told(kind, result.stored);
    return result;
  }

  report(seen: Stored<"claim">, status: ClaimStatus): Promise<ReplaceResult<"claim">> {
    return this.#process.call({
      what: () => `report ${seen.key} ${revision(seen)} ${sandboxIn(status)}`,
      act: () => {
        const result = this.#reads.restingOn(seen, () => this.#records.report(seen, status));
        if (result.kind === "replaced") this.#told("claim", result.stored);
        return result;
      },
      tell: reported,
    });
  }

  reportBlock(seen: Stored<"block">, status: BlockStatus): Promise<ReplaceResult<"block">> {
    const word = status.returnedAt === undefined ? `used ${status.used}` : "returned";
    return this.#process.call({
      what: () => `report ${seen.key} ${revision(seen)} ${word}`,
      act: () => this.#records.reportBlock(seen, status),
      tell: reported,
    });
  }

  remove<K extends Kind>(kind: K, seen: Stored<K>): Promise<RemoveResult> {
    return this.#process.call({
      what: () => `remove ${kind} ${seen.key} ${revision(seen)}`,
      act: () => this.#records.remove(kind, seen),
      tell: ({ kind: outcome }) => outcome,
    });
  }

  async *list<K extends Kind>(kind: K): AsyncGenerator<Stored<K>, void, void> {
    yield* await this.#process.call({
      what: () => `list ${kind}s`,
      act: () => {
        const all = this.#records.list(kind);
        for (const stored of all) this.#told(kind, stored);
        return all;
      },
      tell: (all) => `${all.length}`,
    });
  }

  /** Lists at once, then hears of changes when its turn comes: of all that wait, of one, or that it missed some. */
  async *watch<K extends Kind>(kind: K, signal: AbortSignal): AsyncGenerator<Change<K>, void, void> {
    const { post } = this.#process;
    let news: Change<K>[] = [];
    let wake: (() => void) | undefined;
    const stop = this.#records.listen((written) => {
      if (written.kind !== kind) return;
      news.push(changeOf<K>(written));
      wake?.();
    });
    this.#process.onEnd(stop);
    yield* this.#heard(kind, this.#relist(kind));
    while (!signal.aborted) {
      if (news.length === 0) await new Promise<void>((resolve) => (wake = resolve));
      const fate = await this.#turn(kind, () => !post.deaf && !post.cut);
      if (fate === "gap") news = this.#relist(kind);
      yield* this.#heard(kind, news.splice(0, fate === "slow" ? 1 : news.length));
    }
    stop();
  }

  async close(): Promise<void> {}

  #heard<K extends Kind>(kind: K, news: readonly Change<K>[]): readonly Change<K>[] {
    for (const change of news) if (change.type === "put") this.#told(kind, change.stored);
    return news;
  }

  #told(kind: Kind, stored: Stored<Kind>): void {
    if (kind === "claim") this.#reads.told(this.#process, stored as Stored<"claim">);
  }

  #relist<K extends Kind>(kind: K): Change<K>[] {
    const puts = this.#records.list(kind).map((stored): Change<K> => ({ type: "put", stored }));
    return [{ type: "relist" }, ...puts, { type: "synced" }];
  }

  #turn(kind: Kind, ready: () => boolean): Promise<"well" | "slow" | "gap"> {
    const { post } = this.#process;
    return new Promise((resolve) => {
      if (!this.#process.alive) return;
      post.schedule.offer({
        owner: this.#process,
        who: post.name,
        what: () => `hears news of ${kind}s`,
        ready: () => !post.frozen && ready(),
        fates: ["slow", "gap"],
        run: (fate) => {
          const known = fate === "slow" || fate === "gap" ? fate : "well";
          resolve(known);
          return known === "well" ? "" : known;
        },
      });
    });
  }
}

function changeOf<K extends Kind>({ key, after }: Written): Change<K> {
  return after === undefined ? { type: "gone", key } : { type: "put", stored: after as Stored<K> };
}

function reported(result: ReplaceResult<Kind>): string {
  return result.kind === "replaced" ? `replaced ${revision(result.stored)}` : "CONFLICT";
}

function revision(stored: Stored<Kind>): string {
  return `r${stored.revision}`;
}

function shown<K extends Kind>(kind: K, stored: Stored<K>): string {
  return `${revision(stored)} ${describe(kind, stored.record)}`;
}

/** A record in few words. */
export function describe<K extends Kind>(kind: K, record: Records[K]): string {
  if (kind === "claim") return describeClaim(record as Records["claim"]);
  if (kind === "reservation") return describeReservation(record as Records["reservation"]);
  return kind === "block" ? describeBlock(record as Records["block"]) : keyOf(kind, record);
}

function describeBlock({ cidr, node, holes, granted, releasedAt }: Records["block"]): string {
  const state = `${granted === true ? " GRANTED" : ""}${releasedAt === undefined ? "" : " cooling"}`;
  return `${cidr} of ${node} without ${holes.join("+") || "holes"}${state}`;
}

function describeReservation({ address, claim, nonce, marked, releasedAt }: Records["reservation"]): string {
  const state = `${marked === true ? " MARKED" : ""}${releasedAt === undefined ? "" : " cooling"}`;
  return `${address} for ${claim.name} (${nonce})${state}`;
}

function sandboxIn({ attachment }: ClaimStatus): string {
  if (attachment === undefined) return "";
  return `${attachment.detached ? "detached" : "attached"} ${attachment.containerID}`;
}

function describeClaim(claim: Records["claim"]): string {
  const { binding, status, retained, releasing } = claim;
  const node = binding?.node === "" ? "held" : `on ${binding?.node}`;
  const words = [
    `${claim.name} ${claim.addresses.join("+") || "without addresses"} (${claim.nonce})`,
    binding &&
      `bound to ${binding.podName || "?"}/${binding.podUID || "?"} ${node} ${binding.token}`.trimEnd(),
    sandboxIn(status) || undefined,
    retained && `retained (${retained.because})`,
    releasing === true ? "RELEASING" : undefined,
  ];
  return words.filter((part) => part !== undefined).join(", ");
}
