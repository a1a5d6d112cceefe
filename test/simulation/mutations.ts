// SPDX-License-Identifier: Apache-2.0
// What could be wrong, put between the processes and what they rely on: the simulation must find each of these.

import { isRefusal } from "../../allocator/base/errors.ts";
import type { BlockEvidence } from "../../allocator/blocks/give-back.ts";
import type { RecordCache } from "../../allocator/cache/cache.ts";
import { admissionAnswerOf, requestAsAnswered, settleAnswer } from "../../allocator/demand/admitted-pod.ts";
import { isDetached } from "../../allocator/lifecycle/bind.ts";
import { release } from "../../allocator/lifecycle/release.ts";
import { ASSIGNED_CLAIM, IPS } from "../../allocator/manifest/annotations.ts";
import { podMetadata } from "../../allocator/manifest/kubernetes-object.ts";
import type { Block } from "../../allocator/model/block.ts";
import type { Claim } from "../../allocator/model/claim.ts";
import type { ClusterState, PodState } from "../../allocator/model/cluster-state.ts";
import type { Reservation } from "../../allocator/model/reservation.ts";
import type { Database } from "../../allocator/store/sqlite/database.ts";
import type { Work } from "../../allocator/store/sqlite/sql.ts";
import type { Kind, Store, Stored } from "../../allocator/store/store.ts";
import type { BlockSource } from "../../ipam-plugin/agent/blocks/block-source.ts";
import type { ClaimSource } from "../../ipam-plugin/agent/claims/claim-source.ts";
import type { JournalContents } from "../../ipam-plugin/agent/journal/journal.ts";
import { altered } from "./altered.ts";
import { MOST_REPLICAS } from "./cast.ts";
import type { FaultInjection, Role } from "./setting.ts";

/** The garbage collector deletes what it did not mark. */
export function withoutMark(store: Store): Store {
  return altered(store, {
    replace: async (kind, seen, next) => {
      const marks = kind === "reservation" && (next as Reservation).marked === true;
      return marks ? { kind: "replaced", stored: seen } : await store.replace(kind, seen, next);
    },
  });
}

/** What it created it takes for granted, once: that is when it should look. */
export function withoutReadingBack(store: Store): Store {
  const created = new Map<string, Stored<Kind>>(); // address -> reservation as it was created
  return altered(store, {
    create: async (kind, record) => {
      const result = await store.create(kind, record);
      if (kind === "reservation" && result.kind === "created") created.set(result.stored.key, result.stored);
      return result;
    },
    get: async <K extends Kind>(kind: K, key: string) => {
      const known = kind === "reservation" ? (created.get(key) as Stored<K> | undefined) : undefined;
      created.delete(key);
      return known ?? (await store.get(kind, key));
    },
  });
}

/** No node has a block. */
export function blindToBlocks(store: Store): Store {
  return altered(store, {
    get: async <K extends Kind>(kind: K, key: string) =>
      kind === "block" ? undefined : await store.get(kind, key),
  });
}

/** Whoever has it, nobody uses it. */
export function takenBackUnasked({ uid }: Stored<"block">): BlockEvidence {
  return { kind: "returned", uid };
}

/** Every block is this node's. */
export function givingFromAll(source: BlockSource, cache: RecordCache): BlockSource {
  return {
    ...source,
    get isSynced() {
      return source.isSynced;
    },
    blocks: () => cache.blocks(),
  };
}

/** Nothing in a block that is being granted is reserved. */
export function grantingBlindly(store: Store): Store {
  return altered(store, {
    replace: async (kind, seen, next) => {
      const grants =
        kind === "block" && (next as Block).granted === true && (seen.record as Block).granted !== true;
      const holes = (seen.record as Block).holes;
      return await store.replace(kind, seen, grants ? { ...next, holes } : next);
    },
  });
}

/** What the view shows is taken for what is stored. */
export function trustingCache(store: Store, cache: RecordCache): Store {
  return altered(store, {
    get: async <K extends Kind>(kind: K, key: string) => {
      const shown = kind === "claim" ? cache.claim(key) : cache.reservation(key as Reservation["address"]);
      return (shown as Stored<K> | undefined) ?? (await store.get(kind, key));
    },
  });
}

/** Whatever is there goes, not what was seen. */
export function removingAnything(store: Store): Store {
  return altered(store, {
    remove: async (kind, seen) => {
      const there = await store.get(kind, seen.key);
      return there === undefined ? { kind: "conflict" } : await store.remove(kind, there);
    },
  });
}

/** The last writer wins. */
export function replacingAnything(store: Store): Store {
  return altered(store, {
    replace: async (kind, seen, next) => {
      const there = await store.get(kind, seen.key);
      return there === undefined ? { kind: "conflict" } : await store.replace(kind, there, next);
    },
  });
}

/** An address that is taken is taken all the same. */
export function takingAnyway(store: Store): Store {
  return altered(store, {
    create: async (kind, record) => {
      const result = await store.create(kind, record);
      if (kind !== "reservation" || result.kind === "created") return result;
      const replaced = await store.replace(kind, result.stored, record);
      return replaced.kind === "replaced" ? { kind: "created", stored: replaced.stored } : result;
    },
  });
}

/** What a review says is written there and then, as if its pod were there. */
export const writingAtReview: FaultInjection = {
  reviewed: async (context, inventory, pod) => {
    const reported = admissionAnswerOf(pod.metadata.annotations);
    const { namespace: name } = pod.metadata;
    const namespace = await inventory.namespace(name);
    if (reported === undefined || namespace === undefined) return;
    const of = { pod: podMetadata(pod, name), namespace, answer: reported };
    const allocation = await requestAsAnswered(context, inventory, of);
    if (allocation !== undefined && !isRefusal(allocation)) await settleAnswer(context, allocation, reported);
  },
};

/** Says that it wrote that a sandbox is up, and did not. */
export function withoutReport(store: Store): Store {
  return altered(store, {
    report: async (seen, status) =>
      status.attachment?.detached === false
        ? { kind: "replaced", stored: seen }
        : await store.report(seen, status),
  });
}

/** Every node counts as gone for good. */
export function fencingAll(inventory: ClusterState): ClusterState {
  return altered(inventory, { fenced: async () => true });
}

/** The end of any sandbox of the pod is taken for the end of the one that is up. */
export function mistakingSandboxes(claimSource: ClaimSource, store: Store): ClaimSource {
  return altered(claimSource, {
    detached: async (notice) => {
      const known = (await store.get("claim", notice.claim))?.record.status.attachment;
      const containerID = known?.containerID ?? notice.attachment.containerID;
      await claimSource.detached({ ...notice, attachment: { ...notice.attachment, containerID } });
    },
  });
}

/** The caller goes on while the commit is under way. Only the journal's own name, which comes first, is waited for. */
export function answeringEarly(database: Database): Database {
  let isNamed = false;
  return altered(database, {
    write: async <T>(work: Work<T>) => {
      if (!isNamed) {
        isNamed = true;
        return await database.write(work);
      }
      database.write(work).catch(() => undefined); // nobody waits for it
      return undefined as T;
    },
  });
}

/** The journal is there, and nobody reads it. */
export function forgetful(database: Database): Database {
  const empty: JournalContents = { attachments: [], positions: [], blocks: [], pools: [] };
  return altered(database, { read: <T>() => empty as T });
}

/** Whatever journal is there serves, and what only claims tell of a sandbox counts for nothing. */
export const servingFromAnyJournal: FaultInjection = {
  mark: (mark) => altered(mark, { read: async () => undefined }),
  runtimeRecords: async () => [],
  claimSource: (claimSource) => altered(claimSource, { lastSandboxes: async () => [] }),
};

/** The mark does not say how far the journal had come, and what only claims tell of a sandbox counts for nothing. */
export const servingFromOlderCopy: FaultInjection = {
  mark: (mark) => altered(mark, { update: () => undefined }),
  claimSource: (claimSource) => altered(claimSource, { lastSandboxes: async () => [] }),
};

/** Where no mark is left nobody asks the runtime, and what only claims tell of a sandbox counts for nothing. */
export const servingWithoutAsking: FaultInjection = {
  runtimeRecords: async () => [],
  claimSource: (claimSource) => altered(claimSource, { lastSandboxes: async () => [] }),
};

/** Puts it between the store and the processes of one role. */
export function storeOf(role: Role, tamper: (store: Store, cache: RecordCache) => Store): FaultInjection {
  return { store: (store, of) => (of.role === role ? tamper(store, of.cache) : store) };
}

export function inventoryOf(role: Role, tamper: (inventory: ClusterState) => ClusterState): FaultInjection {
  return { inventory: (inventory, of) => (of === role ? tamper(inventory) : inventory) };
}

/** A Deployment's pods are needed as long as it is there, however they asked. */
export function rememberingPods(inventory: ClusterState): ClusterState {
  const known = new Map<string, PodState>(); // namespace/name -> pod of a ReplicaSet as it was
  return altered(inventory, {
    pod: async (namespace, name) => {
      const there = await inventory.pod(namespace, name);
      const key = `${namespace}/${name}`;
      const asksForOne = there?.annotations[IPS] !== undefined;
      if (there?.owner?.kind === "ReplicaSet" && !asksForOne) known.set(key, there);
      const last = known.get(key);
      if (last === undefined || there?.ended === false) return there;
      const of = { apiVersion: "apps/v1", kind: "Deployment", namespace, name: deploymentOf(last) };
      const workload = await inventory.workload(of);
      return typeof workload !== "object" ? there : { ...last, ended: false };
    },
  });
}

function deploymentOf({ owner, labels }: PodState): string {
  return (owner?.name ?? "").replace(`-${labels["pod-template-hash"]}`, "");
}

/** Any pod that has a claim's name counts as one that was given it. */
export function takingNamesakes(inventory: ClusterState): ClusterState {
  return altered(inventory, {
    pod: async (namespace, name) => {
      const there = await inventory.pod(namespace, name);
      return there && { ...there, annotations: { [ASSIGNED_CLAIM]: name, ...there.annotations } };
    },
  });
}

/** An ordinal whose name a pod by itself has counts as given up by its StatefulSet. */
export function yieldingToNamesakes(inventory: ClusterState): ClusterState {
  return altered(inventory, {
    workload: async (ref) => {
      const there = await inventory.workload(ref);
      if (typeof there !== "object" || ref.kind !== "StatefulSet") return there;
      const taken = new Set<number>();
      for (let ordinal = 0; ordinal < MOST_REPLICAS; ordinal++) {
        const namesake = await inventory.pod(ref.namespace, `${ref.name}-${ordinal}`);
        if (namesake !== undefined && namesake.owner === undefined) taken.add(ordinal);
      }
      return { ...there, isDone: (ordinal) => taken.has(ordinal) };
    },
  });
}

/** A pod whose object is there needs what it has, whatever its phase. */
export function blindToEnds(inventory: ClusterState): ClusterState {
  return altered(inventory, {
    pod: async (namespace, name) => {
      const there = await inventory.pod(namespace, name);
      return there && { ...there, ended: false };
    },
  });
}

/** Who has no owner of a kind and name that is known is taken for a leftover, however young. */
export const releasingUnowned: FaultInjection = {
  collector: (collector, context, inventory) =>
    altered(collector, {
      pass: async () => {
        for (const { key } of [...context.view.claims()]) {
          const seen = await context.store.get("claim", key);
          if (seen !== undefined && (await isUnowned(seen.record, inventory))) await release(context, seen);
        }
        return await collector.pass();
      },
    }),
};

async function isUnowned(claim: Claim, inventory: ClusterState): Promise<boolean> {
  const { namespace, identity } = claim;
  const { kind, name } = identity;
  if (claim.handMade === true || !isDetached(claim) || (kind !== "ReplicaSet" && kind !== "Rollout"))
    return false;
  const workload = await inventory.workload({ apiVersion: "apps/v1", kind: "Deployment", namespace, name });
  return typeof workload !== "object";
}

/** Every process goes by the wall clock of its host. */
export const trustingHosts: FaultInjection = { clock: (ofHost) => ofHost };
