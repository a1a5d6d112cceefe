// SPDX-License-Identifier: Apache-2.0

import { Backoff } from "../../allocator/base/backoff.ts";
import { messageOf } from "../../allocator/base/errors.ts";
import type { Clock, Logger, Random } from "../../allocator/base/ports.ts";
import { ASSIGNED_TOKEN } from "../../allocator/manifest/annotations.ts";
import { isReadWith } from "../../allocator/manifest/dialects.ts";
import type { NamespaceState } from "../../allocator/model/cluster-state.ts";
import type { Dialects } from "../../allocator/model/dialect.ts";
import type { Connection } from "../../kube/api/connection.ts";
import {
  APPS,
  apiVersionOf,
  KRUISE,
  type KubeItem,
  NAMESPACES,
  NODES,
  PODS,
  type Resource,
} from "../../kube/api/resource.ts";
import { Reflector } from "../../kube/watch/reflector.ts";
import type { WatchMetrics } from "../../kube/watch/watch-metrics.ts";
import { isServed } from "./discovery.ts";
import type { ObservedNode, ObservedPod, ObservedWorkload } from "./observed-objects.ts";
import { namespaceFacts, observedNode, observedPod, observedWorkload } from "./projections.ts";

export type { ObservedNode, ObservedPod, ObservedWorkload } from "./observed-objects.ts";

/** What is known of the API server's objects at this moment: it proposes and never proves. */
export interface Informers {
  /** Key namespace/name; index `node`. */
  readonly pods: Reflector<ObservedPod>;
  /** By kind and group, apps/v1 first. Key namespace/name. OpenKruise's are empty until the API server serves them. */
  readonly workloads: readonly WorkloadInformer[];
  /** Key: name. */
  readonly namespaces: Reflector<NamespaceState>;
  /** Key: name. */
  readonly nodes: Reflector<ObservedNode>;
}

export interface WorkloadInformer {
  /** StatefulSet, Deployment, CloneSet. */
  readonly kind: string;
  readonly apiVersion: string;
  readonly reflector: Reflector<ObservedWorkload>;
}

/** Watches that are under way until their signal aborts. */
export interface RunningInformers extends Informers {
  /** Resolves once everything that the API server serves was listed whole; never, when the signal aborts before it. */
  readonly synced: Promise<void>;
  isSynced(): boolean;
  /** Resolves when nothing is watched any more, after the signal. */
  readonly ended: Promise<void>;
}

interface InformerDeps {
  readonly connection: Connection;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  /** `all` if absent. */
  readonly dialects?: Dialects;
  /** Told how the watches are. */
  readonly health?: WatchMetrics;
}

/** What is not served is asked for again after this and up to twice as long: somebody may install it. */
const ASK_AGAIN_MS = 150_000;
const FAILED = { base: 500, longest: 30_000 };

/** Of pods whose claims may not be bound to them yet. One that is up has had its addresses. */
function tokensOf({ annotations, up }: ObservedPod): readonly string[] {
  const token = annotations[ASSIGNED_TOKEN];
  return up || token === undefined ? [] : [token];
}

/** Watches what claims are kept for. Nothing here throws: what cannot be reached is tried again. */
export function startInformers(deps: InformerDeps, signal: AbortSignal): RunningInformers {
  const isRead = isReadWith(deps.dialects);
  const reflector = <P>(resource: Resource, project: (item: KubeItem) => P) =>
    new Reflector({ ...deps, resource, project });
  const pods = new Reflector<ObservedPod>({
    ...deps,
    resource: PODS,
    project: (item) => observedPod(item, isRead),
    indexes: {
      node: ({ node }) => (node === "" ? [] : [node]),
      token: tokensOf,
    },
  });
  const namespaces = reflector<NamespaceState>(NAMESPACES, (item) => namespaceFacts(item, isRead));
  const nodes = reflector<ObservedNode>(NODES, observedNode);
  const workload = (resource: Resource): WorkloadInformer & { readonly resource: Resource } => ({
    kind: resource.kind,
    apiVersion: apiVersionOf(resource),
    reflector: reflector<ObservedWorkload>(resource, (item) => observedWorkload(resource, item, isRead)),
    resource,
  });
  const [apps, kruise] = [APPS.map(workload), KRUISE.map(workload)];
  const always = [pods, namespaces, nodes, ...apps.map((watch) => watch.reflector)];
  const perhaps = kruise.map((watch) => runWhenServed(deps, watch, signal));
  const running = always.map((one) => one.run(signal));
  let isSynced = false;
  const synced = Promise.all([
    ...always.map((one) => one.synced),
    ...perhaps.map(({ settled }) => settled),
  ]).then(() => {
    isSynced = true;
  });
  const ended = Promise.all([...running, ...perhaps.map((one) => one.ended)]).then(() => undefined);
  return {
    ...{ pods, namespaces, nodes, workloads: [...apps, ...kruise] },
    ...{ synced, isSynced: () => isSynced, ended },
  };
}

/** `settled`: everything was listed once, or the API server says that there is no such thing. */
function runWhenServed(
  deps: InformerDeps,
  { resource, reflector }: { readonly resource: Resource; readonly reflector: Reflector<ObservedWorkload> },
  signal: AbortSignal,
): { readonly settled: Promise<void>; readonly ended: Promise<void> } {
  const { clock, random } = deps;
  const settled = Promise.withResolvers<void>();
  const backoff = new Backoff(FAILED, random);
  const run = async () => {
    while (!signal.aborted) {
      const served = await asked(deps, resource);
      if (served === true) {
        reflector.synced.then(settled.resolve, settled.reject);
        await reflector.run(signal);
      } else {
        if (served === false) settled.resolve();
        const ms = served === false ? ASK_AGAIN_MS * (1 + random.fraction()) : backoff.next();
        await clock.sleep(ms, signal);
      }
    }
  };
  return { settled: settled.promise, ended: run() };
}

/** Undefined when the API server does not say. */
async function asked({ connection, log }: InformerDeps, resource: Resource): Promise<boolean | undefined> {
  try {
    return await isServed(connection, resource);
  } catch (error) {
    log.warn("resource cannot be looked for", { kind: resource.kind, error: messageOf(error) });
    return undefined;
  }
}
