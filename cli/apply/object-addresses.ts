// SPDX-License-Identifier: Apache-2.0

import { isRefusal } from "../../allocator/base/errors.ts";
import { podTemplate, templateAnnotations } from "../../allocator/demand/workload-allocation.ts";
import { ASSIGNED_CLAIM, EXEMPT_NAMESPACE, readRequest } from "../../allocator/manifest/annotations.ts";
import { Fields, readObject } from "../../allocator/manifest/kubernetes-object.ts";
import type { Claim } from "../../allocator/model/claim.ts";
import { shownAs } from "../../allocator/model/interface-macs.ts";
import { formatAddresses, formatHolding } from "../../allocator/model/interfaces.ts";
import type { Store } from "../../allocator/store/store.ts";
import { allOf } from "../backend/embedded-backend.ts";
import type { Json } from "./object-ref.ts";

/** More claims, or entries, of one workload than this are counted instead of named. */
const MOST_NAMED = 8;

/** The addresses that an object has now, as they stand behind its line of output; empty when it has none. */
export async function holdingsOf(store: Store, object: Json): Promise<string> {
  const fields = new Fields(object);
  const metadata = fields.at("metadata");
  const [namespace, name] = [metadata.text("namespace"), metadata.text("name")];
  switch (fields.text("kind")) {
    case "Pod":
      return await addressesOf(store, `${namespace}/${metadata.at("annotations").text(ASSIGNED_CLAIM)}`);
    case "IPClaim":
      return await addressesOf(store, `${namespace}/${name}`);
    case "IPPool":
      return rangesOf(fields.at("spec").list("ranges"));
    case "StatefulSet":
    case "Deployment": {
      const kind = fields.text("kind");
      const claims = (await claimsOf(store, { kind, namespace, name })).filter(wantedIn(fields));
      return kind === "Deployment" && claims.length === 0 ? listOf(object) : describeClaims(claims);
    }
    default:
      return "";
  }
}

async function addressesOf(store: Store, key: string): Promise<string> {
  const claim = await store.get("claim", key);
  return claim === undefined ? "" : formatHolding(claim.record).join(", ");
}

/** The ranges of a pool's spec, one after the other. */
export function rangesOf(ranges: readonly unknown[]): string {
  return ranges
    .map((entry) => {
      const range = new Fields(entry);
      const [from, to] = [range.text("from"), range.text("to")];
      return from === "" && to === "" ? range.text("cidr") : `${from}-${to} of ${range.text("cidr")}`;
    })
    .join(", ");
}

/** The claims of a workload's identities, by ordinal or slot. */
async function claimsOf(
  store: Store,
  owner: { readonly kind: string; readonly namespace: string; readonly name: string },
): Promise<Claim[]> {
  const claims = (await allOf(store, "claim")).map(({ record }) => record);
  return claims
    .filter(
      ({ namespace, identity, releasing }) =>
        namespace === owner.namespace &&
        identity.kind === owner.kind &&
        identity.name === owner.name &&
        releasing !== true,
    )
    .sort((a, b) => placeOf(a) - placeOf(b));
}

function placeOf({ identity }: Claim): number {
  return identity.ordinal ?? identity.slot ?? 0;
}

/** What is kept of a set that was larger is no claim that it has now. */
function wantedIn(object: Fields): (claim: Claim) => boolean {
  const [start, replicas] = [
    object.at("spec").at("ordinals").count("start", 0),
    object.at("spec").count("replicas", 1),
  ];
  return ({ identity: { ordinal } }) =>
    ordinal === undefined || (ordinal >= start && ordinal < start + replicas);
}

function describeClaims(claims: readonly Claim[]): string {
  return firstOf(
    claims.map(
      (claim) => `${claim.name} ${claim.addresses.length === 0 ? "-" : formatHolding(claim).join("+")}`,
    ),
  );
}

/** What a Deployment's pods take theirs from: nothing is reserved for it before a pod of it is created. */
function listOf(json: Json): string {
  const object = readObject(json);
  if (isRefusal(object) || object.metadata.namespace === EXEMPT_NAMESPACE) return "";
  if (podTemplate(object).at("spec").flag("hostNetwork")) return "";
  const request = readRequest(templateAnnotations(object));
  if (isRefusal(request) || request.entries === undefined) return "";
  const entries = request.entries.map((entry) =>
    formatAddresses(entry, request.interfaces).map(shownAs).join("+"),
  );
  return `${firstOf(entries)}: ${entries.length === 1 ? "for one pod" : "one for each pod"}`;
}

function firstOf(all: readonly string[]): string {
  const named = all.slice(0, MOST_NAMED);
  const more = all.length - named.length;
  return [...named, ...(more > 0 ? [`and ${more} more`] : [])].join(", ");
}
