// SPDX-License-Identifier: Apache-2.0

import { isRefusal, type Refusal, refuse } from "../base/errors.ts";
import { parseDuration } from "../base/go-duration.ts";
import { nearestWord } from "../base/nearest-word.ts";
import { quote } from "../base/validation.ts";
import { type Address, FAMILIES, type Family, familyOf, parseAddress } from "../ip/address.ts";
import {
  type Claim,
  type ClaimRequest,
  DEFAULT_RETENTION,
  type Identity,
  type Retention,
} from "../model/claim.ts";
import { isLink, macAsAddress, misusedLink, severalMacsOn } from "../model/interface-macs.ts";
import type { Interfaces } from "../model/interfaces.ts";
import { MAX_POOLS_OF_CLAIM, readInterfacePools, readInterfaces } from "./claim-interfaces.ts";
import { MAX_ADDRESSES } from "./interface-values.ts";
import { type Fields, isName, type KubeObject } from "./kubernetes-object.ts";

/** Whoever makes a claim leaves them out. */
const BERTHS_OWN = ["addresses", "interfaces", "nonce", "binding", "retained", "releasing"];

/** Fields of the spec that Berth alone writes. Whoever applies or edits a claim sends them all the same. */
export const BERTHS_FIELDS: readonly string[] = [...BERTHS_OWN, "admittedAt", "handMade"];

/** An IPClaim as a person writes it: identity, request and retention; the rest is Berth's alone. */
export function readClaimRequest(object: KubeObject): Claim | Refusal {
  const { spec, metadata } = object;
  if (!isName(metadata.name) || !isName(metadata.namespace)) {
    return refuse(
      "OBJECT_INVALID",
      "a claim needs metadata.name and metadata.namespace, in lower-case letters, digits, - and .",
    );
  }
  const written = BERTHS_OWN.find((field) => spec.get(field) !== undefined);
  if (written !== undefined) return bad(`spec.${written}`, "is written by Berth; leave it out");
  const request = readRequested(spec.at("request"));
  if (isRefusal(request)) return request;
  const retention = readRetention(spec.at("retention"));
  if (isRefusal(retention)) return retention;
  const identity = readIdentity(spec.at("identity"), metadata.name);
  if (isRefusal(identity)) return identity;
  const attachTo = spec.text("interface");
  if (isLink(attachTo))
    return bad("spec.interface", `${quote(attachTo)} stands for a MAC address; name the interface itself`);
  const takesOver = readTakesOver(spec, metadata.name, request);
  if (isRefusal(takesOver)) return takesOver;
  return {
    namespace: metadata.namespace,
    name: metadata.name,
    identity,
    ...(attachTo === "" ? {} : { interface: attachTo }),
    ...(takesOver === "" ? {} : { takesOver }),
    request,
    retention,
    addresses: [],
    nonce: "",
    handMade: true,
    status: {},
  };
}

/** Fields of a claim's spec, those that Berth writes too: whoever edits a claim sends them all. */
const FIELDS: Readonly<Record<string, readonly string[]>> = {
  spec: ["request", "retention", "identity", "interface", "takesOver", ...BERTHS_FIELDS],
  "spec.request": ["addresses", "interfaces", "pools", "interfacePools", "families", "fallback"],
  "spec.retention": ["whenDeleted", "whenScaled", "ttl"],
  "spec.identity": ["kind", "apiVersion", "name", "ordinal", "slot", "uid"],
};

/** A field that nobody reads, where no API server has refused it (one host). */
export function unknownClaimField({ spec }: KubeObject): Refusal | undefined {
  for (const [path, known] of Object.entries(FIELDS)) {
    const part = path === "spec" ? spec : spec.at(path.slice("spec.".length));
    const unknown = Object.keys(part.value).find((name) => !known.includes(name));
    if (unknown === undefined) continue;
    const near = nearestWord(unknown, known);
    const advice = near === undefined ? `known here: ${known.join(", ")}` : `did you mean ${near}?`;
    return bad(path, `has an unknown field ${quote(unknown)}; ${advice}`);
  }
  return undefined;
}

/** Empty: it takes over from nobody. Only addresses that are named can go over: any address of a pool need not be another's. */
function readTakesOver(spec: Fields, name: string, { addresses }: ClaimRequest): string | Refusal {
  const other = spec.text("takesOver");
  if (other === "") return "";
  if (!isName(other))
    return bad("spec.takesOver", `${quote(other)} is not the name of a claim of this namespace`);
  if (other === name)
    return bad("spec.takesOver", "names the claim itself; name the one that has the addresses now");
  if (addresses !== undefined) return other;
  return bad("spec.takesOver", "needs spec.request.addresses: name the addresses that go over");
}

function readIdentity(identity: Fields, name: string): Identity | Refusal {
  const kind = identity.text("kind");
  if (kind === "") return { kind: "Pod", apiVersion: "v1", name };
  if ((identity.get("slot") ?? undefined) !== undefined) return slotByHand();
  const ordinal = identity.get("ordinal") ?? undefined;
  const known = identity.count("ordinal", -1);
  if (ordinal !== undefined && known < 0) return bad("spec.identity.ordinal", "takes 0, 1, 2 and so on");
  return {
    kind,
    apiVersion: identity.text("apiVersion"),
    name: identity.text("name") === "" ? name : identity.text("name"),
    ...(ordinal === undefined ? {} : { ordinal: known }),
  };
}

/** Which entry of the list a slot is of is only known from its workload; without its slot the claim would be in its way. */
export function slotByHand(): Refusal {
  const why =
    "is given by Berth alone: a slot's claim cannot be made by hand; write the address into berth.dev/ips of the workload's template";
  return bad("spec.identity.slot", why);
}

function readRequested(request: Fields): ClaimRequest | Refusal {
  const addresses = readAddresses(request);
  if (isRefusal(addresses)) return addresses;
  const interfaces = readPlaces(request, addresses);
  if (isRefusal(interfaces)) return interfaces;
  const pools = readPools(request);
  if (isRefusal(pools)) return pools;
  const interfacePools = readInterfacePools(request, { addresses, interfaces, pools });
  if (isRefusal(interfacePools)) return interfacePools;
  const families = readFamilies(request);
  if (isRefusal(families)) return families;
  const fallback = readFallback(request, interfaces);
  if (isRefusal(fallback)) return fallback;
  if (addresses.length === 0 && pools.length === 0 && interfacePools === undefined) {
    return bad("spec.request", "names neither addresses nor pools; give it one of the two");
  }
  const named = addresses.length === 0 ? {} : { addresses, ...(interfaces && { interfaces }) };
  return {
    ...named,
    ...(pools.length === 0 ? {} : { pools }),
    ...(interfacePools === undefined ? {} : { interfacePools }),
    ...(families.length === 0 ? {} : { families }),
    ...(fallback === undefined || addresses.length === 0 ? {} : { fallback }),
  };
}

/** The interfaces of the addresses, the links of MAC addresses among them. */
function readPlaces(request: Fields, addresses: readonly Address[]): Interfaces | Refusal | undefined {
  const interfaces = readInterfaces(request, addresses);
  if (isRefusal(interfaces)) return interfaces;
  const misused = misusedLink({ interfaces });
  if (misused !== undefined) return bad("spec.request.interfaces:", misused.words);
  const several = severalMacsOn(addresses, interfaces);
  if (several !== undefined)
    return bad("spec.request.interfaces:", `several MAC addresses for ${several}, which has one`);
  const mac = macAsAddress(addresses, interfaces);
  const why = `${mac} stands for a MAC address; give it to an interface mac-eth0, mac-net1, ...`;
  return mac === undefined ? interfaces : bad("spec.request.addresses", why);
}

function readFallback(request: Fields, interfaces: Interfaces | undefined): "any" | Refusal | undefined {
  const fallback = request.get("fallback") ?? undefined;
  if (fallback === undefined) return undefined;
  if (fallback !== "any") return bad("spec.request.fallback", "takes any, or is left out");
  const isTwice = Object.values(interfaces ?? {}).some((its) => new Set(its.map(familyOf)).size < its.length);
  return isTwice
    ? bad("spec.request.fallback", "cannot stand beside several addresses of one family on an interface")
    : fallback;
}

function readAddresses(request: Fields): readonly Address[] | Refusal {
  const values = readList(request, "addresses");
  if (isRefusal(values)) return values;
  const byInterface = (request.get("interfaces") ?? undefined) !== undefined;
  const addresses: Address[] = [];
  if (values.length > MAX_ADDRESSES)
    return bad("spec.request.addresses", `has more than ${MAX_ADDRESSES} addresses`);
  for (const [n, value] of values.entries()) {
    const field = `spec.request.addresses[${n}]`;
    const address = typeof value === "string" ? parseAddress(value) : undefined;
    if (address === undefined) return bad(field, `${quote(value)} is not an IP address`);
    if (!byInterface && addresses.some((other) => familyOf(other) === familyOf(address))) {
      return bad(field, "is the second address of its family; a claim has one of each");
    }
    if (addresses.includes(address)) return bad(field, `has ${address} twice`);
    addresses.push(address);
  }
  return addresses;
}

function readPools(request: Fields): readonly string[] | Refusal {
  const values = readList(request, "pools");
  if (isRefusal(values)) return values;
  if (values.length > MAX_POOLS_OF_CLAIM)
    return bad("spec.request.pools", `has more than ${MAX_POOLS_OF_CLAIM} pools`);
  const wrong = values.findIndex((value) => typeof value !== "string" || value === "");
  if (wrong >= 0)
    return bad(`spec.request.pools[${wrong}]`, `${quote(values[wrong])} is not the name of a pool`);
  return values as readonly string[];
}

function readFamilies(request: Fields): readonly Family[] | Refusal {
  const values = readList(request, "families");
  if (isRefusal(values)) return values;
  const known = values
    .slice(0, FAMILIES.length + 1)
    .filter((value): value is Family => FAMILIES.some((family) => family === value));
  if (known.length === values.length && new Set(known).size === known.length) return known;
  return bad("spec.request.families", "takes IPv4 and IPv6, each once");
}

/** What is no list must not be taken for an empty one: an address that was asked for would be passed over. */
function readList(request: Fields, key: string): readonly unknown[] | Refusal {
  const value = request.get(key) ?? [];
  return Array.isArray(value) ? value : bad(`spec.request.${key}`, `takes a list, not ${quote(value)}`);
}

function readRetention(retention: Fields): Retention | Refusal {
  const read = { ...DEFAULT_RETENTION };
  for (const event of ["whenDeleted", "whenScaled"] as const) {
    const choice = retention.get(event) ?? read[event];
    if (choice !== "Release" && choice !== "Retain")
      return bad(`spec.retention.${event}`, "takes Release and Retain");
    read[event] = choice;
  }
  const ttl = retention.get("ttl") ?? null;
  const ttlMs = typeof ttl === "string" ? parseDuration(ttl) : undefined;
  if (ttl !== null && ttlMs === undefined) return bad("spec.retention.ttl", "is no duration such as 48h");
  return { ...read, ttlMs: ttlMs ?? null };
}

function bad(field: string, why: string): Refusal {
  return refuse("REQUEST_INVALID", `${field} ${why}`, { field });
}
