// SPDX-License-Identifier: Apache-2.0
import { BerthError, isCorrupt, messageOf, type Refusal } from "../../../../allocator/base/errors.ts";
import { KeyedMutex } from "../../../../allocator/base/keyed-mutex.ts";
import type { Clock, Logger } from "../../../../allocator/base/ports.ts";
import type { ClaimAttachment } from "../../../../allocator/model/claim.ts";
import { NO_CLAIM } from "../claim-result.ts";
import type {
  AttachmentKey,
  AttachRequest,
  ClaimMatch,
  ClaimResult,
  ClaimSource,
  NoClaim,
  RequireOurs,
  SandboxEnd,
  SandboxNotice,
} from "../claim-source.ts";
import { isFormerNotice } from "./former-containers.ts";
import type { Presence } from "./presence.ts";

/** Codes of faults that pass when etcd can be reached again. */
const OF_ETCD = /^(STORE_|TIMED_OUT$)/;
const RETRY_MS = 5_000;
/** Everything else that etcd says has its own remedy with it. */
const UNREACHED = / (cannot be reached|did not answer|was not reached)/;

interface EtcdClaimsOptions {
  /** The claims of this host's containers, by the records in etcd. */
  readonly claims: ClaimSource;
  readonly presence: Pick<Presence, "isOwn">;
  /** Gives back what cni-ipam-etcd gave to a container that has ended. `isKnown`: it had been attached here. */
  readonly releaseFormer: (end: { container: AttachmentKey; isKnown: boolean }) => Promise<void>;
  readonly clock: Clock;
  readonly log: Logger;
}

/**
 * Claims that are kept in etcd, for an agent that goes on without it: what it cannot tell etcd at its start it tells later,
 * what it cannot prove it refuses, and it takes nothing for its own as long as its name may be another host's.
 */
export class EtcdClaims implements ClaimSource {
  readonly #options: EtcdClaimsOptions;
  readonly #adding = new Map<string, number>(); // claim -> ADDs that are under way with it
  readonly #unreported = new Map<string, SandboxNotice>(); // claim -> what etcd was not told yet of its sandbox
  readonly #locks = new KeyedMutex(); // what is told of a claim goes out in the order in which it came to be
  readonly #stop = new AbortController();
  #reporting: Promise<void> | undefined;

  constructor(options: EtcdClaimsOptions) {
    this.#options = options;
  }

  async find(request: AttachRequest, signal: AbortSignal): Promise<ClaimMatch | NoClaim | Refusal> {
    const { claims } = this.#options;
    if (request.pools.length === 0) return NO_CLAIM; // a network of this host alone
    return await this.#proven(request, () => claims.find(request, signal));
  }

  async attach(
    found: ClaimMatch,
    request: AttachRequest,
    signal: AbortSignal,
  ): Promise<ClaimResult | NoClaim | Refusal> {
    return await this.#proven(request, () => this.#options.claims.attach(found, request, signal));
  }

  /** Told in the background: an agent that starts without etcd serves DEL and CHECK. */
  async attached(notice: SandboxNotice): Promise<void> {
    this.#unreported.set(notice.claim, notice);
    this.#reporting ??= this.#report();
  }

  async detached(notice: SandboxEnd): Promise<void> {
    const { claims, releaseFormer } = this.#options;
    const container = notice.attachment;
    if (isFormerNotice(notice)) return await releaseFormer({ container, isKnown: false });
    this.#unreported.delete(notice.claim);
    await this.#locks.run(notice.claim, () => claims.detached(notice));
    // it may have begun with another address than an import kept for it
    if (notice.remaining === undefined) await releaseFormer({ container, isKnown: true });
  }

  async lastSandboxes(claim: string): Promise<readonly ClaimAttachment[]> {
    try {
      return await this.#options.claims.lastSandboxes(claim);
    } catch (error) {
      throw error instanceof BerthError ? unprovable(error, []) : error;
    }
  }

  inUse(): readonly string[] {
    const { claims, presence } = this.#options;
    return presence.isOwn ? claims.inUse().filter((claim) => !this.#adding.has(claim)) : [];
  }

  async absent(claim: string, requireOurs?: RequireOurs): Promise<void> {
    const { claims, presence } = this.#options;
    if (presence.isOwn && !this.#adding.has(claim)) await claims.absent(claim, requireOurs);
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#reporting;
  }

  /** While it is under way nobody takes what it has made for something that a crash has left. */
  async #proven<T>({ pod, pools }: AttachRequest, work: () => Promise<T>): Promise<T> {
    const claim = `${pod.namespace}/${pod.name}`;
    this.#adding.set(claim, (this.#adding.get(claim) ?? 0) + 1);
    try {
      return await work();
    } catch (error) {
      throw error instanceof BerthError ? unprovable(error, pools) : error;
    } finally {
      const others = (this.#adding.get(claim) ?? 1) - 1;
      if (others > 0) this.#adding.set(claim, others);
      else this.#adding.delete(claim);
    }
  }

  async #report(): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted && this.#unreported.size > 0) {
      for (const [claim, notice] of this.#unreported)
        if (signal.aborted || (await this.#tell(claim, notice)) === "etcd") break;
      if (this.#unreported.size > 0) await this.#options.clock.sleep(RETRY_MS, signal);
    }
    this.#reporting = undefined;
  }

  /** Where the fault is: a claim that cannot be read keeps no other, and with anything else the next one would meet the same. */
  async #tell(claim: string, notice: SandboxNotice): Promise<"none" | "claim" | "etcd"> {
    const { claims, log } = this.#options;
    try {
      await this.#locks.run(claim, async () => {
        if (this.#unreported.get(claim) === notice) await claims.attached(notice);
      });
      if (this.#unreported.get(claim) === notice) this.#unreported.delete(claim);
      return "none";
    } catch (error) {
      log.warn("etcd was not told of a container; tried again", { claim, error: messageOf(error) });
      return isCorrupt(error) ? "claim" : "etcd";
    }
  }
}

/** What an operator of the host reads: which pool, what cannot be reached, and what to do. */
export function unprovable(error: BerthError, pools: readonly string[]): BerthError {
  if (!OF_ETCD.test(error.code)) return error;
  const which = pools.length === 0 ? "" : ` of pool ${pools.map((pool) => JSON.stringify(pool)).join(", ")}`;
  const todo = UNREACHED.test(error.message) ? "make etcd reachable from this host" : "fix that";
  const words = `no address${which} can be proven free: ${error.message}; containers that run keep theirs; ${todo}, and start the container again`;
  return new BerthError(error.code, words, { details: error.details, cause: error });
}
