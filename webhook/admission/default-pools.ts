// SPDX-License-Identifier: Apache-2.0
// Whether the pools that a namespace names for its pods serve any of them.

import { isRefusal, type Refusal } from "../../allocator/base/errors.ts";
import type { Labels } from "../../allocator/base/ports.ts";
import type { RecordReader } from "../../allocator/cache/reader.ts";
import { FAMILIES as FAMILIES_KEY, POOLS, readRequest } from "../../allocator/manifest/annotations.ts";
import type { KubeObject } from "../../allocator/manifest/kubernetes-object.ts";
import { bareNamespace } from "../../allocator/model/cluster-state.ts";
import { ineligibility } from "../../allocator/planning/eligibility.ts";
import { poolNameIn, type Source, sourceNamed } from "../../allocator/planning/pool-sources.ts";
import { noFamily, unknownPool } from "../../allocator/planning/refusal-messages.ts";
import { familiesOf } from "../../allocator/pool/pool.ts";
import type { AdmissionRequest } from "../review/admission-review.ts";
import type { AdmissionContext } from "./admission-context.ts";
import { disclosed } from "./disclosure.ts";

/** Pools may be made and opened after the namespace, so that nothing of this is a reason to refuse it. */
export async function warningsOfDefaultPools(
  { context: { view }, catchUp, readAccess: access }: AdmissionContext,
  { userInfo: user }: AdmissionRequest,
  object: KubeObject,
): Promise<string[]> {
  const first = objections(view, object);
  const again = first.length > 0 && (await catchUp?.()) === true;
  const found = again ? objections(view, object) : first;
  const caller = { user, namespace: object.metadata.name };
  const words = await Promise.all(found.map((one) => disclosed({ view, access }, caller, one)));
  const warnings = words.map(
    ({ message }) => `annotation ${POOLS}: ${message}; until then its pods are refused`,
  );
  return [...new Set(warnings)];
}

function objections(view: RecordReader, { metadata }: KubeObject): Refusal[] {
  const { name: namespace, annotations } = metadata;
  const keys = [POOLS, FAMILIES_KEY].filter((key) => annotations[key] !== undefined);
  const request = readRequest(Object.fromEntries(keys.map((key) => [key, annotations[key] ?? ""])));
  if (isRefusal(request) || request.pools === undefined) return [];
  const labels = { ...metadata.labels, ...bareNamespace(namespace).labels };
  const found: Refusal[] = [];
  const open: Source[] = [];
  for (const name of request.pools) {
    const source = sourceNamed(view, name);
    if (source === undefined) {
      // of a CIDR it is not said where it might be
      if (!poolNameIn(name).includes("/")) found.push(unknownPool(view, poolNameIn(name)));
      continue;
    }
    const why = closed(view, source, namespace, labels);
    if (why === undefined) open.push(source);
    else found.push(why);
  }
  if (found.length > 0) return found;
  const missing = request.families?.find(
    (family) => !open.some(({ part }) => familiesOf(part).includes(family)),
  );
  const pools = open.map(({ pool }) => pool);
  return missing === undefined || pools.length === 0 ? [] : [noFamily(pools, missing)];
}

/** Why it serves no pod of the namespace, whatever the pod's labels and account are. */
function closed(
  view: RecordReader,
  { pool, part }: Source,
  namespace: string,
  namespaceLabels: Labels,
): Refusal | undefined {
  const { podSelector: _, ...spec } = pool.spec;
  const usable = new Set([pool.name]);
  const why = ineligibility(
    view,
    { ...pool, spec },
    { namespace, namespaceLabels, podLabels: {}, usable },
    false,
  );
  if (why !== undefined) return why();
  const [family = "IPv4"] = part.families;
  return part.ranges.length === 0 ? noFamily([pool], family) : undefined;
}
