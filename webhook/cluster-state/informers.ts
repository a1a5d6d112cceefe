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
  kindName,
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
  /** What the reflector does not have is not there: everything was listed, or the API server has no such kind. */
  isListed(): boolean;
}

/** Watches that are under way until their signal aborts. */
export interface RunningInformers extends Informers {
  /**
   * Resolves once everything that the API server serves was listed whole, or cannot be had of what need not be there;
   * never, when the signal aborts before it.
   */
  readonly synced: Promise<void>;
  isSynced(): boolean;
  /** The kinds that it waits for. */
  awaited(): readonly string[];
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
/**
 * A start waits no longer for OpenKruise's kinds: their lists fail while its conversion webhook is down, and no other
 * pod needs them. Until they are listed nobody knows what there is of them.
 */
const UNLISTED_MS = 15_000;
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
  const workload = (resource: Resource) => {
    const project = (item: KubeItem) => observedWorkload(resource, item, isRead);
    const { kind } = resource;
    return {
      ...{ resource, kind, apiVersion: apiVersionOf(resource) },
      reflector: reflector<ObservedWorkload>(resource, project),
    };
  };
  const apps = APPS.map(workload);
  const perhaps = KRUISE.map((resource) => runWhenServed(deps, workload(resource), signal));
  const always = [
    ...[running(PODS, pods, signal), running(NAMESPACES, namespaces, signal), running(NODES, nodes, signal)],
    ...apps.map(({ resource, reflector }) => running(resource, reflector, signal)),
  ];
  return {
    ...{ pods, namespaces, nodes },
    workloads: [
      ...apps.map((watch) => ({ ...watch, isListed: () => watch.reflector.isSynced })),
      ...perhaps.map(({ watch, isListed }) => ({ ...watch, isListed })),
    ],
    ...together([...always, ...perhaps]),
  };
}

/** What a start waits for. */
interface Loading {
  readonly resource: Resource;
  readonly settled: Promise<void>;
  /** Nothing of it is watched any more. */
  readonly ended: Promise<void>;
}

function running<P>(resource: Resource, reflector: Reflector<P>, signal: AbortSignal): Loading {
  return { resource, settled: reflector.synced, ended: reflector.run(signal) };
}

function together(
  all: readonly Loading[],
): Pick<RunningInformers, "synced" | "isSynced" | "awaited" | "ended"> {
  const awaited = new Set(all);
  const settled = all.map(async (one) => {
    await one.settled;
    awaited.delete(one);
  });
  return {
    synced: Promise.all(settled).then(() => undefined),
    isSynced: () => awaited.size === 0,
    awaited: () => [...awaited].map(({ resource }) => kindName(resource)),
    ended: Promise.all(all.map(({ ended }) => ended)).then(() => undefined),
  };
}

type Workloads = Omit<WorkloadInformer, "isListed"> & { readonly resource: Resource };

/** `settled`: everything was listed once, or the API server says that there is no such thing, or says nothing for too long. */
function runWhenServed(
  deps: InformerDeps,
  watch: Workloads,
  signal: AbortSignal,
): Loading & { readonly watch: Workloads; readonly isListed: () => boolean } {
  const { clock, random, log } = deps;
  const { resource, reflector } = watch;
  const settled = Promise.withResolvers<void>();
  const waited = new AbortController();
  const settle = () => {
    waited.abort();
    settled.resolve();
  };
  const backoff = new Backoff(FAILED, random);
  let served: boolean | undefined;
  const run = async () => {
    while (!signal.aborted) {
      served = await asked(deps, resource);
      if (served === true) {
        void reflector.synced.then(settle);
        await reflector.run(signal);
      } else {
        if (served === false) settle();
        const ms = served === false ? ASK_AGAIN_MS * (1 + random.fraction()) : backoff.next();
        await clock.sleep(ms, signal);
      }
    }
  };
  const giveUp = async () => {
    await clock.sleep(UNLISTED_MS, AbortSignal.any([signal, waited.signal]));
    if (signal.aborted || waited.signal.aborted) return;
    log.warn("resource is not listed yet, and the start goes on without it", { kind: kindName(resource) });
    settle();
  };
  return {
    ...{ resource, watch, settled: settled.promise },
    isListed: () => served === false || reflector.isSynced,
    ended: Promise.all([run(), giveUp()]).then(() => undefined),
  };
}

/** Undefined when the API server does not say. */
async function asked({ connection, log }: InformerDeps, resource: Resource): Promise<boolean | undefined> {
  try {
    return await isServed(connection, resource);
  } catch (error) {
    log.warn("resource cannot be looked for", { kind: kindName(resource), error: messageOf(error) });
    return undefined;
  }
}
