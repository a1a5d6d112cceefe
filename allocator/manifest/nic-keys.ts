// SPDX-License-Identifier: Apache-2.0
// kube-ovn's keys of one interface: `<nad>.<namespace>.kubernetes.io/ip_address` is of what that NetworkAttachmentDefinition makes,
// and `.<interface>` behind it says which, where the pod has it several times.

import { isRefusal, type Refusal } from "../base/errors.ts";
import type { Labels } from "../base/ports.ts";
import { areOfFamilies, parseAddress } from "../ip/address.ts";
import type { Request } from "../model/address-request.ts";
import { isLink } from "../model/interface-macs.ts";
import { isInterfaceName } from "../model/interfaces.ts";
import { bad, quote } from "./annotation-values.ts";
import {
  type DialectReader,
  familiesIn,
  isNameOfPool,
  readFamilyWord,
  readName,
  unserved,
} from "./dialect-values.ts";
import { readMacOn } from "./mac-words.ts";
import { NETWORKS, type NetworkAttachment, networkAttachments } from "./network-attachments.ts";
import { familyOfPart, partsOfFamily } from "./pool-names.ts";

const DOMAIN = ".kubernetes.io/";
const LONGEST = 60;

interface Nic {
  /** `<nad>.<namespace>`, and with a network of kube-ovn's own `.ovn` behind it. */
  readonly provider: string;
  /** As it is behind the key; empty: none is named. */
  readonly interface: string;
}

/** Which of a pod's keys are of one interface, for the property of that name. */
export function nicKey(property: string): RegExp {
  return new RegExp(`^[^/.]+[.][^/]+[.]kubernetes[.]io/${property}([.][^/]+)?$`);
}

/** The annotation beside which kube-ovn has written the value itself. */
export function allocatedBeside(key: string): string {
  return `${key.slice(0, key.indexOf("/"))}/allocated`;
}

/** For the interface that the key means, what the reader finds for the first one. */
export function onNic(read: DialectReader): DialectReader {
  return (value, key, annotations, namespace) => {
    const names = interfacesMeant(key, annotations, namespace);
    if (isRefusal(names)) return names;
    const said = read(value, key, annotations, namespace);
    return isRefusal(said) ? said : placed(said, names, key);
  };
}

function placed(said: Request, names: readonly string[], key: string): Request | Refusal {
  const { entries, pools, ...rest } = said;
  const [name = "", ...more] = names;
  if (pools !== undefined)
    return { ...rest, interfacePools: Object.fromEntries(names.map((one) => [one, pools])) };
  if (entries === undefined) return said;
  return more.length > 0
    ? ambiguous(names, key)
    : { ...rest, entries, interfaces: { [name]: entries.flat() } };
}

function ambiguous(names: readonly string[], key: string): Refusal {
  return bad(
    shown(key),
    `the pod has that network as ${names.join(" and ")}; write .${names[0]} behind the key for one of them`,
  );
}

/** A pool, of which the family beside it may want one part. */
export const readNicPools: DialectReader = (value, key, annotations) => {
  const read = readName(value, key, annotations);
  const families = familiesIn(annotations[beside(key, "ip_family")] ?? "dual") ?? [];
  const [family, ...more] = families;
  if (isRefusal(read) || family === undefined || more.length > 0) return read;
  const { pools = [] } = read;
  const isOther = pools.some((name) => (familyOfPart(name) ?? family) !== family);
  return isOther
    ? bad(shown(key), `it disagrees with ${beside(shown(key), "ip_family")}; keep one of the two`)
    : { pools: partsOfFamily(pools, family) };
};

/** The same of a list, which may be the name of a pool. */
export function withFamilyBeside(read: DialectReader): DialectReader {
  return (value, key, annotations, namespace) => {
    const said = read(value, key, annotations, namespace);
    return isRefusal(said) || said.pools === undefined ? said : readNicPools(value, key, annotations);
  };
}

/** Of one interface Berth takes the families from what is asked for it: by itself it could only be said of all. */
export const readNicFamily: DialectReader = (value, key, annotations, namespace) => {
  const read = readFamilyWord(value, key, annotations);
  if (isRefusal(read)) return read;
  const names = interfacesMeant(key, annotations, namespace);
  if (isRefusal(names)) return names;
  const { families = [] } = read;
  if (["logical_switch", "ip_pool"].some((one) => namesPool(annotations[beside(key, one)]))) return {};
  const [entry] = ["ip_address", "ip_pool"].flatMap(
    (one) => annotations[beside(key, one)]?.split(";")[0] ?? [],
  );
  if (entry !== undefined) {
    const addresses = entry.split(",").flatMap((text) => parseAddress(text.trim()) ?? []);
    const isSame = areOfFamilies(addresses, families);
    return isSame ? {} : bad(shown(key), "it disagrees with the address beside it; keep one of the two");
  }
  const why = `of one interface berth takes the families from its pool or address; write ${beside(shown(key), "logical_switch")}, or berth.dev/pools with ${names[0]}`;
  return unserved(shown(key), why, {});
};

function namesPool(value: string | undefined): boolean {
  return value !== undefined && value !== "" && isNameOfPool(value);
}

export const readNicMac: DialectReader = (value, key, annotations, namespace) => {
  const names = interfacesMeant(key, annotations, namespace);
  if (isRefusal(names)) return names;
  const [name = "", ...more] = names;
  return more.length > 0 ? ambiguous(names, key) : readMacOn(value, key, name);
};

/** The key of the same interface for another property. */
function beside(key: string, property: string): string {
  return key.replace(/\/[a-z_]+/, `/${property}`);
}

/** The interfaces of the pod that the key is about, by the networks that the pod has. */
export function interfacesMeant(
  key: string,
  annotations: Labels,
  namespace: string | undefined,
): readonly string[] | Refusal {
  const nic = nicOf(key);
  // "*": any, where the pod's namespace is not known
  const attached = attachmentsOf(annotations, namespace ?? "*").filter(({ network }) =>
    isOf(network, nic.provider),
  );
  const names = [...new Set(attached.map((one) => one.interface))];
  if (names.length === 0)
    return bad(
      shown(key),
      `the pod has no network ${quote(nic.provider)}, by <nad>.<namespace>; write that network into ${NETWORKS}, or the address into berth.dev/ips`,
    );
  const wrong = names.find((name) => !isInterfaceName(name) || isLink(name));
  if (wrong !== undefined) return bad(shown(key), `${quote(wrong)} is not the name of an interface`);
  if (nic.interface === "") return names;
  return names.includes(nic.interface)
    ? [nic.interface]
    : bad(shown(key), `the pod has that network as ${names.join(" and ")}, not as ${quote(nic.interface)}`);
}

/** The network that the key names: `<nad>.<namespace>`. */
export function providerOf(key: string): string {
  return nicOf(key).provider;
}

/** Read once for all of a pod's keys, of which somebody may write thousands: namespace -> the pod's networks. */
const known = new WeakMap<Labels, Map<string, readonly NetworkAttachment[]>>();

function attachmentsOf(annotations: Labels, namespace: string): readonly NetworkAttachment[] {
  const byNamespace = known.get(annotations) ?? new Map<string, readonly NetworkAttachment[]>();
  known.set(annotations, byNamespace);
  const attachments = byNamespace.get(namespace) ?? networkAttachments(annotations, namespace);
  byNamespace.set(namespace, attachments);
  return attachments;
}

function nicOf(key: string): Nic {
  const at = key.indexOf(DOMAIN);
  const [, name = ""] = /^[a-z_]+[.](.+)$/.exec(key.slice(at + DOMAIN.length)) ?? [];
  return { provider: key.slice(0, at), interface: name };
}

function isOf(network: string, provider: string): boolean {
  const [namespace = "", name = ""] = network.split("/", 2);
  const plain = provider.replace(/[.]ovn$/, "");
  if (namespace !== "*") return [plain, provider].includes(`${name}.${namespace}`);
  return [plain, provider].some(
    (one) => one.startsWith(`${name}.`) && !one.slice(name.length + 1).includes("."),
  );
}

function shown(key: string): string {
  return key.length > 2 * LONGEST ? `${key.slice(0, 2 * LONGEST)}...` : key;
}
