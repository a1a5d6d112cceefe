// SPDX-License-Identifier: Apache-2.0

import { isRefusal } from "../base/errors.ts";
import type { Labels } from "../base/ports.ts";
import type { RecordReader } from "../cache/reader.ts";
import { IPS, POOLS, readRequest } from "../manifest/annotations.ts";
import { CALICO_KEYS, type CalicoChoice, withoutCalico } from "../manifest/foreign-requests.ts";
import { type Request, requestsAddress } from "../model/address-request.ts";
import type { NamespaceState } from "../model/cluster-state.ts";

/** The annotations that Berth answers, and what is left to another system, in words. */
export interface OwnAnnotations {
  readonly annotations: Labels;
  readonly left: readonly string[];
}

/**
 * What a pod or template in that namespace asks of Berth. A request in Calico's words alone, none of whose addresses or pools is
 * Berth's, is Calico's matter where the administrator says so (`own`).
 *
 * | asks Berth as well, or its namespace does | all of it is Berth's: the two must not give it different addresses |
 * | cannot be read                            | Berth's to refuse: nobody knows whose it was meant to be           |
 * | one of the addresses or pools is Berth's  | Berth's                                                            |
 * | none is                                   | left                                                               |
 */
export function ownAnnotations(
  view: Pick<RecordReader, "pool" | "poolOf">,
  annotations: Labels,
  namespace: NamespaceState,
  calico: CalicoChoice = "all",
): OwnAnnotations {
  const keys = CALICO_KEYS.filter((key) => annotations[key] !== undefined);
  if (calico === "all" || keys.length === 0) return { annotations, left: [] };
  const rest = withoutCalico(annotations);
  if (calico === "none") return { annotations: rest, left: [] };
  const otherwise = readRequest(rest, namespace);
  const asked = readRequest(annotations);
  if (isRefusal(otherwise) || isRefusal(asked) || requestsAddress(otherwise) || isOwn(view, asked))
    return { annotations, left: [] };
  return { annotations: rest, left: [words(keys, asked)] };
}

function isOwn(view: Pick<RecordReader, "pool" | "poolOf">, { entries = [], pools = [] }: Request): boolean {
  return (
    entries.flat().some((address) => view.poolOf(address) !== undefined) ||
    pools.some((name) => view.pool(name) !== undefined)
  );
}

function words(keys: readonly string[], { entries = [], pools = [] }: Request): string {
  const asked = [...entries.flat(), ...pools].join(", ");
  const shown = asked.length > 100 ? `${asked.slice(0, 97)}...` : asked;
  const instead = entries.length > 0 ? IPS : POOLS;
  return `annotation ${keys.join(", ")} asks for ${shown}, and berth has no such ${entries.length > 0 ? "address in its pools" : "pool"}: it is left to Calico, and berth gives this pod no address; write ${instead} to get one from berth`;
}
