// SPDX-License-Identifier: Apache-2.0
import { counted } from "../../allocator/base/counted.ts";
import { type Refusal, refuse } from "../../allocator/base/errors.ts";
import type { RecordReader } from "../../allocator/cache/reader.ts";
import type { Address } from "../../allocator/ip/address.ts";
import type { KubeObject } from "../../allocator/manifest/kubernetes-object.ts";
import { rollingOf } from "../../allocator/manifest/rolling-update.ts";
import type { AddressEntry } from "../../allocator/model/address-request.ts";
import type { WorkloadState } from "../../allocator/model/cluster-state.ts";
import { classify } from "../../allocator/pool/pool.ts";

/**
 * Whether a set has an entry for every pod that may live at once: warnings, or why a rolling update would wait for
 * ever. `entries` are those that its pods can have, of `listed`.
 */
export function checkRollout(
  object: KubeObject,
  replicas: number,
  entries: number,
  listed = entries,
): string[] | Refusal {
  const { namespace } = object.metadata;
  return checkScaled({ kind: object.kind, namespace, ...rollingOf(object) }, replicas, entries, listed);
}

/** The same of what is known of a workload. */
export function checkScaled(
  workload: Pick<WorkloadState, "kind" | "namespace" | "rolling">,
  replicas: number,
  entries: number,
  listed = entries,
): string[] | Refusal {
  const { surge, unavailable, endsByOne } = rolloutOf(workload, replicas);
  const details = { namespace: workload.namespace };
  if (entries < replicas) return tooFewEntries(workload.namespace, entries, replicas, listed);
  if (entries >= replicas + surge) return [];
  const needs = `a rolling update may want ${counted(replicas + surge, "pod")} at once (${counted(replicas, "replica")} and maxSurge ${surge}), and the list has ${inWords(entries, listed)}`;
  if (unavailable === 0 && !(endsByOne && entries > replicas)) {
    return refuse(
      "LIST_TOO_SHORT",
      `${needs}; with maxUnavailable 0 it would never end: ${remedyFor(entries, listed)}, or set maxSurge 0 and maxUnavailable 1`,
      details,
    );
  }
  return [`${needs}; its surge pods wait until old ones are gone`];
}

/**
 * Entries are reserved by the pods that have them, and those beyond what a rolling update wants by none. Of `reserved` addresses of a
 * pool nobody has one who does not name it.
 */
export function unheldEntries(
  view: Pick<RecordReader, "poolOf" | "reservation">,
  entries: readonly AddressEntry[],
  { object, replicas }: { readonly object: KubeObject; readonly replicas: number },
): string[] {
  const isOpen = (address: Address) => {
    const pool = view.reservation(address) === undefined ? view.poolOf(address) : undefined;
    return pool !== undefined && classify(pool, address) === "open";
  };
  const { surge } = rolloutOf({ kind: object.kind, ...rollingOf(object) }, replicas);
  if (entries.length <= replicas + surge || !entries.some((entry) => entry.some(isOpen))) return [];
  return [
    `the list has ${inWords(entries.length)} for ${counted(replicas, "replica")}${surge === 0 ? "" : ` and maxSurge ${surge}`}: an entry is kept for it from the first pod on that has it, and others may take it before that; list the addresses under "reserved" of their pool`,
  ];
}

/** The words for a set that has less entries than pods. */
function tooFewEntries(namespace: string, entries: number, replicas: number, listed = entries): Refusal {
  return refuse(
    "LIST_TOO_SHORT",
    `the list has ${inWords(entries, listed)} for ${counted(replicas, "replica")}; ${remedyFor(entries, listed)} or lower replicas`,
    { namespace },
  );
}

function inWords(entries: number, listed = entries): string {
  const words = counted(entries, "entry", "entries");
  return entries === listed
    ? words
    : `${words} (of ${listed}) with the MAC address that the pods' networks say`;
}

/** A further entry would have another MAC address, too. */
function remedyFor(entries: number, listed: number): string {
  return entries === listed ? "add entries" : "take the MAC address out of the networks";
}

interface Rollout {
  /** How many pods more, and how many less than `replicas` there may be while the template changes. */
  readonly surge: number;
  readonly unavailable: number;
  /**
   * One new pod that is available lets an old one go, however many others of the surge could not be made. OpenKruise makes all
   * of the surge first.
   */
  readonly endsByOne: boolean;
}

/** OpenKruise's CloneSet does not surge unless it is told to. */
function rolloutOf(
  { kind, rolling = {} }: Pick<WorkloadState, "kind" | "rolling">,
  replicas: number,
): Rollout {
  const clones = kind === "CloneSet";
  const { maxSurge = clones ? 0 : "25%", maxUnavailable = clones ? "20%" : "25%" } = rolling;
  return {
    surge: shareOf(maxSurge, replicas, Math.ceil),
    unavailable: shareOf(maxUnavailable, replicas, Math.floor),
    endsByOne: !clones,
  };
}

/** A number, or a percentage of the replicas (apps/v1 RollingUpdateDeployment and RollingUpdateStatefulSetStrategy). */
export function shareOf(value: unknown, replicas: number, round: (n: number) => number): number {
  if (typeof value === "number") return value;
  const percent = /^(\d{1,3})%$/.exec(String(value))?.[1];
  return percent === undefined ? 0 : round((Number(percent) * replicas) / 100);
}
