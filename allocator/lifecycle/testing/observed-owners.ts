// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { it } from "node:test";
import {
  bindingTo,
  claimRecord,
  DB_POOL,
  podFactsOf,
  viewOf,
  workloadFactsOf,
} from "../../../test/support/fixtures.ts";
import type { Labels } from "../../base/ports.ts";
import { ownReader } from "../../demand/foreign-pools.ts";
import type { Claim } from "../../model/claim.ts";
import type { ClusterState, PodState, WorkloadAnswer } from "../../model/cluster-state.ts";
import { OWN_OF_EACH } from "../../model/dialect.ts";
import { observeOwner } from "../retention.ts";

export const podFacts = (name: string, uid: string) => podFactsOf(name, { uid });
export const set = (replicas: number, start = 0) => workloadFactsOf({ replicas, start });
export const inventory = (pods: readonly PodState[], workload: WorkloadAnswer): ClusterState => ({
  pod: async (_, name) => pods.find((pod) => pod.name === name),
  workload: async () => workload,
  namespace: async () => undefined,
  fenced: async () => false,
});
export const own = podFactsOf("mysql-0", { annotations: { "berth.dev/claim": "mysql-0" } });
export const failed = podFactsOf("mysql-0", { ended: true });
export const plain = podFacts("mysql-0", "u2");
export const asks = podFactsOf("mysql-0", { uid: "u2", annotations: { "berth.dev/pools": "db" } });
export const given = podFactsOf("mysql-0", { uid: "u2", annotations: { "berth.dev/claim": "mysql-0" } });
export const mute = workloadFactsOf({ annotations: {} });
export const reader = ownReader({ view: viewOf({ pools: [DB_POOL] }), dialects: OWN_OF_EACH });
export const elsewhere = { "cni.projectcalico.org/ipAddrs": '["172.31.9.9"]' };
export const asking = (annotations: Labels) =>
  inventory([podFactsOf("mysql-0", { uid: "u2", annotations })], workloadFactsOf({ annotations }));
export const ordinal = { kind: "StatefulSet", apiVersion: "apps/v1", name: "mysql", ordinal: 0 };
export const foreign = { ...ordinal, apiVersion: "apps.pingcap.com/v1" };
export const web = { kind: "Deployment", apiVersion: "apps/v1", name: "web" };
export const used: Partial<Claim> = { binding: bindingTo("mysql-0", "x") };
export const unmet = { binding: bindingTo("", "", { token: "t", podUID: "" }) };

/** What is found, of what, of which claim, where. */
export type Row = readonly [string, string, Partial<Claim>, ClusterState];

export function observeAll(rows: readonly Row[]): void {
  for (const [outcome, title, claim, world] of rows) {
    it(`${title}: ${outcome}`, async () => {
      const { owner, podLives } = await observeOwner(claimRecord(claim), world, reader);
      assert.equal(`${owner}, ${podLives ? "pod" : "no pod"}`, outcome);
    });
  }
}
