// SPDX-License-Identifier: Apache-2.0
// MAC addresses in other systems' words: those that a pool of Berth's has are reserved with the pod's addresses, and the others are told of.

import { isRefusal, type Refusal, refuse } from "../base/errors.ts";
import type { Labels } from "../base/ports.ts";
import type { RecordReader } from "../cache/reader.ts";
import type { Address } from "../ip/address.ts";
import { addressOfMac, macOfAddress, parseMac } from "../ip/mac.ts";
import { MAC } from "../manifest/annotations.ts";
import { choiceFor, macKeysIn, rowsOf, withoutUnread } from "../manifest/dialects.ts";
import { readOne } from "../manifest/merged-request.ts";
import { NETWORK_ANNOTATIONS, networkElements, withElements } from "../manifest/network-attachments.ts";
import { type Dialects, SYSTEMS } from "../model/dialect.ts";

type View = Pick<RecordReader, "poolOf">;

/**
 * The annotations without MAC addresses that are in no pool. Multus hands one on whoever keeps it; of another system's, where every
 * request is Berth's (`all`), it stays, and is refused.
 */
export function withOwnMacs(
  view: View,
  annotations: Labels,
  dialects: Dialects | undefined,
  namespace: string,
): Labels {
  const changed = new Map<string, string | undefined>(); // key -> what stays
  for (const key of macKeysIn(annotations)) {
    const value = annotations[key] ?? "";
    if (NETWORK_ANNOTATIONS.includes(key)) {
      const rest = withElements(key, value, ({ item }) =>
        item.mac === "" || isOfPool(view, item.mac) ? undefined : { ...item.json, mac: "" },
      );
      if (rest !== undefined) changed.set(key, rest);
    } else if (choiceFor(dialects, key) === "own") {
      const isOwn = macsUnder(key, annotations, namespace).some((one) => view.poolOf(one) !== undefined);
      if (!isOwn) changed.set(key, undefined);
    }
  }
  if (changed.size === 0) return annotations;
  return Object.fromEntries(
    Object.entries(annotations).flatMap(([key, value]) => {
      const stays = changed.has(key) ? changed.get(key) : value;
      return stays === undefined ? [] : [[key, stays]];
    }),
  );
}

/** `interface MAC` of each network of the pod that says a MAC address of a pool. */
export function ownMacsOfNetworks(view: View, annotations: Labels): readonly string[] {
  return NETWORK_ANNOTATIONS.flatMap((key) => networkElements(key, annotations[key]))
    .filter(({ item }) => isOfPool(view, item.mac))
    .map((element) => `${element.interface} ${parseMac(element.item.mac)}`);
}

function isOfPool(view: View, text: string): boolean {
  const mac = parseMac(text);
  return mac !== undefined && view.poolOf(addressOfMac(mac)) !== undefined;
}

/** Whether a pool of Berth's has one of the MAC addresses that the annotation says. */
export function saysOwnMac(view: View, key: string, annotations: Labels, namespace: string): boolean {
  return macsUnder(key, annotations, namespace).some((one) => view.poolOf(one) !== undefined);
}

/** None, where they cannot be read. */
function macsUnder(key: string, annotations: Labels, namespace: string): readonly Address[] {
  if (NETWORK_ANNOTATIONS.includes(key))
    return networkElements(key, annotations[key]).flatMap(({ item }) => {
      const mac = parseMac(item.mac);
      return mac === undefined ? [] : [addressOfMac(mac)];
    });
  return rowsOf(key).flatMap((row) => {
    const read = row.asks === "mac" ? readOne({ ...row, key }, annotations, namespace) : {};
    return isRefusal(read) ? [] : (read.entries ?? []).flat();
  });
}

/** Of MAC addresses that the pod's annotations say and that are not `kept`: a refusal, where a pool has one; or else what is told. */
export function macsAside(
  view: View,
  annotations: Labels,
  { dialects, namespace }: { readonly dialects: Dialects | undefined; readonly namespace: string },
  kept: ReadonlySet<Address>,
): readonly string[] | Refusal {
  const warnings: string[] = [];
  const read = withoutUnread(annotations, dialects);
  for (const key of macKeysIn(read)) {
    const isMultus = NETWORK_ANNOTATIONS.includes(key);
    if (isMultus && read[MAC] !== undefined) continue; // what it says of that is told by itself
    const macs = macsUnder(key, read, namespace);
    const [own] = macs.filter((one) => !kept.has(one) && view.poolOf(one) !== undefined);
    if (own !== undefined) return withoutAddress(key, own);
    const others = macs.filter((one) => !kept.has(one)).map((one) => macOfAddress(one) ?? "");
    if (macs.length > 0 && others.length === 0) continue;
    const system = SYSTEMS[rowsOf(key)[0]?.system ?? "multus"];
    const what = others.length === 0 ? "names no MAC address that berth can read" : notKept(others);
    const who = isMultus ? "Multus hands it to the interface's plugin" : "berth hands it to nobody";
    warnings.push(`annotation ${shown(key)} is ${system}'s, and ${what}; ${who}`);
  }
  return warnings;
}

function notKept(macs: readonly string[]): string {
  const more = macs.length > 2 ? " and more" : "";
  return `no pool of berth's has MAC address ${macs.slice(0, 2).join(", ")}${more}, which is kept for nobody`;
}

function withoutAddress(key: string, address: Address): Refusal {
  const words = `annotation ${shown(key)}: MAC address ${macOfAddress(address)} is of a pool of berth's, and is pinned with addresses alone; write berth.dev/ips or berth.dev/pools beside it`;
  return refuse("REQUEST_INVALID", words, { annotation: key });
}

function shown(key: string): string {
  return key.length > 100 ? `${key.slice(0, 100)}...` : key;
}
