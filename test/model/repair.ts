// SPDX-License-Identifier: Apache-2.0

import { KeyedMutex } from "../../allocator/base/keyed-mutex.ts";
import { noopLogger } from "../../allocator/base/ports.ts";
import type { Context } from "../../allocator/cache/context.ts";
import { audit } from "../../allocator/gc/audit.ts";
import { GarbageCollector } from "../../allocator/gc/garbage-collector.ts";
import { isDetached } from "../../allocator/lifecycle/bind.ts";
import { type Claim, isBound } from "../../allocator/model/claim.ts";
import type { ClusterState, PodState } from "../../allocator/model/cluster-state.ts";
import { podFactsOf, workloadFactsOf } from "../support/fixtures.ts";
import { MemoryRecords } from "./memory-records.ts";
import type { RunState } from "./run-state.ts";
import { Sight } from "./sight.ts";
import { BookStore } from "./store.ts";

/** Longer than the grace of an orphan and any cooldown of a scenario; three of them are longer than a hold. */
const BETWEEN_PASSES_MS = 45_000;
const PASSES = 5;

/**
 * What is left if everybody crashes at this moment and only the garbage collector goes on: first while the owners stay, when
 * the audit must find nothing; then when they are gone, when nothing may be left but what people made by hand.
 * Gives the words for what is not as it must be.
 */
export async function brokenForGood(state: RunState): Promise<string | undefined> {
  const after = new Aftermath(state);
  await after.collect(ownersStay(after.records));
  const dirt = after.dirt(state);
  if (dirt !== undefined) return `after a crash of all, collected while their owners stay: ${dirt}`;
  after.endSandboxes();
  await after.collect(OWNERS_GONE);
  const leak = after.leak();
  return leak && `after a crash of all, collected when their owners are gone: ${leak}`;
}

/** A copy of the records in which time goes on without the processes of the run. */
class Aftermath {
  readonly records: MemoryRecords;
  readonly #context: Context;
  #now: number;

  constructor({ records, pools, now }: RunState) {
    this.records = new MemoryRecords(records);
    this.#now = now;
    const clock = { now: () => this.#now, monotonic: () => this.#now, sleep: async () => {} };
    this.#context = {
      store: new BookStore(this.records, clock),
      view: new Sight(pools, { claims: this.records, reservations: this.records }),
      clock,
      random: { token: () => `repair.${this.#now}`, fraction: () => 0.5 },
      log: noopLogger,
      serial: new KeyedMutex(),
    };
  }

  async collect(inventory: ClusterState): Promise<void> {
    const collector = new GarbageCollector(this.#context, inventory);
    for (let pass = 0; pass < PASSES; pass++) {
      await collector.pass();
      this.#now += BETWEEN_PASSES_MS;
    }
  }

  /** Every agent reports that its sandboxes are gone. */
  endSandboxes(): void {
    for (const stored of this.records.list("claim")) {
      const { binding } = stored.record;
      if (isDetached(stored.record) || binding === undefined) continue;
      const { node, podUID, since } = binding;
      const attachment = { node, containerID: "c", interface: "eth0", podUID, since, detached: true };
      this.records.report(stored, { attachment });
    }
  }

  dirt({ pools, uses }: RunState): string | undefined {
    const attachments = [...uses].map(([sandbox, { key, addresses }]) => ({
      node: "n",
      network: "net",
      containerID: sandbox,
      interface: "eth0",
      claim: key,
      addresses,
    }));
    const [claims, reservations] = [this.records.list("claim"), this.records.list("reservation")];
    const findings = audit({
      pools,
      claims: claims.map(({ record }) => record),
      reservations: reservations.map(({ record }) => record),
      attachments,
    });
    return findings.find(({ kind }) => kind !== "unreserved-request")?.message;
  }

  leak(): string | undefined {
    const claims = this.records.list("claim").map(({ record }) => record);
    const left = claims.find(({ handMade }) => handMade !== true);
    if (left !== undefined) return `claim ${left.namespace}/${left.name} is left over`;
    const held = new Set(claims.flatMap(({ addresses }) => addresses));
    const lost = this.records.list("reservation").find(({ record }) => !held.has(record.address));
    return lost && `address ${lost.key} is left reserved`;
  }
}

function ownersStay(auditInput: MemoryRecords): ClusterState {
  const podOf = ({ namespace, name, binding }: Claim): PodState => {
    const { podName, podUID, node } = binding ?? { podName: name, podUID: "", node: "" };
    return podFactsOf(podName, { namespace, uid: podUID, node });
  };
  return {
    async pod(namespace, name) {
      const claims = auditInput.list("claim").map(({ record }) => record);
      const its = claims.find((c) => c.namespace === namespace && c.binding?.podName === name && isBound(c));
      return its && podOf(its);
    },
    workload: async (ref) => workloadFactsOf({ ...ref, uid: "", replicas: 1_000 }),
    namespace: async () => undefined,
    fenced: async () => false,
  };
}

const OWNERS_GONE: ClusterState = {
  pod: async () => undefined,
  workload: async () => undefined,
  namespace: async () => undefined,
  fenced: async () => false,
};
