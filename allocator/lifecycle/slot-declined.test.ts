// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  attachmentOf,
  bindingTo,
  claimRecord,
  DB_POOL,
  granted,
  namespaceFacts,
  podFactsOf,
  poolRecord,
  storedAs,
  viewOf,
} from "../../test/support/fixtures.ts";
import { workload } from "../../test/support/objects.ts";
import type { Labels } from "../base/ports.ts";
import { ownReader } from "../demand/foreign-pools.ts";
import { readObject, workloadState } from "../manifest/kubernetes-object.ts";
import type { PodState } from "../model/cluster-state.ts";
import { OWN_OF_EACH } from "../model/dialect.ts";
import { observeOwner } from "./retention.ts";

const CALICO = "cni.projectcalico.org/ipAddrs";
const NETWORKS = "k8s.v1.cni.cncf.io/networks";
const BERTH = { "berth.dev/ips": "10.20.0.70" };

describe("the first entry of a Deployment's list, when its template", () => {
  const reader = ownReader({ view: viewOf({ pools: [DB_POOL] }), dialects: OWN_OF_EACH });
  const claim = claimRecord({
    name: "web-slot-0",
    identity: { kind: "Deployment", apiVersion: "apps/v1", name: "web", slot: 0 },
    binding: bindingTo("web-a", "x"),
    status: { attachment: attachmentOf("web-a", { detached: true }) },
  });

  async function owner(annotations: Labels, pods: readonly PodState[] = []) {
    const object = granted(readObject(workload("Deployment", "web", { replicas: 1, annotations })));
    const inventory = {
      pod: async (_: string, name: string) => pods.find((pod) => pod.name === name),
      workload: async () => workloadState(object),
      namespace: async () => undefined,
      fenced: async () => false,
    };
    const facts = await observeOwner(claim, inventory, reader);
    return `${facts.owner}, ${facts.podLives ? "pod" : "no pod"}`;
  }

  const rows: readonly (readonly [string, Labels, string])[] = [
    ["asks Berth", BERTH, "needed"],
    ["asks Berth in another system's words", { [CALICO]: '["10.20.0.70"]' }, "needed"],
    ["asks both", { ...BERTH, [CALICO]: '["172.31.9.9"]' }, "needed"],
    ["asks for nothing", {}, "deleted"],
    ["asks another system", { [CALICO]: '["172.31.9.9"]' }, "deleted"],
    [
      "asks another system on another interface",
      { [NETWORKS]: '[{"name":"lan","ips":["172.31.9.9/24"]}]' },
      "deleted",
    ],
    ["has what nobody can read", { "berth.dev/ips": "junk" }, "needed"],
  ];
  for (const [title, annotations, expected] of rows) {
    it(`${title}, is ${expected}`, async () => {
      assert.equal(await owner(annotations), `${expected}, no pod`);
    });
  }

  it("has a thousand entries in another system's words, is read once for all of them, until a pool changes", async () => {
    const view = viewOf({ pools: [DB_POOL] });
    let asked = 0;
    const poolOf = view.poolOf.bind(view);
    view.poolOf = (address) => {
      asked++;
      return poolOf(address);
    };
    const list = Array.from({ length: 1_000 }, (_, n) => `172.31.${n >> 8}.${n & 255}`).join(",");
    const template = workload("Deployment", "web", { annotations: { "ovn.kubernetes.io/ip_pool": list } });
    const facts = workloadState(granted(readObject(template)));
    const namespace = namespaceFacts();
    const inventory = {
      pod: async () => undefined,
      workload: async () => facts,
      namespace: async () => namespace,
      fenced: async () => false,
    };
    const owners = async () => {
      const found = new Set<string>();
      for (let slot = 0; slot < 1_000; slot++) {
        const identity = { ...claim.identity, slot };
        const own = ownReader({ view, dialects: OWN_OF_EACH });
        found.add((await observeOwner({ ...claim, identity }, inventory, own)).owner);
      }
      return [...found];
    };
    assert.deepEqual(await owners(), ["deleted"]);
    assert.ok(asked < 10_000, `${asked} addresses were looked up`);
    const stored = storedAs("pool", poolRecord("other", "172.31.0.0/16"));
    view.apply("pool", { type: "put", stored });
    assert.deepEqual(await owners(), ["needed"]);
  });

  it("asks another system, stays with the pod that has it", async () => {
    const pod = podFactsOf("web-a", { uid: claim.binding?.podUID ?? "" });
    assert.equal(await owner({ [CALICO]: '["172.31.9.9"]' }, [pod]), "deleted, pod");
  });
});
