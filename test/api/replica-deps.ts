// SPDX-License-Identifier: Apache-2.0
import { silent, unmetered } from "../../allocator/ports.ts";
import type { Connection } from "../../kube/connection.ts";
import type { Notice } from "../../kube/events.ts";
import { createClock } from "../../system/clock.ts";
import { createRandom } from "../../system/random.ts";
import type { ControllerDeps } from "../../webhook/controllers/controller.ts";
import type { TermLeadership } from "../../webhook/controllers/leadership.ts";
import { openReplica, type Replica, type ReplicaOptions } from "../../webhook/replica.ts";

/** A replica with this host's clock that logs nothing, everything loaded. Whoever opens it closes it. */
export async function openTestReplica(
  connection: Connection,
  options: Partial<ReplicaOptions> = {},
): Promise<Replica> {
  const replica = await openReplica({
    ...{ connection, clock: createClock(), random: createRandom(), log: silent },
    ...options,
  });
  await replica.synced;
  return replica;
}

/** Leads from the beginning, or never. */
export function steadyLeadership(leads = true): TermLeadership {
  const term = { signal: new AbortController().signal, holds: () => leads };
  return {
    leads: () => leads,
    onGain(handler) {
      if (leads) queueMicrotask(() => handler(term));
      return () => {};
    },
  };
}

/** Keeps what was recorded. */
export class Notices {
  readonly all: Notice[] = [];

  record(notice: Notice): void {
    this.all.push(notice);
  }

  /** Reasons of what was recorded about objects of that name. */
  reasonsOf(name: string): readonly string[] {
    return this.all.filter(({ regarding }) => regarding.name === name).map(({ reason }) => reason);
  }
}

/** What a controller works with, on that replica: it leads, suspicions come to nothing and nothing is counted. */
export function controllerDeps(replica: Replica, over: Partial<ControllerDeps> = {}): ControllerDeps {
  const { context, mirror, watches, inventory, connection } = replica;
  return {
    ...{ context, mirror, watches, inventory, connection },
    leadership: steadyLeadership(),
    events: new Notices(),
    metrics: unmetered,
    suspect: () => {},
    ...over,
  };
}
