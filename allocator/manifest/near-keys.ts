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
/** A typing error is no longer than that; systems have keys of their own that are. */
const MOST_LETTERS = 2;
/** `lan.shop.kubernetes.io`: kube-ovn's, of one network. */
const OF_A_NETWORK = /^[^/.]+[.][^/.]+[.]kubernetes[.]io$/;
const ANY_NETWORK = "<nad>.<namespace>.kubernetes.io";

const KNOWN: ReadonlySet<string> = new Set(DIALECT_ROWS.map(({ key }) => key));

/** prefix -> the rows behind it */
const ROWS = Map.groupBy(READ_ROWS, ({ key }) => key.slice(0, key.indexOf("/")));

interface Unknown {
  readonly key: string;
  readonly prefix: string;
  readonly name: string;
  readonly rows: (typeof READ_ROWS)[number][];
}

export function nearMisses(annotations: Labels, dialects?: Dialects): readonly string[] {
  const unknown = Object.keys(annotations).flatMap(unknownIn);
  return unknown.slice(0, MOST_COMPARED).flatMap(({ key, prefix, name, rows }) => {
    const [system] = rows.map((row) => row.system);
    const names = rows.map((row) => row.key.slice(row.key.indexOf("/") + 1));
    const near = names.filter(
      (one) => one.length >= SHORTEST && Math.abs(one.length - name.length) <= MOST_LETTERS,
    );
    const meant = nearestWord(name, near);
    if (meant === undefined || system === undefined || dialects?.[system] === "none") return [];
    return [
      `berth knows no annotation ${key} of ${SYSTEMS[system]}'s, and does nothing about it; did you mean ${prefix}/${meant}?`,
    ];
  });
}

function unknownIn(key: string): readonly Unknown[] {
  const at = key.indexOf("/");
  const prefix = key.slice(0, Math.max(at, 0));
  if (prefix === "" || key.length > 100 || KNOWN.has(key)) return [];
  const rows = ROWS.get(prefix) ?? (OF_A_NETWORK.test(prefix) ? ROWS.get(ANY_NETWORK) : undefined);
  if (rows === undefined || rowsOf(key).length > 0) return [];
  return [{ key, prefix, name: key.slice(at + 1), rows }];
}
