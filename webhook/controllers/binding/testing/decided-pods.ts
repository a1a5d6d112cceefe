// SPDX-License-Identifier: Apache-2.0
import type { BindingEvidence } from "../../../../allocator/lifecycle/bind.ts";
import {
  ASSIGNED_ADDRESSES,
  ASSIGNED_CLAIM,
  ASSIGNED_TOKEN,
} from "../../../../allocator/manifest/annotations.ts";
import type { Claim } from "../../../../allocator/model/claim.ts";
import type { WorkloadRef, WorkloadState } from "../../../../allocator/model/cluster-state.ts";
import { type Dialects, OWN_OF_EACH } from "../../../../allocator/model/dialect.ts";
import {
  bindingTo,
  claimRecord,
  DB_POOL,
  NOW,
  poolRecord,
  viewOf,
} from "../../../../test/support/fixtures.ts";
import type { ObservedPod } from "../../../cluster-state/observed-objects.ts";
import { type BindDecision, decideBinding } from "../bind-decision.ts";

const WEB_POOL = poolRecord("web", "10.30.0.0/24");
export const NONE: BindingEvidence = { fenced: false, holdExpired: false };
export const POD: ObservedPod = {
  ...{ namespace: "shop", name: "mysql-0", uid: "u1", node: "x" },
  ...{
    labels: {},
    annotations: { "berth.dev/sticky": "true" },
    up: false,
    deleting: false,
    exempt: false,
    ended: false,
  },
};
export const TOKENED: ObservedPod = {
  ...POD,
  name: "web-5d9c7b-abcde",
  annotations: { [ASSIGNED_CLAIM]: "c-1", [ASSIGNED_TOKEN]: "t1", [ASSIGNED_ADDRESSES]: "10.20.0.70" },
};
export const hold = (since: number) => bindingTo("", "", { token: "t1", podUID: "", since });
export const held = claimRecord({ name: "c-1", binding: hold(NOW) });

/** Its ordinals begin at 3. */
const LATE: WorkloadState = {
  ...{ apiVersion: "apps/v1", kind: "StatefulSet", namespace: "shop", name: "late", uid: "s2" },
  ...{ replicas: 3, start: 3, annotations: {}, hostNetwork: false },
};
export const inventory = { workload: async ({ name }: WorkloadRef) => (name === "late" ? LATE : undefined) };

interface Circumstances {
  readonly facts?: BindingEvidence;
  readonly now?: number;
  readonly dialects?: Dialects;
}

export async function look(
  pod: ObservedPod,
  claims: readonly Claim[],
  { facts = NONE, now = NOW, dialects = OWN_OF_EACH }: Circumstances = {},
): Promise<BindDecision> {
  const view = viewOf({ claims, pools: [DB_POOL, WEB_POOL] });
  return await decideBinding(pod, {
    view,
    dialects,
    inventory,
    cachedEvidence: async () => facts,
    now,
  });
}

/** A pod that asks so in Calico's words. */
export const asking = (ipAddrs: string) => ({
  ...POD,
  annotations: { "cni.projectcalico.org/ipAddrs": ipAddrs },
});
