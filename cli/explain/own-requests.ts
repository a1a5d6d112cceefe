// SPDX-License-Identifier: Apache-2.0

import { noopLogger } from "../../allocator/base/ports.ts";
import { RecordCache } from "../../allocator/cache/cache.ts";
import type { RecordReader } from "../../allocator/cache/reader.ts";
import { ownReader } from "../../allocator/demand/foreign-pools.ts";
import type { OwnReader } from "../../allocator/manifest/pod-claim.ts";
import { OWN_OF_EACH } from "../../allocator/model/dialect.ts";
import type { Stored } from "../../allocator/store/store.ts";
import { AllowedRecords } from "../backend/allowed-records.ts";
import { type Backend, partialCache } from "../backend/backend.ts";
import { installedDialects } from "../backend/installed-dialects.ts";

interface OwnReaders {
  /** Says of nothing that it is another system's, unless that is known. */
  readonly most: OwnReader;
  /** Says of nothing that it is Berth's, unless that is known. */
  readonly least: OwnReader;
  /** What it goes by: the pools, and nothing else. */
  readonly view: RecordReader;
}

/** What of annotations is for Berth, by the chart's value, as the webhook goes by it. Both say the same, unless that may not be read. */
export async function ownIn(
  pools: readonly Stored<"pool">[],
  { world, place }: Pick<Backend, "world" | "place">,
): Promise<OwnReaders> {
  const view = new RecordCache(noopLogger);
  for (const stored of pools) view.apply("pool", { type: "put", stored });
  const dialects = place === "cluster" ? await installedDialects(world) : undefined;
  const most = ownReader({ view, dialects });
  const isKnown = place !== "cluster" || dialects !== undefined;
  return { most, least: isKnown ? most : ownReader({ view, dialects: OWN_OF_EACH }), view };
}

/** What of annotations is for Berth in this place; on hosts without Kubernetes all is, and to who may not read what pools there are. */
export async function ownReaderOf({
  place,
  store,
  world,
}: Pick<Backend, "place" | "store" | "world">): Promise<OwnReader> {
  const records = new AllowedRecords(store);
  const view = await partialCache(records, []);
  if (place !== "cluster" || records.hides("pool")) return ownReader({ view, dialects: undefined });
  return ownReader({ view, dialects: (await installedDialects(world)) ?? OWN_OF_EACH });
}
