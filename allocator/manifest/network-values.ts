// SPDX-License-Identifier: Apache-2.0
// What Multus' annotations ask for the interfaces of a pod.

import { isRefusal, type Refusal } from "../base/errors.ts";
import type { Labels } from "../base/ports.ts";
import { type Address, bitsOf, familyOf, parseAddress } from "../ip/address.ts";
import { addressOfMac, parseMac } from "../ip/mac.ts";
import type { Request } from "../model/address-request.ts";
import { isLink, LINK_PREFIX } from "../model/interface-macs.ts";
import { FIRST_INTERFACE, isInterfaceName } from "../model/interfaces.ts";
import { bad, isOneOfEach, LONGEST_JSON, quote } from "./annotation-values.ts";
import type { DialectReader } from "./dialect-values.ts";
import { MAX_INTERFACES, tooManyIn, twiceIn } from "./interface-values.ts";
import { MAC } from "./mac-values.ts";
import {
  DEFAULT_NETWORK,
  isJsonForm,
  isUnreadable,
  NETWORKS,
  type NetworkElement,
  networkElements,
} from "./network-attachments.ts";

/** Of what makes a pod's first interface: `kube-system/macvlan`, or a list of one element that may have `ips`. */
export const readDefaultNetwork: DialectReader = (value, key, annotations) => {
  const read = readAddresses(value, key, annotations);
  const [entry = []] = isRefusal(read) ? [] : (read.entries ?? []);
  // it says no more than who names no interface does
  const isPlain = entry.length > 0 && isOneOfEach(entry) && Object.hasOwn(asPlaces(read), FIRST_INTERFACE);
  return isPlain ? { entries: [entry] } : read;
};

function asPlaces(read: Request | Refusal): object {
  return isRefusal(read) ? {} : (read.interfaces ?? {});
}

/** Of a pod's further interfaces: `ns/lan@net1`, which asks for nothing, or a list whose elements may have `ips`. */
export const readNetworks: DialectReader = (value, key, annotations) =>
  readAddresses(value, key, annotations);

function readAddresses(value: string, key: string, annotations: Labels): Request | Refusal {
  return value.length <= LONGEST_JSON && isUnreadable(value)
    ? bad(key, `it is no JSON list of networks, such as '[{"name":"lan","ips":["10.20.0.51/24"]}]'`)
    : readOfNetworks(value, key, annotations, addressesIn);
}

/** The `mac` of elements. Beside Berth's own annotation for MAC addresses, which may be a list, it has to be one of those. */
export const readNetworkMacs: DialectReader = (value, key, annotations) =>
  annotations[MAC] === undefined ? readOfNetworks(value, key, annotations, macsIn) : {};

/** What is asked of each interface, which may have several addresses of one family. */
function readOfNetworks(
  value: string,
  key: string,
  annotations: Labels,
  askedIn: (element: NetworkElement, key: string) => readonly [string, readonly Address[]] | Refusal,
): Request | Refusal {
  if (!isJsonForm(value)) return {};
  if (value.length > LONGEST_JSON) return bad(key, `it is longer than ${LONGEST_JSON} characters`);
  const interfaces = new Map<string, readonly Address[]>();
  for (const element of networkElements(key, value)) {
    const asked = askedIn(element, key);
    if (isRefusal(asked)) return asked;
    const [name, addresses] = asked;
    if (addresses.length > 0) interfaces.set(name, [...(interfaces.get(name) ?? []), ...addresses]);
  }
  if (interfaces.size > MAX_INTERFACES) return bad(key, `it asks for more than ${MAX_INTERFACES} interfaces`);
  const entries = [[...interfaces.values()].flat()];
  if (interfaces.size === 0) return {};
  return (
    collisionIn(value, key, interfaces) ??
    collisionWith(annotations, key, interfaces) ??
    twiceIn(entries, key) ??
    tooManyIn(entries, key) ?? { entries, interfaces: Object.fromEntries(interfaces) }
  );
}

/** Of elements that ask for something: two that make one interface, by name or by place, or one that makes the pod's first. */
function collisionIn(
  value: string,
  key: string,
  asked: ReadonlyMap<string, readonly Address[]>,
): Refusal | undefined {
  const all = networkElements(key, value).map((element) => element.interface);
  const isAsked = (name: string) => asked.has(name) || asked.has(`${LINK_PREFIX}${name}`);
  const twice = all.find((name, at) => isAsked(name) && all.indexOf(name) !== at);
  if (twice !== undefined)
    return bad(key, `two of its elements make ${quote(twice)}; give each an interface of its own`);
  const isFirst = key === NETWORKS && all.includes(FIRST_INTERFACE) && isAsked(FIRST_INTERFACE);
  return isFirst
    ? bad(
        key,
        `${FIRST_INTERFACE} is the pod's first interface, which it does not make; write ${DEFAULT_NETWORK}`,
      )
    : undefined;
}

/** Of those and what the pod's other annotation of Multus makes. */
function collisionWith(
  annotations: Labels,
  key: string,
  asked: ReadonlyMap<string, readonly Address[]>,
): Refusal | undefined {
  const other = key === NETWORKS ? DEFAULT_NETWORK : NETWORKS;
  const made = networkElements(other, annotations[other]).slice(0, other === DEFAULT_NETWORK ? 1 : undefined);
  const name = made
    .map((element) => element.interface)
    .find((one) => asked.has(one) || asked.has(`${LINK_PREFIX}${one}`));
  return name === undefined
    ? undefined
    : bad(key, `it makes ${quote(name)}, and so does ${other}; give each an interface of its own`);
}

function addressesIn(
  { interface: name, item }: NetworkElement,
  key: string,
): readonly [string, readonly Address[]] | Refusal {
  const addresses = item.ips.map(addressOf);
  const wrong = item.ips.find((_, n) => addresses[n] === undefined);
  if (wrong !== undefined || !addresses.every((one) => one !== undefined)) return noAddress(wrong, key);
  if (addresses.length > 0 && !isInterfaceName(name))
    return bad(key, `${quote(name)} is not the name of an interface, such as net1`);
  if (addresses.length > 0 && isLink(name))
    return bad(key, `interface ${quote(name)} stands for a MAC address; give it another name`);
  return [name, addresses];
}

function noAddress(ip: unknown, key: string): Refusal {
  const which = typeof ip === "string" ? ` (${quote(ip)})` : "";
  return bad(key, `its ips are not addresses in a list, such as ["10.20.0.51/24"]${which}`);
}

function macsIn(
  { interface: name, item }: NetworkElement,
  key: string,
): readonly [string, readonly Address[]] | Refusal {
  const link = `${LINK_PREFIX}${name}`;
  if (item.mac === "") return [link, []];
  const read = macAddress(item.mac, name, key);
  return isRefusal(read) ? read : [link, [read]];
}

/** What a MAC address of the interface is kept as. */
export function macAddress(text: string, name: string, key: string): Address | Refusal {
  const mac = parseMac(text.trim());
  if (mac === undefined)
    return bad(key, `${quote(text)} is no MAC address of an interface, such as 02:00:00:00:00:51`);
  return isInterfaceName(`${LINK_PREFIX}${name}`)
    ? addressOfMac(mac)
    : bad(key, `${quote(name)} is not the name of an interface of up to 11 characters, such as net1`);
}

/** What follows `/` is the network's, but must be a length. */
export function addressOf(ip: unknown): Address | undefined {
  if (typeof ip !== "string") return undefined;
  const [, text = "", length = "0"] = /^(.*?)(?:\/(\d{1,3}))?$/.exec(ip) ?? [];
  const address = parseAddress(text);
  return address !== undefined && Number(length) <= bitsOf(familyOf(address)) ? address : undefined;
}
