// SPDX-License-Identifier: Apache-2.0

import type { Clock, Logger, Random } from "../../allocator/base/ports.ts";
import type { Connection } from "../../kube/api/connection.ts";
import { elect, type LeaderTerm, type LeaseTimings } from "../../kube/controller/leader-election.ts";
import { kubeLeaseLock } from "../../kube/controller/lease-lock.ts";
import type { Controller } from "../../kube/controller/run-queue.ts";
import type { Leadership } from "./controller.ts";

interface LeadershipOptions {
  readonly connection: Connection;
  /** Where the Lease lies. */
  readonly namespace: string;
  readonly name: string;
  /** Of this process and no other, also after a restart. */
  readonly identity: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  /** Those of the Kubernetes components if absent. */
  readonly timings?: LeaseTimings;
}

/** A leadership that also tells of the term for which it is held. */
export interface LeaderElection extends Leadership {
  /** Who comes to listen while this replica leads is called too, a turn later. */
  onGain(handler: (term: LeaderTerm) => void): () => void;
}

/** Stands for election until it is closed; then the lease is given back. */
export function startLeadership(options: LeadershipOptions): LeaderElection & Controller {
  const { connection, namespace, name, log } = options;
  const stop = new AbortController();
  const handlers = new Set<(term: LeaderTerm) => void>();
  let current: LeaderTerm | undefined;
  const notify = (handler: (term: LeaderTerm) => void, term: LeaderTerm) => {
    if (!term.holds() || !handlers.has(handler)) return;
    try {
      handler(term);
    } catch (error) {
      log.error("handler of a new leader failed", { error });
    }
  };
  const work = async (term: LeaderTerm) => {
    current = term;
    for (const handler of [...handlers]) notify(handler, term);
    await untilAborted(term.signal);
  };
  const box = kubeLeaseLock(connection, { namespace, name });
  const ended = elect({ ...options, box }, work, stop.signal);
  return {
    leads: () => !stop.signal.aborted && current?.holds() === true,
    onGain(handler) {
      handlers.add(handler);
      const term = current;
      if (term !== undefined) queueMicrotask(() => notify(handler, term));
      return () => handlers.delete(handler);
    },
    async close() {
      stop.abort();
      await ended;
    },
  };
}

/** Resolves when the signal aborts. */
export async function untilAborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
}
