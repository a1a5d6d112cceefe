// SPDX-License-Identifier: Apache-2.0
// Families in other systems' words of which the pod's first interface has no pool.

import { isRefusal, type Refusal } from "../base/errors.ts";
import type { Labels } from "../base/ports.ts";
import type { Request } from "../model/address-request.ts";
import { FIRST_INTERFACE, saidOf } from "../model/interfaces.ts";
import { bad } from "./annotation-values.ts";
import { type AnnotationFormat, mergeFormats } from "./merged-request.ts";
import { familyOfPart } from "./pool-names.ts";

/**
 * Of a pod with several interfaces such families are in the names of its first one's pools by now (`withFirstOfFamilies`): one of which no pool
 * is named would be passed over. Asked of a pod with its namespace, which may name pools of the family (Calico).
 */
export function lackingOfFirst(
  { families, interfacePools }: Request,
  asked: readonly AnnotationFormat[],
  annotations: Labels,
): Refusal | undefined {
  const ofFirst = asked.filter((format) => "ofFirst" in format);
  const [format] = ofFirst;
  if (families !== undefined || interfacePools === undefined || format === undefined) return undefined;
  const pools = saidOf<readonly string[]>(interfacePools, FIRST_INTERFACE);
  const said = mergeFormats(ofFirst, annotations);
  if (isRefusal(said) || pools === undefined) return undefined;
  const has = (family: string) => pools.some((name) => (familyOfPart(name) ?? family) === family);
  const lacking = said.families?.find((family) => !has(family));
  if (lacking === undefined) return undefined;
  const words = `no pool of ${FIRST_INTERFACE} is named for ${lacking}, only ${pools.join(", ")}`;
  return bad(format.key, `${words}; name one, or leave ${lacking} out`);
}
