// SPDX-License-Identifier: Apache-2.0
// What is said of requests that are left to another system.

import { isRefusal, type Refusal } from "../base/errors.ts";
import { listed } from "../base/listed.ts";
import type { RecordReader } from "../cache/reader.ts";
import { IPS, POOLS } from "../manifest/annotations.ts";
import { rowsOf } from "../manifest/dialects.ts";
import { poolsNamed, type Request } from "../model/address-request.ts";
import { SYSTEMS, type System } from "../model/dialect.ts";
import { poolNameIn } from "../planning/pool-sources.ts";
import { quoted } from "../planning/refusal-messages.ts";
import { ownWithin } from "./named-in-text.ts";

type PoolView = Pick<RecordReader, "pools" | "poolOf">;

/** Of keys with names in them there may be thousands. */
const MOST_KEYS = 8;

/** An annotation, and what it asks for. */
interface LeftRequest {
  readonly key: string;
  readonly request: Request | Refusal;
}

export function leftWords(
  view: PoolView,
  asked: readonly LeftRequest[],
  whom = "this pod",
): readonly string[] {
  const bySystem = Map.groupBy(asked, ({ key }) => rowsOf(key)[0]?.system);
  return [...bySystem].flatMap(([system, its]) =>
    system === undefined ? [] : [words(view, system, its, whom)],
  );
}

function words(view: PoolView, system: System, asked: readonly LeftRequest[], whom: string): string {
  const isUnread = asked.some(({ request }) => isRefusal(request));
  const requests = asked.map(({ request }) => (isRefusal(request) ? {} : request));
  const entries = requests.flatMap((one) => one.entries ?? []).flat();
  const pools = requests.flatMap(poolsNamed).map(poolNameIn);
  const named = [...new Set([...entries, ...pools])].join(", ");
  const shown = named.length > 100 ? `${named.slice(0, 97)}...` : named;
  const keys = asked.map(({ key }) => key);
  const annotations = `annotation ${listed(keys, MOST_KEYS)}`;
  const name = SYSTEMS[system];
  if (named === "" && isUnread)
    return `${annotations} cannot be read by berth, and is left to ${name}; write ${POOLS} to get an address from berth`;
  if (named === "")
    return `${annotations} names no pool of berth's: it is left to ${name}; write ${POOLS} to get an address from berth`;
  const shared = sharedIn(view, pools);
  if (entries.length === 0 && shared !== undefined)
    return `${annotations} asks for ${shown}: that is left to ${name}, which may give addresses of berth's pool ${quoted(shared)} there; take those out of ${name}'s pool, or write ${POOLS} to get one from berth`;
  const instead = entries.length > 0 ? IPS : POOLS;
  return `${annotations} asks for ${shown}, and berth has no such ${entries.length > 0 ? "address in its pools" : "pool"}: it is left to ${name}, and berth gives ${whom} no address; write ${instead} to get one from berth`;
}

/** A pool of Berth's that has addresses of a CIDR which names another system's. */
function sharedIn(view: PoolView, names: readonly string[]): string | undefined {
  for (const name of names) {
    const address = ownWithin(view, name);
    const pool = address && view.poolOf(address);
    if (pool !== undefined) return pool.name;
  }
  return undefined;
}
