// SPDX-License-Identifier: Apache-2.0

import { isStoreFault } from "../../../allocator/base/errors.ts";
import { unknownSandbox } from "../add/takeover.ts";
import { placeOf } from "../claims/claim-place.ts";
import type { IsKnown, RequireOurs } from "../claims/claim-source.ts";
import { type Attachment, attachmentKey, detached, lookForNetns } from "../journal/attachment.ts";
import type { AgentServices } from "../services/services.ts";

const EVERY_MS = 30_000;
/** No runtime keeps a call alive for so long. */
const TOMBSTONE_MS = 600_000;
/** Sandboxes looked at in one go, in 1 ms or so; then ADDs that wait have their turn. */
const AT_ONCE = 100;

type Swept = Pick<
  AgentServices,
  | "attachments"
  | "blockFollower"
  | "locks"
  | "host"
  | "detachReporter"
  | "bootId"
  | "clock"
  | "log"
  | "claimSource"
  | "journal"
>;

type Released = Pick<Swept, "attachments" | "bootId" | "clock" | "log">;

/** Sandboxes do not survive a reboot: releases everything that an earlier boot attached. */
export async function releasePreviousBoot({ attachments, bootId, clock, log }: Released): Promise<void> {
  const lost = attachments.attached().filter((attachment) => attachment.bootId !== bootId);
  // The other boot's monotonic clock says nothing about this one's.
  const old = [...attachments.all()].filter((a) => a.state === "detached" && a.bootId !== bootId);
  if (lost.length + old.length === 0) return;
  // Of a block's addresses it is not known when they were free; they have not been in use since the boot.
  const since = ({ source }: Attachment) => (source === "block" ? 0 : clock.now());
  const ended = lost.map((attachment) => detached(attachment, { now: since(attachment), deadlineNs: 0n }));
  const put = [...ended, ...old].map((attachment) => ({ ...attachment, deadlineNs: 0n, bootId }));
  await attachments.commit({ put });
  if (lost.length > 0) log.info("host was rebooted, its attachments are freed", { count: lost.length });
}

/**
 * Runs `work` if no sandbox has the claim, in this journal or by another journal's report. ADDs of the claim wait meanwhile: while its
 * lock is held, none is between binding and journal. `isKnown`: to the journal. Throws NOT_READY where another process has taken that.
 */
export async function ifUnused(
  claim: string,
  services: Pick<AgentServices, "attachments" | "locks" | "claimSource" | "host" | "bootId" | "log"> & {
    readonly journal: Pick<AgentServices["journal"], "requireOurs">;
  },
  work: (isKnown: IsKnown, requireOurs: RequireOurs) => Promise<void>,
): Promise<void> {
  await services.locks.run(`claim\0${claim}`, async () => {
    if (services.attachments.ofClaim(claim).length > 0) return;
    const unknown = await unknownSandbox(claim, services);
    const requireOurs = () => services.journal.requireOurs();
    requireOurs();
    if (unknown === undefined) return await work((one) => services.attachments.knows(one), requireOurs);
    const { containerID, netns } = unknown;
    services.log.warn("claim is kept for a sandbox that is up and not in the journal", {
      claim,
      containerID,
      netns,
    });
  });
}

/**
 * Finds sandboxes that ended without a DEL: runtimes lose their records, and host-device sends none once the netns is
 * gone. What was at the path at ADD has to be found missing twice, half a minute apart.
 */
export class OrphanSweeper {
  readonly #parts: Swept;
  readonly #stop = new AbortController();
  #suspects: ReadonlySet<Attachment> = new Set();
  #running: Promise<void> | undefined;

  constructor(services: Swept) {
    this.#parts = services;
  }

  start(): void {
    this.#running ??= this.#run();
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  /** Checks every sandbox once, the age of the tombstones, and what counts as in use on this node. */
  async look(): Promise<void> {
    try {
      await this.#lookAtSandboxes();
    } finally {
      await this.#lookAtClaims(); // most of that needs no room in the journal
    }
  }

  async #lookAtSandboxes(): Promise<void> {
    const { attachments, detachReporter } = this.#parts;
    const gone = await this.#findGone();
    const twice = gone.filter((attachment) => this.#suspects.has(attachment));
    this.#suspects = new Set(gone);
    const freed = await Promise.allSettled(twice.map((attachment) => this.#free(attachment)));
    if (twice.length > 0) detachReporter.wake();
    const failed = freed.find((one) => one.status === "rejected");
    if (failed !== undefined) throw failed.reason;
    const now = this.#parts.clock.now();
    const forgotten = [...attachments.all()].filter(
      (one) => one.state === "detached" && !one.noticePending && one.detachedAt < now - this.#keptFor(one),
    );
    if (forgotten.length > 0) await attachments.commit({ forgotten });
  }

  /** Of a block's address nothing else tells the next process how long it cools. */
  #keptFor({ source, pool }: Attachment): number {
    const own = source === "block" && pool !== undefined ? this.#parts.blockFollower.pool(pool) : undefined;
    return Math.max(TOMBSTONE_MS, own?.cooldownMs ?? 0);
  }

  /** A claim that cannot be looked at keeps no other; of an etcd that is away the others could not be, either. */
  async #lookAtClaims(): Promise<void> {
    const { claimSource, attachments, journal, log } = this.#parts;
    journal.requireOurs();
    const away = new Set<string | undefined>(); // names of etcds; undefined: the claims that are in none of them
    for (const claim of claimSource.inUse()) {
      const { etcd } = placeOf(claim);
      if (away.has(etcd) || attachments.ofClaim(claim).length > 0) continue;
      try {
        await ifUnused(claim, this.#parts, (_, requireOurs) => claimSource.absent(claim, requireOurs));
      } catch (error) {
        log.error("claim was not looked at", { claim, error });
        if (isStoreFault(error)) away.add(etcd);
      }
    }
  }

  async #run(): Promise<void> {
    const { clock, log } = this.#parts;
    while (!this.#stop.signal.aborted) {
      try {
        await this.look();
      } catch (error) {
        log.error("sandboxes were not looked at", { error });
      }
      await clock.sleep(EVERY_MS, this.#stop.signal);
    }
  }

  async #findGone(): Promise<readonly Attachment[]> {
    const { attachments, host, clock } = this.#parts;
    const gone: Attachment[] = [];
    for (const [i, attachment] of attachments.attached().entries()) {
      if (i % AT_ONCE === AT_ONCE - 1) await clock.sleep(0);
      if (attachment.netnsSeen === false) continue;
      if ((await lookForNetns(attachment, host)) === "gone") gone.push(attachment);
    }
    return gone;
  }

  async #free(attachment: Attachment): Promise<void> {
    const { attachments, locks, clock, log } = this.#parts;
    await locks.run(attachmentKey(attachment), async () => {
      if (attachments.get(attachment) !== attachment) return;
      const tombstone = detached(attachment, { now: clock.now(), deadlineNs: attachment.startNs });
      await attachments.commit({ put: [tombstone] });
      const { containerID, netns, scope } = attachment;
      log.info("sandbox went without a DEL, its attachment is freed", {
        containerID,
        netns,
        network: scope.network,
      });
    });
  }
}
