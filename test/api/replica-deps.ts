// SPDX-License-Identifier: Apache-2.0
import { noopMetrics } from "../../allocator/base/ports.ts";
import type { Connection } from "../../kube/api/connection.ts";
import type { EventInput } from "../../kube/controller/event-recorder.ts";
import { type CachesOptions, type ClusterCaches, openCaches } from "../../webhook/cluster-state/caches.ts";
import type { ControllerDeps, Leadership } from "../../webhook/controllers/controller.ts";
import type { LeaderElection } from "../../webhook/controllers/leadership.ts";
import { hostDeps } from "../support/host-deps.ts";

/** A replica with this host's clock that logs nothing, everything loaded. Whoever opens it closes it. */
export async function openTestReplica(
  connection: Connection,
  options: Partial<CachesOptions> = {},
): Promise<ClusterCaches> {
  const replica = await openCaches({
    connection,
    ...hostDeps(),
    ...options,
  });
  await replica.synced;
  return replica;
}

/** Leads from the beginning, or never. */
export function steadyLeadership(isLeading = true): LeaderElection {
  const term = { signal: new AbortController().signal, holds: () => isLeading };
  return {
    leads: () => isLeading,
    onGain(handler) {
      if (isLeading) queueMicrotask(() => handler(term));
      return () => {};
    },
  };
}

/** A leadership that can be given and taken. */
export class SwitchedLeadership implements Leadership {
  #leads = false;
  readonly #handlers = new Set<() => void>();

  leads(): boolean {
    return this.#leads;
  }

  onGain(handler: () => void): () => void {
    this.#handlers.add(handler);
    return () => this.#handlers.delete(handler);
  }

  set(leads: boolean): void {
    this.#leads = leads;
    if (leads) for (const handler of this.#handlers) handler();
  }
}

/** Keeps what was recorded. */
export class Notices {
  readonly all: EventInput[] = [];

  record(notice: EventInput): void {
    this.all.push(notice);
  }

  /** Reasons of what was recorded about objects of that name. */
  reasonsOf(name: string): readonly string[] {
    return this.all.filter(({ regarding }) => regarding.name === name).map(({ reason }) => reason);
  }
}

/** What a controller works with, on that replica: it leads, what is queued for the garbage collector comes to nothing and nothing is counted. */
export function controllerDeps(replica: ClusterCaches, over: Partial<ControllerDeps> = {}): ControllerDeps {
  const { context, cache, watches, inventory, connection } = replica;
  return {
    ...{ context, cache, watches, inventory, connection },
    leadership: steadyLeadership(),
    events: new Notices(),
    metrics: noopMetrics,
    enqueueForGc: () => {},
    ...over,
  };
}
