// SPDX-License-Identifier: Apache-2.0
import { isRefusal, type Refusal } from "../base/errors.ts";
import type { Address, Family } from "../ip/address.ts";
import type { Retention } from "./claim.ts";
import type { InterfacePools, Interfaces } from "./interfaces.ts";

/** The addresses of one pod: one of each family on an interface at most, in the order in which they were written. */
export type AddressEntry = readonly Address[];

/** What a pod, its template or its namespace asks for, whatever the dialect it was said in. */
export interface Request {
  /** One entry for each pod: by ordinal counted from `ordinals.start`, by slot, or the only one. */
  readonly entries?: readonly AddressEntry[];
  /** The interface of each address of `entries`; absent: none was named. */
  readonly interfaces?: Interfaces;
  /** The first entry is that of ordinal 0, wherever `ordinals.start` lets them begin; absent: that of the first ordinal. */
  readonly fromOrdinalZero?: true;
  /** Names of pools, `name/IPv4` for the addresses of one family, or CIDRs of their ranges, in order of preference. */
  readonly pools?: readonly string[];
  /** The same for each interface, also of those that are only to keep what they first get. Then there is no `pools`. */
  readonly interfacePools?: InterfacePools;
  /** What is asked for the first interface is its namespace's default alone: a claim that a person made need not have it. */
  readonly defaultsFirst?: true;
  readonly families?: readonly Family[];
  /** If another has an address of `entries`: any of its pools. Absent: a refusal. */
  readonly fallback?: "any";
  /** Keep whatever it first gets. */
  readonly sticky?: boolean;
  readonly retention?: Partial<Retention>;
}

/** Whether anything is asked for that Berth must reserve; retention or families alone ask for nothing. */
export function requestsAddress(request: Request): boolean {
  return (
    request.entries !== undefined ||
    request.pools !== undefined ||
    request.interfacePools !== undefined ||
    request.sticky === true
  );
}

/** Readable, and nothing for Berth to reserve. */
export function requestsNothing(request: Request | Refusal): boolean {
  return !isRefusal(request) && !requestsAddress(request);
}

/** All pools that are named, for whichever interface. */
export function poolsNamed({
  pools,
  interfacePools,
}: Pick<Request, "pools" | "interfacePools">): readonly string[] {
  return [...(pools ?? []), ...Object.values(interfacePools ?? {}).flat()];
}

/** The same of one interface of the pod: who names none may mean any. */
export function requestsAddressOn(request: Request, name: string): boolean {
  const { interfaces, interfacePools } = request;
  if (interfaces === undefined && interfacePools === undefined) return requestsAddress(request);
  return Object.hasOwn(interfaces ?? {}, name) || Object.hasOwn(interfacePools ?? {}, name);
}
