// SPDX-License-Identifier: Apache-2.0
// What admission says of a pod beside what it reserves: of MAC addresses, interfaces, and keys that it does not read.

import { isRefusal, type Refusal } from "../../allocator/base/errors.ts";
import type { RecordReader } from "../../allocator/cache/reader.ts";
import { macsAside } from "../../allocator/demand/own-macs.ts";
import { isExempt } from "../../allocator/demand/pod-allocation.ts";
import { podTemplate, templateAnnotations } from "../../allocator/demand/workload-allocation.ts";
import type { Address } from "../../allocator/ip/address.ts";
import { EXEMPT_NAMESPACE } from "../../allocator/manifest/annotations.ts";
import { notesOn, withoutUnread } from "../../allocator/manifest/dialects.ts";
import type { KubeObject } from "../../allocator/manifest/kubernetes-object.ts";
import { forNamespacesAlone, nearMisses } from "../../allocator/manifest/near-keys.ts";
import { unmadeInterfaces } from "../../allocator/manifest/unmade-interfaces.ts";
import type { Dialects } from "../../allocator/model/dialect.ts";
import { ifAsksTheSame, judgeCount } from "../../webhook/admission/unfit-entries.ts";
import type { Backend } from "../backend/backend.ts";
import type { DryRunner } from "./dry-runner.ts";

interface Known {
  readonly view: RecordReader;
  readonly dialects?: Dialects;
  readonly place: Backend["place"];
  /** The object is there like that, as far as this user may read it: what it asks for was judged when it was made. */
  readonly isThere: boolean;
  /** The object as it is there, as far as this user may read it. */
  readonly there?: KubeObject;
  /** How many pods it will have. */
  readonly replicas: number;
}

/** Warnings, or a refusal; `rows` are what the object's pods would get. */
export function judgeBeside(
  { view, dialects, place, isThere, there, replicas }: Known,
  object: KubeObject,
  rows: readonly DryRunner[],
): readonly string[] | Refusal {
  if (rows.length === 0 || !hasPods(object)) return [];
  const enough = isThere ? [] : judgeEntries({ object, there, replicas }, rows);
  if (isRefusal(enough)) return enough;
  const isPod = object.kind === "Pod";
  const annotations = isPod ? object.metadata.annotations : templateAnnotations(object);
  const { namespace } = object.metadata;
  const macs = macsAside(view, annotations, { dialects, namespace }, keptBy(rows));
  if (isRefusal(macs)) return macs;
  const read = withoutUnread(annotations, dialects);
  const isServed = rows.some(({ outcome }) => !isRefusal(outcome) && outcome.kind !== "nothing");
  return [
    ...enough,
    ...macs,
    ...nearMisses(annotations, dialects),
    ...forNamespacesAlone(annotations, dialects),
    ...(isServed ? notesOn(read) : []),
    ...unmadeInterfaces(read, place !== "cluster"),
  ];
}

/** Whether the list of a Deployment has an entry for every pod that may live at once. */
function judgeEntries(
  of: {
    readonly object: KubeObject;
    readonly there: KubeObject | undefined;
    readonly replicas: number;
  },
  rows: readonly DryRunner[],
): readonly string[] | Refusal {
  const { object, there, replicas } = of;
  const [first] = rows;
  const entries = first?.request.entries;
  const isJudged = object.kind === "Deployment" && entries !== undefined && rows.length === entries.length;
  if (!isJudged || rows.some(({ outcome }) => isRefusal(outcome))) return [];
  const fit = rows.filter(({ outcome }) => isRefusal(outcome) || outcome.kind !== "nothing"); // others have an entry that no pod can have
  const count = { replicas, fit: fit.length, listed: entries.length };
  return judgeCount(ifAsksTheSame(there, object), object, count);
}

function hasPods(object: KubeObject): boolean {
  if (object.kind === "Pod") return !isExempt(object);
  if (object.metadata.namespace === EXEMPT_NAMESPACE) return false;
  const template = podTemplate(object);
  return Object.keys(template.value).length > 0 && !template.at("spec").flag("hostNetwork");
}

function keptBy(rows: readonly DryRunner[]): ReadonlySet<Address> {
  const kept = rows.flatMap(({ outcome, request }) => [
    ...(request.entries ?? []).flat(),
    ...(isRefusal(outcome) || outcome.kind !== "dry-run"
      ? []
      : outcome.addresses.map(({ address }) => address)),
  ]);
  return new Set(kept);
}
