// SPDX-License-Identifier: Apache-2.0
// Who sets the MAC address of a further interface reads it in the pod's list of networks, as Multus does: there the webhook writes it.

import { type Refusal, refuse } from "../base/errors.ts";
import type { Labels } from "../base/ports.ts";
import { macOfAddress, parseMac } from "../ip/mac.ts";
import { linkedTo, macsOf } from "../model/interface-macs.ts";
import { type Holding, type Interfaces, namesOf } from "../model/interfaces.ts";
import { MAC } from "./mac-values.ts";
import {
  NETWORK_ANNOTATIONS,
  type NetworkElement,
  networkElements,
  withElements,
} from "./network-attachments.ts";

interface Written {
  /** The annotations that change. */
  readonly annotations: Labels;
  /** Interfaces that no annotation makes: their runtime has to know. */
  readonly unwritten: readonly string[];
  /** Interfaces of which the pod itself says another one. */
  readonly other: readonly string[];
}

/** Of a pod that asks for MAC addresses: an interface of which its networks say one that is none of these. */
export function strangeMac(annotations: Labels, interfaces: Interfaces = {}): Refusal | undefined {
  const names = namesOf(interfaces).filter((name) => linkedTo(name) !== undefined);
  if (names.length === 0) return undefined;
  const made = NETWORK_ANNOTATIONS.flatMap((key) => networkElements(key, annotations[key])); // read once: a range has 1,024
  const called = names.find((link) => made.some((element) => element.interface === link));
  if (called !== undefined) return linkMade(called);
  const said = saidMacs(made);
  for (const link of names) {
    const own = (interfaces[link] ?? []).map(macOfAddress);
    const name = linkedTo(link) ?? "";
    const others = [...(said.get(name) ?? [])];
    const isOther = own.every((mac) => mac !== undefined && others.some((other) => other !== mac));
    if (isOther) return otherMac([name]);
  }
  return undefined;
}

/**
 * Of one entry of a list: why a pod whose networks say MAC addresses cannot have it; undefined: it can. The annotations are read once for
 * all entries.
 */
export function entryObjection(annotations: Labels): (holding: Holding) => Refusal | undefined {
  const said = saidMacs(NETWORK_ANNOTATIONS.flatMap((key) => networkElements(key, annotations[key])));
  return (holding) => {
    if (said.size === 0) return undefined;
    const others = [...macsOf(holding)].filter(([name, mac]) =>
      [...(said.get(name) ?? [])].some((other) => other !== mac),
    );
    return others.length === 0 ? undefined : otherMac(others.map(([name]) => name));
  };
}

/** Interface -> the MAC addresses that the pod's networks say of it, undefined for what is none. */
function saidMacs(made: readonly NetworkElement[]): ReadonlyMap<string, ReadonlySet<string | undefined>> {
  const macs = new Map<string, Set<string | undefined>>();
  for (const { interface: name, item } of made)
    if (item.mac !== "") macs.set(name, (macs.get(name) ?? new Set()).add(parseMac(item.mac)));
  return macs;
}

function linkMade(link: string): Refusal {
  const words = `the pod's networks make an interface ${link}, which stands for the MAC address of ${linkedTo(link)} here; give that interface another name`;
  return refuse("REQUEST_INVALID", words, { annotation: MAC });
}

export function otherMac(names: readonly string[]): Refusal {
  const words = `the pod's networks say another MAC address of ${names.join(", ")} than ${MAC}; take one of the two out`;
  return refuse("REQUEST_INVALID", words, { annotation: MAC });
}

/** Of interfaces that no annotation makes: who sets their MAC addresses has to be told. */
export function warningsOfUnwritten(names: readonly string[]): readonly string[] {
  if (names.length === 0) return [];
  return [
    `MAC address: no network annotation of the pod makes ${names.join(", ")}, so that its runtime has to be told the MAC address otherwise; without it the pod does not start`,
  ];
}

/** The pod's networks with the MAC addresses (interface -> MAC) of those that they make. */
export function withMacs(annotations: Labels, macs: ReadonlyMap<string, string>): Written {
  const changed: Record<string, string> = {};
  const [written, other] = [new Set<string>(), new Set<string>()];
  for (const key of NETWORK_ANNOTATIONS) {
    const next = withElements(key, annotations[key], ({ interface: name, item }) => {
      const mac = macs.get(name);
      if (mac === undefined) return undefined;
      written.add(name);
      if (item.mac !== "" && parseMac(item.mac) !== mac) other.add(name);
      return { ...item.json, mac };
    });
    if (next !== undefined) changed[key] = next;
  }
  const unwritten = [...macs.keys()].filter((name) => !written.has(name));
  return { annotations: changed, unwritten, other: [...other] };
}
