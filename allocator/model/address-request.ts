// SPDX-License-Identifier: Apache-2.0
import { isRefusal, type Refusal } from "../base/errors.ts";
import type { Address } from "../ip/address.ts";
import type { ClaimRequest, Retention } from "./claim.ts";

/** The addresses of one pod: one of each family on an interface at most, in the order in which they were written. */
export type AddressEntry = readonly Address[];

/** What a pod, its template or its namespace asks for, whatever the dialect it was said in: for each claim, with what decides who gets which. */
export interface Request extends Omit<ClaimRequest, "addresses"> {
  /** The addresses of one entry for each pod: by ordinal counted from `ordinals.start`, by slot, or the only one. */
  readonly entries?: readonly AddressEntry[];
  /** The first entry is that of ordinal 0, wherever `ordinals.start` lets them begin; absent: that of the first ordinal. */
  readonly fromOrdinalZero?: true;
  /** What is asked for the first interface is its namespace's default alone: a claim that a person made need not have it. */
  readonly defaultsFirst?: true;
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
