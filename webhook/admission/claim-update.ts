// SPDX-License-Identifier: Apache-2.0
import { isDeepStrictEqual } from "node:util";
import { isRefusal, type Refusal, refuse } from "../../allocator/base/errors.ts";
import { BERTHS_FIELDS, readClaimRequest, slotByHand } from "../../allocator/manifest/claim-spec.ts";
import { Fields, type KubeObject } from "../../allocator/manifest/kubernetes-object.ts";
import type { Claim } from "../../allocator/model/claim.ts";
import { describeIdentity } from "../../allocator/model/identity.ts";

/** What a person has changed about a claim that is stored. */
interface ClaimUpdate {
  /** As it reads now, its identity whole. */
  readonly claim: Claim;
  /** Other addresses or pools than before, or for somebody else. */
  readonly asksAnew: boolean;
  readonly warnings: readonly string[];
}

/** Reads a change that anybody but Berth makes; refuses one of Berth's own fields. */
export function readClaimUpdate(before: KubeObject, now: KubeObject): ClaimUpdate | Refusal {
  const spec = { before: before.spec, now: now.spec };
  const own = BERTHS_FIELDS.find((field) => !isDeepStrictEqual(spec.before.get(field), spec.now.get(field)));
  if (own !== undefined) return notYours(`spec.${own}`);
  const byHand = spec.before.get("nonce") === undefined || spec.before.flag("handMade");
  const identities = [spec.before.get("identity"), spec.now.get("identity")];
  if (!byHand && !isDeepStrictEqual(identities[0], identities[1])) return notYours("spec.identity");
  const slot = spec.now.at("identity").get("slot") ?? undefined;
  if (slot !== undefined && slot !== spec.before.at("identity").get("slot")) return slotByHand();
  const [old, claim] = [said(before), said(now)];
  if (isRefusal(claim)) return claim;
  const same =
    !isRefusal(old) && isDeepStrictEqual([old.request, old.identity], [claim.request, claim.identity]);
  const warnings = byHand || isDeepStrictEqual(spec.before.value, spec.now.value) ? [] : [passing(claim)];
  return { claim, asksAnew: !same, warnings };
}

/** What a person says in it. A claim that Berth made says more about its identity than people do. */
function said(object: KubeObject): Claim | Refusal {
  const identity = object.spec.at("identity");
  const { slot: _, ...named } = identity.value;
  const people = Object.entries({ ...object.spec.value, identity: named }).filter(
    ([key]) => !BERTHS_FIELDS.includes(key),
  );
  const claim = readClaimRequest({ ...object, spec: new Fields(Object.fromEntries(people)) });
  if (isRefusal(claim)) return claim;
  const uid = identity.text("uid");
  const slot = identity.count("slot", -1);
  return {
    ...claim,
    identity: { ...claim.identity, ...(uid === "" ? {} : { uid }), ...(slot < 0 ? {} : { slot }) },
  };
}

function notYours(field: string): Refusal {
  return refuse("REQUEST_INVALID", `${field} is written by berth; leave it as it is`, { field });
}

function passing(claim: Claim): string {
  return `claim ${claim.namespace}/${claim.name} was made for ${describeIdentity(claim.identity)}; when its pod is created again, what the pod asks for is written over this`;
}
