// SPDX-License-Identifier: Apache-2.0
// What admission says to the annotations of a manifest, and to a pool, by its own rules.

import type { Refusal } from "../../allocator/base/errors.ts";
import type { Labels } from "../../allocator/base/ports.ts";
import type { RecordReader } from "../../allocator/cache/reader.ts";
import { givenElsewhere } from "../../allocator/demand/given-elsewhere.ts";
import { isExempt } from "../../allocator/demand/pod-allocation.ts";
import { templateAnnotations } from "../../allocator/demand/workload-allocation.ts";
import { EXEMPT_NAMESPACE } from "../../allocator/manifest/annotations.ts";
import { foreignDefaults, foreignRequests } from "../../allocator/manifest/foreign-requests.ts";
import type { KubeObject } from "../../allocator/manifest/kubernetes-object.ts";
import {
  idleRequests,
  requestsOfHost,
  requestsOfSystem,
  unknownKey,
  writtenByOthers,
} from "../../allocator/manifest/own-keys.ts";
import type { Dialects } from "../../allocator/model/dialect.ts";
import { idleDefaults } from "../../webhook/admission/ignored-defaults.ts";
import { changed } from "../../webhook/admission/pod-rules.ts";
import { judgePool } from "../../webhook/admission/pool-rules.ts";
import { unreadableDefaults } from "../../webhook/admission/validate-namespace.ts";
import type { Objects } from "../backend/backend.ts";
import { ifAllowed } from "../backend/if-allowed.ts";

/** Beside what its pods would get. */
interface Judgement {
  readonly refusal: Refusal | undefined;
  readonly warnings: readonly string[];
  /** Warnings that hold if it asks for no address. */
  readonly idle: readonly string[];
}

/** `view` shows the pools that stand before this object in its files. */
export async function judgeManifest(
  view: RecordReader,
  world: Objects,
  object: KubeObject,
  dialects?: Dialects,
): Promise<Judgement> {
  const { name, annotations } = object.metadata;
  switch (object.kind) {
    case "Namespace": {
      const before = await ifAllowed(() => world.namespace(name));
      const unknown = unknownKey("Namespace", annotations, before?.annotations);
      const { asks, beside } = foreignDefaults(annotations, dialects);
      return {
        refusal: unknown ?? unreadableDefaults(annotations),
        warnings: [...idleDefaults(object), ...asks, ...beside],
        idle: [],
      };
    }
    case "IPPool":
      return {
        refusal: unknownKey("IPPool", annotations) ?? judgePoolBy(view, object),
        warnings: [],
        idle: [],
      };
    case "IPClaim":
      return { refusal: unknownKey("IPClaim", annotations), warnings: [], idle: [] };
    case "Pod":
      return judgePod({ view, dialects }, object, await beforeOf(world, object));
    default:
      return judgeTemplate({ view, dialects }, object, await beforeOf(world, object));
  }
}

function judgePoolBy(view: RecordReader, object: KubeObject): Refusal | undefined {
  const pools = view.pools();
  const blocks = pools.flatMap(({ name }) => [...(view.blocksOf?.(name) ?? [])].map(({ record }) => record));
  const held = blocks.filter(({ releasedAt }) => releasedAt === undefined);
  const before = view.pool(object.metadata.name)?.spec;
  return judgePool({ view, pools, blocks: held }, object, before && { ...before });
}

async function beforeOf(world: Objects, { kind, metadata }: KubeObject): Promise<KubeObject | undefined> {
  const { namespace, name } = metadata;
  return name === "" ? undefined : await ifAllowed(() => world.object(kind, namespace, name));
}

interface Known {
  readonly view: RecordReader;
  readonly dialects: Dialects | undefined;
}

function judgePod(known: Known, pod: KubeObject, before: KubeObject | undefined): Judgement {
  const { view, dialects } = known;
  const { annotations } = pod.metadata;
  if (isExempt(pod))
    return { refusal: undefined, warnings: [], idle: requestsOfExempt(pod, annotations, dialects) };
  const refusal =
    before === undefined
      ? (unknownKey("Pod", annotations) ?? givenElsewhere(view, annotations, dialects))
      : changed(known, before, pod);
  return { refusal, ...requestsIn(annotations, "are removed from this pod", dialects) };
}

function judgeTemplate(
  { view, dialects }: Known,
  object: KubeObject,
  before: KubeObject | undefined,
): Judgement {
  const annotations = templateAnnotations(object);
  const template = object.spec.at("template").at("spec");
  if (object.metadata.namespace === EXEMPT_NAMESPACE || template.flag("hostNetwork"))
    return { refusal: undefined, warnings: [], idle: requestsOfExempt(object, annotations, dialects) };
  const was = before === undefined ? {} : templateAnnotations(before);
  const added = Object.fromEntries(Object.entries(annotations).filter(([key, value]) => was[key] !== value));
  const refusal = unknownKey("Pod", annotations, was) ?? givenElsewhere(view, added, dialects);
  return { refusal, ...requestsIn(annotations, "are removed from its pods", dialects) };
}

function requestsOfExempt(
  { metadata }: KubeObject,
  annotations: Labels,
  dialects?: Dialects,
): readonly string[] {
  return metadata.namespace === EXEMPT_NAMESPACE
    ? requestsOfSystem(annotations)
    : requestsOfHost(annotations, dialects);
}

function requestsIn(
  annotations: Labels,
  effect: string,
  dialects?: Dialects,
): Pick<Judgement, "warnings" | "idle"> {
  const { asks, beside } = foreignRequests(annotations, dialects);
  return {
    warnings: [...asks, ...beside],
    idle: [...idleRequests(annotations), ...writtenByOthers(annotations, effect)],
  };
}
