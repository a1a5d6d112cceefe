// SPDX-License-Identifier: Apache-2.0
import type { Labels } from "../../../../allocator/base/ports.ts";
import type { RecordReader } from "../../../../allocator/cache/reader.ts";
import type { Pool } from "../../../../allocator/pool/pool.ts";
import type { Stored } from "../../../../allocator/store/store.ts";

/** A pod's name among all. */
export interface PodName {
  readonly namespace: string;
  readonly name: string;
}

/** A pod as far as its claim is concerned. */
export interface NodePod extends PodName {
  readonly uid: string;
  /** Those that Berth reads. */
  readonly annotations: Labels;
  readonly labels: Labels;
  /** Succeeded or Failed: its sandbox ends, and no other one will be made for it. */
  readonly finished: boolean;
  /** A sandbox of it has been up, with an address from somewhere. */
  readonly up: boolean;
}

/** What this node knows of the API server's objects. It may lag; what it does not have is not proven to be absent. */
export interface NodeCache extends Pick<RecordReader, "poolOf"> {
  /** All that can be used. */
  pools(): Iterable<Pool>;
  /** Everything was listed once, as of a moment after this process began. */
  readonly isSynced: boolean;
  /** A pod of this node. */
  pod(pod: PodName): NodePod | undefined;
  /** A claim that is bound to this node, by namespace/name. */
  claim(key: string): Stored<"claim"> | undefined;
  /** All that are bound to this node. */
  claims(): Iterable<Stored<"claim">>;
  /** Those bound to a pod of that name. */
  claimsOf(pod: PodName): readonly Stored<"claim">[];
  /** Resolves at the next change of the pod or its claims, with the first full pass, or when the signal aborts. */
  changed(pod: PodName, signal: AbortSignal): Promise<void>;
}

export function podKey({ namespace, name }: PodName): string {
  return `${namespace}/${name}`;
}
