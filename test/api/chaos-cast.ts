// SPDX-License-Identifier: Apache-2.0
// Who is on stage in a run of chaos, and what must be there for them.
import { CLAIMS, DEPLOYMENTS, STATEFULSETS } from "../../kube/api/resource.ts";
import { NAMESPACE } from "./agent-cluster.ts";
import { type Actor, keeper, makeClaim, makeSet, scaler } from "./chaos-actors.ts";
import type { Stage } from "./chaos-acts.ts";
import * as roles from "./chaos-roles.ts";
import { workloadSpec } from "./replica-objects.ts";

const HAND_MADE = ["hand-0", "hand-1"];
const KEPT = { name: "kept-0", address: "10.20.0.182" };

const place = (name: string) => ({ namespace: NAMESPACE, name });

/** Workloads and claims that people make before. */
export async function prepare(stage: Stage): Promise<void> {
  await makeSet(stage, roles.SET, 3);
  const template = workloadSpec(roles.DEPLOYMENT, { replicas: 2, annotations: roles.SLOTS });
  await stage.api.make(DEPLOYMENTS, place(roles.DEPLOYMENT), {
    spec: { ...template, strategy: { type: "Recreate" } },
  });
  for (const name of HAND_MADE) await makeClaim(stage, name);
}

export const CAST: readonly Actor[] = [
  keeper(roles.pinned("pin-0", "10.20.0.180")),
  keeper(roles.pinned("pin-1", "10.20.0.181")),
  keeper(roles.pinned(KEPT.name, KEPT.address, { "berth.dev/when-deleted": "Retain" })),
  ...[0, 1, 2].map((n) => keeper(roles.ordinal(roles.SET, n))),
  ...[0, 1].map((n) => keeper(roles.anonymous(`any-${n}`))),
  ...[0, 1].map((n) => keeper(roles.slot(`web-${n}`))),
  ...HAND_MADE.map((name) => keeper(roles.handMade(name))),
  ...[0, 1].map((n) => keeper(roles.rival(`rival-${n}`))),
  scaler("wide"),
];

/** Takes away what `prepare` has made. */
export async function clearAway({ api }: Stage): Promise<void> {
  for (const name of HAND_MADE) await api.delete(CLAIMS, place(name));
  await api.delete(STATEFULSETS, place(roles.SET));
  await api.delete(DEPLOYMENTS, place(roles.DEPLOYMENT));
}

/** What is left when everybody has gone: that whose retention says so. */
export const RETAINED = [`claim ${NAMESPACE}/${KEPT.name}`, `reservation ${KEPT.address}`];
