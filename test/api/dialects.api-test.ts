// SPDX-License-Identifier: Apache-2.0
// Every annotation of other systems that Berth reads, from kubectl's request to the answer of an ADD: a real API server with the
// chart's conditions and policies, the webhook with its controllers, and an agent.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { FOREIGN_ROWS } from "../../allocator/manifest/foreign-requests.ts";
import { isIn } from "../../allocator/planning/pool-sources.ts";
import { PODS, POOLS } from "../../kube/api/resource.ts";
import { argsOf } from "../cni/caller.ts";
import { buildPlugin } from "../cni/plugin.ts";
import { DIALECT_CASES, DIALECT_POOLS, type DialectCase } from "../support/dialect-cases.ts";
import { addr, parsed, poolRecord } from "../support/fixtures.ts";
import type { AgentNode } from "./agent-node.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { forceDelete, make, makeNamespace, makePod, makeStatefulSet } from "./replica-objects.ts";
import { WebhookCluster } from "./webhook-cluster.ts";

/** What a runtime says that was told the MAC address, as Multus is. */
function toldMac({ mac }: DialectCase, args: string): string {
  return mac === undefined ? args : `${args};MAC=${mac}`;
}

const NODE = "node-a";
const OF_A_POOL = "192.168.56.101";
const OF_NO_POOL = "203.0.113.101";
const OPTED_IN = { "berth.dev/admission": "enabled" };

if (havePartsOrSkip(["etcd", "kube-apiserver"])) {
  describe("the example of each system's own documents, on a real API server", () => {
    let cluster: WebhookCluster;
    let node: AgentNode;

    before(async () => {
      await buildPlugin();
      cluster = await WebhookCluster.open({
        policies: true,
        prepare: async (admin) => {
          for (const { name, spec } of DIALECT_POOLS)
            await make(admin, POOLS, { name }, { spec: { ...spec } });
        },
      });
      node = await cluster.addNode(NODE);
    });
    after(() => cluster?.close());

    /** A pod that asks so, in a namespace of its own. */
    async function podFor(one: DialectCase, namespace: string): Promise<{ name: string; uid: string }> {
      const { annotations, ordinal } = one;
      const isDefault = one.place === "namespace";
      await makeNamespace(cluster.admin, namespace, isDefault ? { labels: OPTED_IN, annotations } : {});
      const asking = isDefault ? {} : annotations;
      if (ordinal === undefined) {
        const { metadata } = await makePod(
          cluster.admin,
          { namespace, name: "a" },
          { node: NODE, annotations: asking },
        );
        return { name: "a", uid: metadata.uid };
      }
      const spec = { ordinals: { start: 1 } };
      const place = { namespace, name: "web" };
      const set = await makeStatefulSet(cluster.admin, place, {
        replicas: ordinal,
        annotations: asking,
        spec,
      });
      const owner = {
        apiVersion: "apps/v1",
        kind: "StatefulSet",
        name: "web",
        uid: set.metadata.uid,
        controller: true,
      };
      const name = `web-${ordinal}`;
      const containers = [{ name: "main", image: "registry.example/app:1" }];
      const made = await make(
        cluster.admin,
        PODS,
        { namespace, name },
        {
          metadata: { annotations: asking, ownerReferences: [owner] },
          spec: { nodeName: NODE, containers },
        },
      );
      return { name, uid: made.metadata.uid };
    }

    for (const [n, one] of DIALECT_CASES.entries()) {
      it(`is what the ADD answers: ${one.key} on a ${one.place}`, async () => {
        const namespace = `dialect-${n}`;
        const { name, uid } = await podFor(one, namespace);
        const args = argsOf({ namespace, name, uid });
        const reported = toldMac(one, args);
        const said = { cid: `c${n}`, args: reported, ifname: one.interface ?? "eth0" };
        if (one.mac !== undefined)
          assert.match(await node.runtime.refused("ADD", { ...said, args }), /has MAC address/);
        const got = (await node.runtime.add(said)).map((cidr) => cidr.split("/")[0] ?? "");
        assert.equal(got.length, one.gets.length, got.join());
        for (const [i, expected] of one.gets.entries()) {
          const address = addr(got[i] ?? "");
          if (expected.includes("/")) assert.ok(isIn(parsed(poolRecord("of", expected)), address), address);
          else assert.equal(address, addr(expected));
        }
        await node.runtime.del(said);
        await forceDelete(cluster.admin, PODS, { namespace, name });
      });
    }

    const others = FOREIGN_ROWS.filter(({ on }) => on.includes("pod")).map((row) => ({
      ...row,
      key: row.key.replace("<nad>", "lan").replace("<namespace>", "default"),
    }));
    const reported = async (key: string, value: string) => {
      const metadata = { generateName: "told-", namespace: "default", annotations: { [key]: value } };
      const spec = { containers: [{ name: "main", image: "registry.example/app:1" }] };
      const path = "/api/v1/namespaces/default/pods";
      return await cluster.admin.call({
        method: "POST",
        path,
        body: { apiVersion: "v1", kind: "Pod", metadata, spec },
      });
    };

    for (const { key, example, refusal, beside = "", gives } of others) {
      if (gives === true)
        it(`is refused where a pool of Berth has its address, which that system would give: ${key}`, async () => {
          const { status, body } = await reported(key, example.replace(/\d+\.\d+\.\d+\.\d+/, OF_A_POOL));
          assert.equal(status, 403);
          const { message } = body as { message: string };
          assert.ok(message.includes(key) && message.includes(OF_A_POOL), message);
        });
      it(`is told in words, and given nothing by Berth: ${key}`, async () => {
        const { status, warnings = [] } = await reported(
          key,
          gives === true ? example.replace(/\d+\.\d+\.\d+\.\d+/, OF_NO_POOL) : example,
        );
        assert.equal(status, 201);
        assert.ok(
          warnings.some((words) => words.includes(key) && words.includes(refusal ?? beside)),
          warnings.join(),
        );
      });
    }
  });
}
