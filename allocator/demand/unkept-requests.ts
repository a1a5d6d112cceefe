// SPDX-License-Identifier: Apache-2.0

import { shortDuration } from "../base/go-duration.ts";
import type { Labels } from "../base/ports.ts";
import type { RecordReader } from "../cache/reader.ts";
import type { Address } from "../ip/address.ts";
import { poolsNamed, type Request, requestsAddress } from "../model/address-request.ts";
import type { Identity } from "../model/claim.ts";
import { COMPLETION_INDEX, identityOf, type PodIdentity, type PodOwner } from "../model/identity.ts";
import { groupOf, isFollowed } from "../model/workload-kinds.ts";
import { poolNameIn } from "../planning/pool-sources.ts";
import type { Pool } from "../pool/pool.ts";

/** A pod, or the pods of a template: whose they are, and what they ask for. */
interface RequestOfPods {
  readonly podIdentity: PodIdentity;
  /** The controller of the pods; absent: they have none. */
  readonly owner?: Pick<PodOwner, "apiVersion" | "kind" | "name">;
  readonly request: Request;
}

/** Kinds whose pods share a list of addresses, if they have one. */
const SHARING: ReadonlySet<string> = new Set(["Deployment", "CloneSet", "ReplicaSet", "Rollout"]);

/**
 * What is asked to be kept and will not be, in words for the person who applies it, each with what to do; none if all
 * of it is kept. Each line fits into a warning of the API server (256 bytes) with names of usual length.
 */
export function notKept(pods: RequestOfPods): string[] {
  return requestsAddress(pods.request) ? [...lostOf(pods), ...idleTtl(pods)] : [];
}

function lostOf({ podIdentity, owner, request }: RequestOfPods): string[] {
  const { kind, apiVersion } = podIdentity.identity;
  if (podIdentity.kind === "anonymous")
    return owner === undefined ? nameless(request) : alike(owner.kind, request);
  if (podIdentity.kind === "set" || kind === "CloneSet") {
    if (request.entries === undefined) return alike(kind, request);
    return isFollowed(apiVersion, kind)
      ? []
      : [...unstuck(kind, request), ...unretained(kind, request), unread(kind)];
  }
  if (kind === "VirtualMachineInstance") return machine(podIdentity.identity.name, request);
  if (kind === "Pod" && owner?.kind === "StatefulSet") {
    return podIdentity.ordinal === undefined
      ? misnamed(podIdentity.identity.name, owner, request)
      : foreign(owner, request);
  }
  return [];
}

/** A ttl where nothing is retained. */
function idleTtl({ podIdentity, request }: RequestOfPods): string[] {
  const { ttlMs, whenDeleted, whenScaled } = request.retention ?? {};
  if (ttlMs === undefined || ttlMs === null || ttlMs === 0) return [];
  const retainable = isRetainable(podIdentity, request);
  const { kind } = podIdentity.identity;
  const byDefault = kind === "Pod" ? request.sticky === true && whenDeleted === undefined : false;
  const isScaled = kind === "StatefulSet" && whenScaled !== "Release";
  if (retainable && (whenDeleted === "Retain" || byDefault || isScaled)) return [];
  const instead = retainable
    ? "write berth.dev/when-deleted: Retain beside it, or leave it out"
    : "leave it out";
  return [
    `berth.dev/ttl does nothing here: it says how long a retained address is kept, and none is retained; ${instead}`,
  ];
}

/** Whether the address is found again by whoever comes next. */
function isRetainable(podIdentity: PodIdentity, { entries }: Request): boolean {
  const { kind, apiVersion } = podIdentity.identity;
  if (podIdentity.kind === "set") return entries !== undefined && isFollowed(apiVersion, kind);
  return podIdentity.kind === "named" && kind !== "CloneSet";
}

/**
 * What the ttl, or a pool's limits, leave of the time for which addresses are to be kept. Of a request that names neither
 * addresses nor pools it is not known which serves.
 */
export function cappedTtl(view: Pick<RecordReader, "pool" | "poolOf">, pods: RequestOfPods): string[] {
  const { retention, entries = [] } = pods.request;
  const ttlMs = retention?.ttlMs ?? null;
  if (ttlMs === 0) {
    return [
      "berth.dev/ttl=0s keeps no address for any time: one that is to be retained is let go at once; write a longer time, or leave it out",
    ];
  }
  const named = [
    ...entries.flat().map((one) => view.poolOf(one)),
    ...poolsNamed(pods.request).map((name) => view.pool(poolNameIn(name))),
  ];
  if (ttlMs === null) return neverKept(named, pods);
  // where none is retained the ttl has no say, nor what the pool allows of it
  if (idleTtl(pods).length > 0) return [];
  const shorter = named.find((pool) => pool !== undefined && pool.retention.ttlMs < ttlMs);
  if (shorter === undefined) return [];
  const most = shortDuration(shorter.retention.ttlMs);
  return [
    `berth.dev/ttl=${shortDuration(ttlMs)} is longer than pool ${JSON.stringify(shorter.name)} keeps addresses: they are released after ${most}; raise limits.retention.ttl of the pool, or ask for less`,
  ];
}

/** What is to be retained, in a pool that retains nothing. */
function neverKept(named: readonly (Pool | undefined)[], { podIdentity, request }: RequestOfPods): string[] {
  const { whenDeleted, whenScaled } = request.retention ?? {};
  const { kind } = podIdentity.identity;
  const asked = [
    ...(whenDeleted === "Retain" ? ["berth.dev/when-deleted=Retain"] : []),
    ...(kind === "StatefulSet" && whenScaled === "Retain" ? ["berth.dev/when-scaled=Retain"] : []),
    ...(kind === "Pod" && request.sticky === true && whenDeleted === undefined ? ["berth.dev/sticky"] : []),
  ];
  const pool = named.find((one) => one?.retention.ttlMs === 0);
  if (pool === undefined || !isRetainable(podIdentity, request)) return [];
  return asked.map(
    (what) =>
      `${what} keeps no address of pool ${JSON.stringify(pool.name)}, whose limits.retention.ttl is 0s: it is let go at once; raise that, or name another pool`,
  );
}

/** Another address in the place of one that is named, where none is. */
export function idleFallback({ fallback, entries }: Request): string[] {
  if (fallback === undefined || entries !== undefined) return [];
  return [
    `berth.dev/fallback does nothing where no address is named; write berth.dev/ips beside it, or leave it out`,
  ];
}

/** A pod from generateName that nobody owns. */
function nameless({ sticky, retention }: Request): string[] {
  if (sticky !== true && retention?.whenDeleted !== "Retain") return [];
  return [
    "a pod from generateName keeps its address only while it lives, whatever it says: no later pod has its name; give it a name of its own",
  ];
}

/** Nothing tells one of the pods from the next one. */
function alike(kind: string, request: Request): string[] {
  const { sticky, entries } = request;
  const warnings: string[] = [];
  if (sticky === true) {
    const [why, next] = SHARING.has(kind)
      ? ["which have no identity", "give it a set with berth.dev/ips"]
      : [
          "which Berth cannot tell from each other",
          "each keeps its address while it lives; use a StatefulSet",
        ];
    warnings.push(`berth.dev/sticky has no effect on the pods of a ${kind}, ${why}; ${next}`);
  }
  warnings.push(...unretained(kind, request));
  return entries === undefined ? warnings : [...warnings, unread(kind)];
}

/** Of a list whose slots are given back with their pods. */
function unstuck(kind: string, { sticky }: Request): string[] {
  if (sticky !== true) return [];
  return [
    `berth.dev/sticky has no effect on the pods of a ${kind}: when one is gone its address is free, and the next takes any free entry of the list; leave it out, or use a Deployment`,
  ];
}

function unretained(kind: string, { retention }: Request): string[] {
  if (retention?.whenDeleted !== "Retain") return [];
  return [
    `berth.dev/when-deleted=Retain has no effect on the pods of a ${kind}: when one is gone its address is free; leave it out`,
  ];
}

/** Of an owner that Berth does not read, whose pods ask for addresses by name. */
function unread(kind: string): string {
  return `an address is held only while a pod of the ${kind} has it, and not between one pod and the next; list it under "reserved" of its pool, and nobody else gets it who does not ask for it by name`;
}

/** The ordinals of a StatefulSet of a group that Berth does not read: of those it knows the pods by their names. */
function foreign({ apiVersion, kind }: Required<RequestOfPods>["owner"], request: Request): string[] {
  const whose = `Berth does not read a ${kind} of ${groupOf(apiVersion)}: `;
  if (outlivesPods(request)) {
    return [
      `${whose}the address of a pod that is gone stays for limits.retention of its pool, whatever the ${kind} wants; an IPClaim made by hand keeps it for good`,
    ];
  }
  return [
    `${whose}an address goes with its pod; berth.dev/sticky keeps it by the pod's name, for limits.retention of its pool; an IPClaim made by hand keeps it for good`,
  ];
}

function misnamed(pod: string, owner: Required<RequestOfPods>["owner"], request: Request): string[] {
  if (outlivesPods(request)) return [];
  return [
    `pod ${pod} is not called like the pods of ${owner.kind} ${owner.name}, so its address goes with it; berth.dev/sticky keeps it by the pod's name, for limits.retention of its pool`,
  ];
}

/** Of a machine that is stopped there is no pod, and nothing else is read of it. */
function machine(name: string, { retention }: Request): string[] {
  const forGood = `an IPClaim ${name} made by hand keeps it for good`;
  if (retention?.whenDeleted === "Retain") {
    return [
      `the address of virtual machine ${name} stays for limits.retention of its pool when it is stopped, and no longer; ${forGood}`,
    ];
  }
  return [
    `the address of virtual machine ${name} is held only while it runs; berth.dev/when-deleted=Retain keeps it for limits.retention of its pool; ${forGood}`,
  ];
}

/** By its name. */
function outlivesPods({ sticky, retention }: Request): boolean {
  return retention?.whenDeleted === "Retain" || (sticky === true && retention?.whenDeleted === undefined);
}

/**
 * How the pods of a template stand whose owner is not read, and who controls them. Only a pod itself says who it is; this is
 * one of them, as it will be. `index`: of a Job whose pods have one.
 */
export function identityOfPods(
  { apiVersion, kind, name }: Identity,
  index?: number,
): Pick<RequestOfPods, "podIdentity" | "owner"> {
  const owner = { apiVersion, kind: kind === "CronJob" ? "Job" : kind, name, uid: "" };
  const annotations: Labels = index === undefined ? {} : { [COMPLETION_INDEX]: `${index}` };
  const pod = { namespace: "", name: "", generateName: `${name}-`, labels: {}, annotations, owner };
  switch (`${kind} ${groupOf(apiVersion)}`) {
    case "Rollout argoproj.io":
      return { podIdentity: { kind: "set", workload: name, identity: { apiVersion, kind, name } }, owner };
    case "VirtualMachine kubevirt.io": {
      const instance = { ...owner, kind: "VirtualMachineInstance" };
      return { podIdentity: identityOf({ ...pod, owner: instance }), owner: instance };
    }
    default:
      return { podIdentity: identityOf({ ...pod, name: `${name}-0` }), owner };
  }
}

/** Of a pod that named addresses and has others in place of some of them (`berth.dev/fallback: any`). */
export function fallenBack(named: readonly Address[], got: readonly Address[], who = "this pod"): string[] {
  const lacking = named.filter((address) => !got.includes(address));
  const others = got.filter((address) => !named.includes(address));
  if (lacking.length === 0 || others.length === 0) return [];
  return [
    `${lacking.join(", ")} ${lacking.length === 1 ? "is" : "are"} not to be had now; by berth.dev/fallback ${who} has ${others.join(", ")} instead`,
  ];
}
