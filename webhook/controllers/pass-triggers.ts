// SPDX-License-Identifier: Apache-2.0

import { isDeepStrictEqual } from "node:util";
import type { RecordCache } from "../../allocator/cache/cache.ts";
import type { ObservedNode } from "../cluster-state/informers.ts";

interface Watched<P> {
  onChange(handler: (key: string, now: P | undefined, before: P | undefined) => void): () => void;
}

/** A Node changes every few seconds with its kubelet's word that it is alive, and hardly ever in what is read of it. */
export function followNodes(nodes: Watched<ObservedNode>, soon: () => void): () => void {
  return nodes.onChange((_, now, before) => {
    if (!isDeepStrictEqual(now, before)) soon();
  });
}

/** Not where its status alone is another one: that is written with each address that is taken. */
export function followPools(cache: Pick<RecordCache, "onChange">, soon: () => void): () => void {
  return cache.onChange("pool", (_, now, before) => {
    if (!isDeepStrictEqual(now?.record, before?.record)) soon();
  });
}
