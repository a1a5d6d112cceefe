// SPDX-License-Identifier: Apache-2.0
// Annotations under another system's prefix that are nearly one that Berth reads: nobody would heed them, and nobody would say so.

import { nearestWord } from "../base/nearest-word.ts";
import type { Labels } from "../base/ports.ts";
import { type Dialects, SYSTEMS } from "../model/dialect.ts";
import { DIALECT_ROWS } from "./dialect-rows.ts";
import { READ_ROWS, rowsOf } from "./dialects.ts";

/** To compare costs; a pod has a few at most. */
const MOST_COMPARED = 16;
/** To shorter ones too many words are near. */
const SHORTEST = 6;
/** `pool` is the end of `ip-pool`. */
const SHORTEST_END = 4;
/** A typing error is no longer than that; systems have keys of their own that are. */
const MOST_LETTERS = 2;
/** `lan.shop.kubernetes.io`: kube-ovn's, of one network. */
const OF_A_NETWORK = /^[^/.]+[.][^/.]+([.]ovn)?[.]kubernetes[.]io\/$/;
const ANY_NETWORK = "<nad>.<namespace>.kubernetes.io/";

const KNOWN: ReadonlySet<string> = new Set(DIALECT_ROWS.map(({ key }) => key));

/** prefix in small letters -> the rows behind it */
const ROWS = Map.groupBy(READ_ROWS, ({ key }) => prefixOf(key).toLowerCase());

interface Unknown {
  readonly key: string;
  readonly name: string;
  /** As it is written, unless that is the mistake. */
  readonly prefix: string;
  readonly rows: (typeof READ_ROWS)[number][];
}

export function nearMisses(annotations: Labels, dialects?: Dialects): readonly string[] {
  const unknown = Object.keys(annotations).flatMap(unknownIn);
  return unknown.slice(0, MOST_COMPARED).flatMap(({ key, prefix, name, rows }) => {
    const [system] = rows.map((row) => row.system);
    const names = rows.map((row) => row.key.slice(prefixOf(row.key).length));
    // a name of its own system alone stands behind no slash
    const near = names.filter(
      (one) =>
        one.toLowerCase() === name.toLowerCase() ||
        ((one.length >= SHORTEST || !prefix.endsWith("/")) &&
          Math.abs(one.length - name.length) <= MOST_LETTERS),
    );
    const ending = names.find(
      (one) =>
        name.length >= SHORTEST_END && /[-_]/.test(one.at(-name.length - 1) ?? "") && one.endsWith(name),
    );
    const meant = nearestWord(name, near) ?? (prefix.endsWith("/") ? ending : near[0]);
    if (system === undefined || dialects?.[system] === "none") return [];
    const [plain = ""] = name.split(".", 1);
    if (system === "kubeOvn" && plain !== name && names.includes(plain))
      return [
        `berth knows no annotation ${key} of ${SYSTEMS[system]}'s, and does nothing about it; did you mean ${ANY_NETWORK}${plain}, of the network that makes ${name.slice(plain.length + 1)}?`,
      ];
    if (meant === undefined) return [];
    return [
      `berth knows no annotation ${key} of ${SYSTEMS[system]}'s, and does nothing about it; did you mean ${prefix}${meant}?`,
    ];
  });
}

/** With the slash, or the full stop where there is none. */
function prefixOf(key: string): string {
  const at = key.indexOf("/");
  return key.slice(0, (at < 0 ? key.indexOf(".") : at) + 1);
}

function unknownIn(key: string): readonly Unknown[] {
  const prefix = prefixOf(key);
  if (prefix === "" || key.length > 100 || KNOWN.has(key)) return [];
  const small = prefix.toLowerCase();
  const rows = ROWS.get(small) ?? (OF_A_NETWORK.test(small) ? ROWS.get(ANY_NETWORK) : undefined);
  if (rows === undefined || rowsOf(key).length > 0) return [];
  return [{ key, prefix: small, name: key.slice(prefix.length), rows }];
}

/** Keys that a system reads on namespaces alone, on a pod: nobody heeds them there. */
export function forNamespacesAlone(annotations: Labels, dialects?: Dialects): readonly string[] {
  return NAMESPACE_ONLY.filter(
    ({ key, system }) => annotations[key] !== undefined && dialects?.[system] !== "none",
  ).map(
    ({ key, system }) =>
      `annotation ${key} is ${SYSTEMS[system]}'s, and is read on namespaces alone, not on a pod or template; write berth.dev/pools here, or it into the namespace`,
  );
}

/** Keys that a system reads on namespaces and nowhere else. */
export const NAMESPACE_ONLY = DIALECT_ROWS.filter(({ on }) => !on.includes("pod"));
