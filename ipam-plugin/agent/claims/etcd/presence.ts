// SPDX-License-Identifier: Apache-2.0
import { BerthError, messageOf } from "../../../../allocator/base/errors.ts";
import { inParallel } from "../../../../allocator/base/parallel.ts";
import type { Clock, Logger } from "../../../../allocator/base/ports.ts";
import type { HostRecord, HostRegistry, StoredHost } from "../../../../allocator/store/etcd/hosts.ts";
import type { EtcdProcess } from "../../journal/etcd-processes.ts";
import { describeUse, type InUse, isSameUse, sayUnseen } from "./in-use.ts";

/** How often a host says that it is there. */
const BEAT_MS = 10_000;
/** With 10,000 containers, and 1 ms for a read, all are read in under a second. */
const READS_AT_ONCE = 16;

/** Who this is, beside its name. */
interface Self {
  readonly journal: string;
  readonly process: string;
  /** Containers of this host still use addresses out of etcd. */
  readonly isUsing: boolean;
  /** The process has written its record before what is there was written, by one that was not there before it. */
  readonly wasThere: boolean;
  /** etcd does not keep what a container of this host has. */
  readonly isForgotten: boolean;
}

type HostState =
  | "write"
  /** A person has said that this host is gone for good. */
  | "fenced"
  /** Another host is called so. */
  | "another"
  /** A later process of this host, or a copy of it, serves. */
  | "replaced"
  /** etcd has lost what this host wrote: others may be given what its containers have. */
  | "forgotten";

/**
 * What a host makes of the record under its name.
 *
 * | there                            |                                                                             |
 * |----------------------------------|-----------------------------------------------------------------------------|
 * | nothing                          | write; forgotten if its containers' claims are not its there either         |
 * | another journal's                | another; write if that one is fenced: what it had is collected              |
 * | its own, fenced                  | fenced while containers use its addresses; write, and be back, when none do |
 * | its own, of another process      | write: that one has ended; replaced, if it came after this one              |
 * | its own                          | write; forgotten if it is not as this process has left it, and its containers' claims are not its |
 */
export function hostStateOf(there: HostRecord | undefined, self: Self): HostState {
  const own = self.isForgotten ? "forgotten" : "write";
  if (there === undefined) return own;
  if (there.journal !== self.journal) return there.fenced === undefined ? "another" : "write";
  if (there.fenced !== undefined) return self.isUsing ? "fenced" : "write";
  return there.process !== self.process && self.wasThere ? "replaced" : own;
}

interface PresenceOptions {
  readonly registry: Pick<HostRegistry, "get" | "put">;
  /** This host's name. */
  readonly node: string;
  /** The id of this host's journal. */
  readonly journal: () => string;
  readonly process: EtcdProcess;
  readonly clock: Clock;
  readonly log: Logger;
  readonly beatMs?: number;
  /** Whether etcd, now, keeps for this host what a container of it has. */
  readonly isKept: (use: InUse) => Promise<boolean>;
}

/** This host's record in etcd: written every few seconds, so that a person sees that it is alive, and it sees that it was fenced. */
export class Presence {
  readonly #options: PresenceOptions;
  readonly #stop = new AbortController();
  readonly #known = Promise.withResolvers<void>();
  /** What containers of this host have; absent: it is not known yet. */
  #inUse: (() => readonly InUse[]) | undefined;
  #own: StoredHost | undefined;
  /** Revision of what this process wrote last, none yet: infinity. What is older, in the same etcd, is out of a backup, and no later process's. */
  #written = Number.POSITIVE_INFINITY;
  /** What a container of this host has and etcd does not keep for it; absent: nothing was missed. */
  #missing: InUse | undefined;
  /** Revision of the record that this process wrote last; absent: none, or etcd was away since. */
  #last: number | undefined;
  #state: HostState | undefined;
  #there: StoredHost | undefined;
  #running: Promise<void> | undefined;
  #beating: Promise<void> | undefined;
  /** Why the last look was none, in words; undefined: it was one. */
  fault: string | undefined;

  constructor(options: PresenceOptions) {
    this.#options = options;
  }

  /** Resolves once etcd has answered. */
  get known(): Promise<void> {
    return this.#known.promise;
  }

  /** Everything under its name in etcd is this host's. */
  get isOwn(): boolean {
    return this.#state === "write";
  }

  /** Why this host gives no address, in words; undefined: it may. */
  get refusal(): string | undefined {
    const { node } = this.#options;
    const { fenced, journal = "" } = this.#there?.record ?? {};
    const missing = this.#missing === undefined ? [] : [this.#missing];
    // only there: every ADD asks, and should not go through the journal for it
    const using = this.#state === "fenced" ? (this.#inUse?.() ?? []) : [];
    switch (this.#state) {
      case "fenced":
        return `host ${node} was fenced at ${new Date(fenced?.at ?? 0).toISOString()} by ${fenced?.by}, so that the addresses of its containers may be others' now${sayFirst(using)}; stop its containers, and it serves again by itself${sayUnseen(using, node)}`;
      case "another":
        return `another host is called ${node} in etcd (journal ${journal.slice(0, 8)}); start this one with another --node, or, if that one is gone for good: berthctl --etcd URL fence ${node}`;
      case "forgotten":
        return `etcd does not have what containers of host ${node} have${sayFirst(missing)}: its data was lost or is of an older backup, that claim was released by force, or this host had another name, and others may be given their addresses; stop its containers, and it serves again by itself${sayUnseen(missing, node)}`;
      case "replaced":
        return `another process serves as host ${node} since; stop one of the two, or start one with another --node; if there is no other (etcd is out of a backup), start this one again`;
      default:
        return undefined;
    }
  }

  /** `inUse`: what containers of this host have of this etcd, by its journal. */
  start(inUse: () => readonly InUse[]): void {
    this.#inUse = inUse;
    this.#running ??= this.#run();
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  /** Looks, decides and writes once. Throws BerthError; nothing is known then but what was. */
  async beat(): Promise<void> {
    this.#beating ??= this.#beat().finally(() => {
      this.#beating = undefined;
    });
    try {
      await this.#beating;
    } catch (error) {
      this.#last = undefined; // what answers next may be an etcd out of a backup in which the record is the same
      throw error;
    }
  }

  /**
   * Of this host's record, as long as the host may give addresses; `failed`: one that it has not any more. Throws NOT_READY in
   * words where the host may not, and what `beat` throws.
   */
  async revision(failed?: number): Promise<number> {
    if (this.#own !== undefined && this.#own.revision === failed) this.#own = undefined;
    // the first look may come to a record that is being changed
    for (let look = 0; look < 2 && this.#own === undefined; look++) await this.beat();
    if (this.refusal !== undefined) throw new BerthError("NOT_READY", this.refusal);
    if (this.#own !== undefined) return this.#own.revision;
    throw new BerthError(
      "STORE_UNAVAILABLE",
      `the record of host ${this.#options.node} in etcd is being changed`,
    );
  }

  async #beat(): Promise<void> {
    const { registry, node, process } = this.#options;
    const journal = this.#options.journal();
    const there = this.#own ?? (await registry.get(node));
    const inUse = this.#inUse?.();
    const isUsing = inUse === undefined || inUse.length > 0;
    // as this process has left it, etcd is the one that it wrote into
    const isKnown = this.#last !== undefined && there?.revision === this.#last;
    const missing = isKnown ? undefined : await this.#missingOf(inUse ?? []);
    this.#missing = missing;
    const isForgotten = missing !== undefined;
    const isLater = there !== undefined && this.#written < there.revision;
    const wasThere = isLater && !process.isFormer(there.record.process);
    const self = { journal, process: process.id, isUsing, wasThere, isForgotten };
    const state = hostStateOf(there?.record, self);
    if (state !== "write") {
      this.#last = undefined; // a backup gives revisions twice: what is written next, by anybody, may come to be at this one
      return this.#enter(state, there);
    }
    this.#own = undefined; // as long as it is not known what became of the write
    const written = await registry.put(node, this.#recordNow(), there?.revision ?? 0);
    if (written === "changed") return;
    this.#own = written;
    if (inUse !== undefined) this.#last = written.revision;
    this.#written = written.revision;
    this.#enter("write", written);
  }

  /** That it gives no address does not mean that its containers are gone: whoever looks must not take it for a host that is off. */
  async #tellThatItIsAlive(): Promise<void> {
    const { registry, node } = this.#options;
    const { refusal = "" } = this;
    const record = { ...this.#recordNow(), refusal };
    // what is there since is seen at the next look
    const written = await registry.put(node, record, this.#there?.revision ?? 0);
    if (written !== "changed") this.#written = written.revision;
  }

  #recordNow(): HostRecord {
    const { journal, process, clock } = this.#options;
    return { journal: journal(), process: process.id, seen: Math.floor(clock.now()) };
  }

  /** One that etcd does not keep. An ADD may wait for the answer, so the claims are not asked for in turn. */
  async #missingOf(inUse: readonly InUse[]): Promise<InUse | undefined> {
    let missing: InUse | undefined;
    await inParallel(inUse, READS_AT_ONCE, async (use) => {
      if (missing === undefined && (await this.#isMissing(use))) missing ??= use;
    });
    return missing;
  }

  async #isMissing(use: InUse): Promise<boolean> {
    const { isKept } = this.#options;
    if ((await isKept(use)) || !this.#isStillUsed(use)) return false;
    // its container may have ended and begun again while it was looked for
    return !(await isKept(use)) && this.#isStillUsed(use);
  }

  #isStillUsed(use: InUse): boolean {
    return this.#inUse?.().some((one) => isSameUse(one, use)) !== false;
  }

  #enter(state: HostState, there: StoredHost | undefined): void {
    const before = this.#state;
    this.#state = state;
    this.#there = there;
    this.#known.resolve();
    const { log, node } = this.#options;
    if (before === state) return;
    if (state === "write") log.info("this host is known in etcd", { node });
    else log.error("this host gives no address", { node, reason: this.refusal ?? "" });
  }

  async #run(): Promise<void> {
    const { clock, log, node, beatMs = BEAT_MS } = this.#options;
    while (!this.#stop.signal.aborted) {
      try {
        await this.beat();
        this.fault = undefined;
        if (this.#own === undefined && this.#state === "write") await this.beat(); // it was changed: why?
        if (this.#state === "forgotten") await this.#tellThatItIsAlive();
      } catch (error) {
        this.#own = undefined;
        if (!(error instanceof BerthError)) throw error;
        this.fault = error.message;
        log.warn("this host could not tell etcd that it is there", { node, error: messageOf(error) });
      }
      await clock.sleep(this.#state === undefined ? beatMs / 10 : beatMs, this.#stop.signal);
    }
  }
}

function sayFirst([use]: readonly InUse[]): string {
  return use === undefined ? "" : ` (${describeUse(use)}, for one)`;
}
