// SPDX-License-Identifier: Apache-2.0
// What Berth's accounts may do, by their roles and by the policies, and what nobody else may.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import type { Store } from "../../allocator/store/store.ts";
import { Client } from "../../kube/api/client.ts";
import type { Call, Connection } from "../../kube/api/connection.ts";
import { CLAIMS, itemPath } from "../../kube/api/resource.ts";
import { eventually } from "../support/eventually.ts";
import { addrs, bindingTo, claimRecord } from "../support/fixtures.ts";
import { run } from "../support/process.ts";
import { type Account, accountConfig, connectAs, installAccounts, installPolicies } from "./accounts.ts";
import { denied, merge, report, reported, SHOP } from "./agent-calls.ts";
import { havePartsOrSkip, partOf } from "./binaries.ts";
import { CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES } from "./cluster-resources.ts";
import { installDefinitions, makeNamespaces } from "./crds.ts";
import { openStore } from "./open-store.ts";
import type { ControlPlane } from "./plane.ts";
import { openControlPlane } from "./shared-plane.ts";
import type { TokenConfig } from "./token-config.ts";

/** Set, the snapshots are written anew from what the API server says. */
const UPDATE = process.env["BERTH_UPDATE_SNAPSHOTS"] === "1";

const BLOCKS = "/apis/berth.dev/v1alpha1/ipblocks";
const PODS_OF_SHOP = "/api/v1/namespaces/shop/pods";
const CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";

if (havePartsOrSkip(["etcd", "kube-apiserver", "kubectl"])) {
  describe("Berth's accounts", () => {
    let plane: ControlPlane;
    let store: Store;
    let agent: Connection;

    before(async () => {
      plane = await openControlPlane();
      await installDefinitions(plane.connect());
      await makeNamespaces(plane.connect(), ["shop"]);
      await installAccounts(plane.connect());
      await installPolicies(plane.connect());
      const webhook = await connectAs(plane, "berth-webhook");
      store = openStore(webhook);
      agent = await connectAs(plane, "berth-agent", "node-a");
      const claims = { here: "node-a", there: "node-b", nowhere: undefined };
      for (const [name, node] of Object.entries(claims)) {
        const made = claimRecord({ name, addresses: addrs("10.20.0.70"), status: {} });
        const binding = node === undefined ? {} : { binding: bindingTo(name, node) };
        await store.create("claim", { ...made, ...binding });
      }
      const block = { pool: "web", nodeUID: "u", holes: [], granted: true };
      await store.create("block", { ...block, cidr: "10.30.0.0/28", node: "node-a" });
      await store.create("block", { ...block, cidr: "10.30.0.16/28", node: "node-b" });
    });
    after(async () => {
      await store?.close();
      await plane?.close();
    });

    describe("list of rights", () => {
      async function rights(config: TokenConfig, namespace: string): Promise<string[]> {
        const file = join(plane.folder, `${namespace}.kubeconfig`);
        writeFileSync(file, config.exportConfig(), { mode: 0o600 });
        const env = { HOME: plane.folder, KUBECONFIG: file };
        const ended = await run(partOf("kubectl"), ["auth", "can-i", "--list", "-n", namespace], { env });
        assert.equal(ended.rc, 0, ended.stderr);
        return ended.stdout.split("\n").map((line) => line.trimEnd().replaceAll(/ {2,}/g, "  "));
      }

      /** Without what everybody has whom the API server knows. */
      async function listOf(account: Account): Promise<string> {
        const config = await accountConfig(plane, account, account === "berth-agent" ? "node-a" : undefined);
        const parts: string[] = [];
        for (const namespace of ["berth-system", "shop"]) {
          const common = new Set(await rights(plane.kubeConfig("stranger"), namespace));
          const own = (await rights(config, namespace)).filter((line) => !common.has(line));
          parts.push(`in namespace ${namespace}:\n${own.sort().join("\n")}\n`);
        }
        return parts.join("\n");
      }

      for (const account of ["berth-webhook", "berth-issuer", "berth-agent"] as const) {
        it(`of ${account} is what it was`, async () => {
          const file = join(import.meta.dirname, `access/${account}.txt`);
          const now = await listOf(account);
          if (UPDATE) writeFileSync(file, now);
          assert.equal(now, readFileSync(file, "utf8"), "BERTH_UPDATE_SNAPSHOTS=1 writes it anew");
        });
      }
    });

    describe("with the token of node A's agent", () => {
      it("the status of a claim that is bound to node A can be written", async () => {
        assert.equal(await reported(agent, report("here")), "200");
        assert.equal(await reported(agent, report("here", { detached: true })), "200");
      });

      it("no status of a claim that is bound to another node, or to none", async () => {
        const words = (bound: string) =>
          `the agent of node node-a may write of claims that are bound to its node, and this one is bound to ${bound}`;
        assert.match(await reported(agent, report("there")), denied("agents.berth.dev", words("node-b")));
        assert.match(await reported(agent, report("nowhere")), denied("agents.berth.dev", words("none")));
      });

      it("no sandbox of another node can be told of, and no condition", async () => {
        assert.match(
          await reported(agent, report("here", { node: "node-b" })),
          denied(
            "agents.berth.dev",
            "an agent reports the sandboxes of its own node: status.attachment.node must be its node",
          ),
        );
        const condition = {
          ...{ type: "Ready", status: "True", reason: "Reserved", message: "" },
          lastTransitionTime: "2026-01-01T00:00:00Z",
        };
        assert.match(
          await reported(agent, merge(`${SHOP}/here/status`, { status: { conditions: [condition] } })),
          denied("agents.berth.dev", "the conditions of a claim are not an agent's to write"),
        );
      });

      it("the status of a block that node A owns can be written, of itself alone, and of no other", async () => {
        const status = { node: "node-a", used: 3 };
        const returned = { ...status, used: 0, returnedAt: "2026-01-01T00:00:00Z" };
        assert.equal(await reported(agent, merge(`${BLOCKS}/10.30.0.0-28/status`, { status })), "200");
        assert.equal(
          await reported(agent, merge(`${BLOCKS}/10.30.0.0-28/status`, { status: returned })),
          "200",
        );
        const stranger = { ...returned, node: "node-b" };
        const words =
          "the agent of node node-a may write of blocks that its node owns, and this one is of node-b";
        assert.match(
          await reported(agent, merge(`${BLOCKS}/10.30.0.16-28/status`, { status: returned })),
          denied("agents.berth.dev", words),
        );
        const own = "an agent says of a block what is on its own node: status.node must be its node";
        assert.match(
          await reported(agent, merge(`${BLOCKS}/10.30.0.0-28/status`, { status: stranger })),
          denied("agents.berth.dev", own),
        );
        // the main resource takes no status, and a status nothing of the spec
        const taken = merge(`${BLOCKS}/10.30.0.16-28/status`, { spec: { node: "node-a" } });
        assert.match(await reported(agent, taken), denied("agents.berth.dev", words));
        assert.match(
          await reported(agent, merge(`${BLOCKS}/10.30.0.0-28`, { spec: { node: "node-b" } })),
          /^403 .*cannot patch resource "ipblocks"/,
        );
        assert.deepEqual((await store.get("block", "10.30.0.0/28"))?.record.status, {
          node: "node-a",
          used: 0,
          returnedAt: Date.UTC(2026, 0, 1),
        });
        assert.equal((await store.get("block", "10.30.0.16/28"))?.record.status, undefined);
        const mine = { method: "GET", path: BLOCKS, query: { fieldSelector: "spec.node=node-a" } } as const;
        assert.equal(await reported(agent, mine), "200");
      });

      it("no secret, no pod, no webhook configuration, no record can be written, by its role", async () => {
        const forbidden = (verb: string, resource: string, group: string) =>
          new RegExp(
            `^403 .* is forbidden: User "system:serviceaccount:berth-system:berth-agent" cannot ${verb} resource "${resource}" in API group "${group}"`,
          );
        const pod = { apiVersion: "v1", kind: "Pod", metadata: { name: "x" }, spec: { containers: [] } };
        const calls: readonly (readonly [Call, RegExp])[] = [
          [{ method: "GET", path: "/api/v1/secrets" }, forbidden("list", "secrets", "")],
          [
            { method: "GET", path: "/api/v1/namespaces/berth-system/secrets/berth-webhook-tls" },
            forbidden("get", "secrets", ""),
          ],
          [{ method: "POST", path: PODS_OF_SHOP, body: pod }, forbidden("create", "pods", "")],
          [merge(`${PODS_OF_SHOP}/x`, {}), forbidden("patch", "pods", "")],
          [merge(`${PODS_OF_SHOP}/x/status`, {}), forbidden("patch", "pods/status", "")],
          [{ method: "DELETE", path: `${PODS_OF_SHOP}/x` }, forbidden("delete", "pods", "")],
          [
            merge(`${CONFIGURATIONS}/berth`, {}),
            forbidden("patch", "mutatingwebhookconfigurations", "admissionregistration.k8s.io"),
          ],
          [merge(`${SHOP}/here`, {}), forbidden("patch", "ipclaims", "berth.dev")],
          [{ method: "DELETE", path: `${SHOP}/here` }, forbidden("delete", "ipclaims", "berth.dev")],
        ];
        for (const [call, words] of calls) assert.match(await reported(agent, call), words);
      });
    });

    it("a token that names no node writes nothing, though its account may", async () => {
      const words =
        "the agent's token names no node; use the token that the API server gives to the agent's own pod";
      assert.match(
        await reported(await connectAs(plane, "berth-agent"), report("here")),
        denied("agents.berth.dev", words),
      );
    });

    it("the webhook's account reads no secret but its own, and writes no secret, no pod and no webhook configuration", async () => {
      const webhook = await connectAs(plane, "berth-webhook");
      const SECRETS = "/api/v1/namespaces/berth-system/secrets";
      const own = { fieldSelector: "metadata.name=berth-webhook-tls" };
      assert.equal(await reported(webhook, { method: "GET", path: SECRETS, query: own }), "200");
      const authority = { fieldSelector: "metadata.name=berth-webhook-ca" };
      for (const call of [
        { method: "GET", path: SECRETS, query: authority } as const,
        { method: "GET", path: `${SECRETS}/berth-webhook-ca` } as const,
        merge(`${SECRETS}/berth-webhook-tls`, {}),
      ])
        assert.match(await reported(webhook, call), /^403 .*cannot (list|get|patch) resource "secrets"/);
      assert.match(
        await reported(webhook, { method: "GET", path: SECRETS }),
        /^403 .*cannot list resource "secrets"/,
      );
      assert.match(
        await reported(webhook, { method: "GET", path: "/api/v1/namespaces/shop/secrets/berth-webhook-tls" }),
        /^403 .*cannot get resource "secrets"/,
      );
      assert.match(
        await reported(webhook, merge(`${PODS_OF_SHOP}/x`, {})),
        /^403 .*cannot patch resource "pods"/,
      );
      for (const name of ["berth", "other"])
        assert.match(
          await reported(webhook, merge(`${CONFIGURATIONS}/${name}`, {})),
          /^403 .*cannot patch resource "mutatingwebhookconfigurations"/,
        );
      const bound = { fieldSelector: "metadata.name=berth" };
      assert.equal(await reported(webhook, { method: "GET", path: CONFIGURATIONS, query: bound }), "200");
    });

    describe("with every right to Berth's objects, by mistake", () => {
      before(async () => {
        const rule = {
          apiGroups: ["berth.dev"],
          resources: ["ipclaims", "ipclaims/status", "ippools", "ipreservations", "ipblocks"],
          verbs: ["create", "update", "patch", "delete"],
        };
        const admin = plane.connect();
        await new Client(admin, CLUSTER_ROLES).create({ name: "generous" }, { rules: [rule] });
        await new Client(admin, CLUSTER_ROLE_BINDINGS).create(
          { name: "generous" },
          {
            roleRef: { apiGroup: CLUSTER_ROLES.group, kind: "ClusterRole", name: "generous" },
            subjects: [{ kind: "ServiceAccount", namespace: "berth-system", name: "berth-agent" }],
          },
        );
        await eventually("the role is in force", async () =>
          (await reported(agent, merge(`${SHOP}/absent`, {}))).startsWith("404") ? true : undefined,
        );
      });

      it("an agent still creates, changes and deletes nothing, not even of its own node", async () => {
        const words = denied(
          "agents.berth.dev",
          "an agent writes the status of claims and blocks and nothing else",
        );
        const body = {
          ...{ apiVersion: "berth.dev/v1alpha1", kind: "IPClaim", metadata: { name: "new" } },
          spec: { request: { addresses: ["10.20.0.71"] } },
        };
        assert.match(await reported(agent, { method: "POST", path: SHOP, body }), words);
        assert.match(
          await reported(agent, merge(`${SHOP}/here`, { metadata: { labels: { a: "b" } } })),
          words,
        );
        assert.match(await reported(agent, { method: "DELETE", path: `${SHOP}/here` }), words);
        // two policies refuse it, and the API server names one of them
        const others = denied("records.berth.dev", "blocks are written by berth");
        const either = new RegExp(`${words.source}|${others.source}`);
        assert.match(await reported(agent, { method: "DELETE", path: `${BLOCKS}/10.30.0.0-28` }), either);
        assert.match(
          await reported(agent, merge(`${BLOCKS}/10.30.0.0-28`, { spec: { node: "node-a" } })),
          either,
        );
        const pool = {
          ...{ apiVersion: "berth.dev/v1alpha1", kind: "IPPool", metadata: { name: "mine" } },
          spec: { ranges: [{ cidr: "10.0.0.0/24" }] },
        };
        assert.match(
          await reported(agent, { method: "POST", path: "/apis/berth.dev/v1alpha1/ippools", body: pool }),
          words,
        );
        assert.ok(await new Client(plane.connect(), CLAIMS).get({ namespace: "shop", name: "here" }));
      });

      it("it takes no claim over by writing its node into it", async () => {
        const path = itemPath(CLAIMS, { namespace: "shop", name: "there" });
        const answer = await reported(agent, merge(path, { spec: { binding: { node: "node-a" } } }));
        // two policies refuse it, and the API server tells the words of one
        assert.match(answer, /^403 .*'(agents|claims)\.berth\.dev'/);
      });
    });
  });
}
