// SPDX-License-Identifier: Apache-2.0
import { deploymentPod, type Json, ownedBy, pod, statefulPod } from "../support/objects.ts";

/** UIDs of StatefulSets as they are now. */
export type Uids = ReadonlyMap<string, string>; // name of the set -> its UID

/** One place that pods of a run take, one after the other. */
export interface Role {
  readonly name: string;
  /** The next pod, as a person or a controller makes it. */
  readonly pod: (sets: Uids) => Json;
  /** Its pods have the same addresses, whatever happens: absent where each has others. */
  readonly sticky?: true;
  /** Another role wants the same address: it may be refused. */
  readonly contested?: true;
}

export const POOL = "db";
/** Of the pool that every role is served from; addresses from .150 on are asked for by name. */
export const RANGE = { cidr: "10.20.0.0/24", gateway: "10.20.0.1" };
export const SET = "db";
export const DEPLOYMENT = "web";
export const ANY = { "berth.dev/pools": POOL };
export const SLOTS = { "berth.dev/ips": "10.20.0.150;10.20.0.151;10.20.0.152;10.20.0.153" };

const UNHELD = { spec: { automountServiceAccountToken: false, terminationGracePeriodSeconds: 30 } };

export function pinned(name: string, address: string, more: Readonly<Record<string, string>> = {}): Role {
  const annotations = { "berth.dev/ips": address, ...more };
  return { name, pod: () => pod(name, { annotations, ...UNHELD }), sticky: true };
}

export function ordinal(set: string, n: number): Role {
  const owner = (uid = "") => ({ ...ownedBy("StatefulSet", set), uid });
  return {
    name: `${set}-${n}`,
    pod: (sets) => statefulPod(set, n, { annotations: ANY, owner: owner(sets.get(set)), ...UNHELD }),
    sticky: true,
  };
}

export function anonymous(name: string): Role {
  return { name, pod: () => pod("", { generateName: `${name}-`, annotations: ANY, ...UNHELD }) };
}

export function slot(name: string): Role {
  return { name, pod: () => deploymentPod(DEPLOYMENT, { annotations: SLOTS, ...UNHELD }) };
}

/** The pod of a claim that was made by hand. */
export function handMade(name: string): Role {
  return { name, pod: () => pod(name, { annotations: ANY, ...UNHELD }), sticky: true };
}

export function rival(name: string): Role {
  const annotations = { "berth.dev/ips": "10.20.0.160" };
  return { name, pod: () => pod(name, { annotations, ...UNHELD }), contested: true };
}
