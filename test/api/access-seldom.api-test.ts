// SPDX-License-Identifier: Apache-2.0
// What seldom happens in a cluster, with the chart's accounts, roles and policies: OpenKruise is installed, the API server does not stream
// lists, records change under whoever writes them. Its audit log shows that each right that no ordinary life needs is one that this needs.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { Client } from "../../kube/api/client.ts";
import type { Connection } from "../../kube/api/connection.ts";
import { apiVersionOf, BLOCKS, CLAIMS, NODES, PODS, POOLS, type Resource } from "../../kube/api/resource.ts";
import { podReview } from "../../webhook/testing/api-server.ts";
import { errorOf, type Said } from "../cni/caller.ts";
import { buildPlugin } from "../cni/plugin.ts";
import { eventually } from "../support/eventually.ts";
import { ownedBy, pod } from "../support/objects.ts";
import { type Account, accountConfig, installAccounts, installPolicies } from "./accounts.ts";
import { NAMESPACE, sandbox } from "./agent-cluster.ts";
import { ApiGate, type Held } from "./agent-gate.ts";
import { AgentNode } from "./agent-node.ts";
import { AuditLog, BLOCK_RIGHTS, UNUSED } from "./audit-log.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { makeNamespaces } from "./crds.ts";
import { type OwnControlPlane, startControlPlane } from "./harness.ts";
import { WEBHOOK_USER } from "./plane.ts";
import { installKruise } from "./replica-kruise.ts";
import { change, forceDelete, type Json, make, workloadSpec } from "./replica-objects.ts";
import { RollingWebhook } from "./rolling-webhook.ts";

const NODE = "node-a";
const LONG_MS = 60_000;

if (havePartsOrSkip(["etcd", "kube-apiserver"])) {
  describe("what seldom happens, with the accounts of the chart", () => {
    let audit: AuditLog;
    let folder = "";
    let plane: OwnControlPlane;
    let api: Connection;
    let sets: Resource;
    let clones: Resource;
    let gates: { readonly webhook: ApiGate; readonly agent: ApiGate };
    let webhook: RollingWebhook;
    let node: AgentNode;

    before(async () => {
      await buildPlugin();
      folder = mkdtempSync(join(tmpdir(), "berth-seldom-"));
      plane = await startControlPlane({
        users: [WEBHOOK_USER],
        ...{ definitions: true, audited: true },
        apiServerFlags: ["--feature-gates=WatchList=false"],
      });
      audit = new AuditLog(plane);
      api = plane.connect();
      await makeNamespaces(api, [NAMESPACE]);
      await installAccounts(api);
      for (const plural of ["statefulsets", "clonesets"] as const)
        [sets, clones] = await installKruise(api, plural);
      gates = { webhook: await ApiGate.start(plane), agent: await ApiGate.start(plane) };
      const kubeconfig = join(folder, "kubeconfig");
      const own = gates.webhook.kubeConfig(await accountConfig(plane, "berth-webhook"));
      writeFileSync(kubeconfig, own.exportConfig(), { mode: 0o600 });
      webhook = await RollingWebhook.install(plane, { count: 1, env: { BERTH_KUBECONFIG: kubeconfig } });
      await webhook.start();
      await installPolicies(api);
      const cooldown = "1s";
      await make(api, POOLS, { name: "db" }, { spec: { ranges: [{ cidr: "10.20.0.0/24" }], cooldown } });
      node = await AgentNode.make(
        NODE,
        gates.agent.kubeConfig(await accountConfig(plane, "berth-agent", NODE)),
      );
      await node.start();
    });
    after(async () => {
      await node?.remove();
      await webhook?.close();
      await gates?.webhook.close();
      await gates?.agent.close();
      await plane?.close();
      rmSync(folder, { recursive: true, force: true });
    });

    const place = (name: string) => ({ namespace: NAMESPACE, name });

    async function untilClaim(name: string, what: string, is: (claim: Json | undefined) => boolean) {
      const look = async () => {
        const item = (await new Client(api, CLAIMS).get(place(name))) as { spec?: Json } | undefined;
        return is(item?.spec) || undefined;
      };
      await eventually(`claim ${name} is ${what}`, look, LONG_MS);
    }

    async function untilUsed(account: Account, right: string): Promise<void> {
      await eventually(`${account}: ${right}`, () => audit.usedBy(account).has(right) || undefined, LONG_MS);
    }

    /** Somebody changes the object that the request is about, while that is held on its way. */
    async function overtake(held: Held, resource: Resource): Promise<void> {
      const url = await held.arrived;
      const [, name = assert.fail(url)] = new RegExp(`/${resource.plural}/([^/?]+)`).exec(url) ?? [];
      const at = resource.namespaced ? place(name) : { name };
      // people may not change a block
      await change(plane.connect(WEBHOOK_USER.name), resource, at, {
        metadata: { labels: { overtaken: "true" } },
      });
      await held.release();
    }

    /** A pod of the node with its addresses, by a sandbox that a runtime makes anew as long as it is told to try again. */
    async function up(name: string, options: Parameters<typeof pod>[1], claim?: string): Promise<Said> {
      const made = pod(name, { namespace: NAMESPACE, ...options });
      const { metadata } = await make(api, PODS, place(name), {
        ...made,
        spec: { ...(made["spec"] as Json), nodeName: NODE },
      });
      if (claim !== undefined)
        await untilClaim(
          claim,
          "bound",
          (spec) => (spec?.["binding"] as Json | undefined)?.["node"] === NODE,
        );
      for (let n = 0; ; n++) {
        const said = sandbox({ name, uid: metadata.uid }, `${name}-${n}`);
        const run = await node.runtime.call("ADD", said);
        if (run.rc === 0) return said;
        assert.match(errorOf(run), /^11 /);
        await node.runtime.del(said);
      }
    }

    /** From its creation to the end of its sandbox. */
    async function live(name: string, options: Parameters<typeof pod>[1], claim: string): Promise<void> {
      const said = await up(name, options, claim);
      await node.runtime.del(said);
      await forceDelete(api, PODS, place(name));
    }

    it("claims are kept for OpenKruise's StatefulSets and CloneSets, and go with them", async () => {
      const annotations = (ips: string) => ({ replicas: 1, annotations: { "berth.dev/ips": ips } });
      await make(api, sets, place("queue"), {
        spec: { serviceName: "queue", ...workloadSpec("queue", annotations("10.20.0.10")) },
      });
      await untilClaim("queue-0", "reserved", (spec) => spec !== undefined);
      const ips = "10.20.0.20;10.20.0.21";
      const crew = await make(api, clones, place("crew"), { spec: workloadSpec("crew", annotations(ips)) });
      const owner = ownedBy("CloneSet", "crew", apiVersionOf(clones), crew.metadata.uid);
      await live("crew-x7k2p", { owner, annotations: { "berth.dev/ips": ips } }, "crew-slot-0");
      await forceDelete(api, clones, place("crew"));
      await forceDelete(api, sets, place("queue"));
      for (const name of ["queue-0", "crew-slot-0"])
        await untilClaim(name, "gone", (spec) => spec === undefined);
    });

    it("a pod that is gone gives its claim up although its sandbox is not, once its node is out of service", async () => {
      const lost = await up("lost", { annotations: { "berth.dev/ips": "10.20.0.30" } }, "lost");
      await forceDelete(api, PODS, place("lost"));
      const taint = { key: "node.kubernetes.io/out-of-service", value: "nodeshutdown", effect: "NoExecute" };
      for (const taints of [[taint], []]) {
        await change(api, NODES, { name: NODE }, { spec: { taints } });
        if (taints.length > 0) await untilClaim("lost", "gone", (spec) => spec === undefined);
      }
      await node.runtime.del(lost);
    });

    it("a review of a Deployment and a namespace that no watch has told of yet is decided by what the API server says", async () => {
      const labels = { "pod-template-hash": "abc" };
      const object = pod("new-abc-1", {
        namespace: "new",
        ...{
          owner: ownedBy("ReplicaSet", "new-abc"),
          labels,
          annotations: { "berth.dev/ips": "10.20.0.40;10.20.0.41" },
        },
      });
      const body = JSON.stringify(podReview({ name: "new-abc-1", namespace: "new", object, dryRun: true }));
      const [{ port } = assert.fail()] = webhook.all;
      assert.equal(await ask(port, body), 200);
      await untilUsed("berth-webhook", "get namespaces");
      await untilUsed("berth-webhook", "get deployments.apps");
    });

    it("a record that was changed under its writer is read again, by the webhook and by the agent", async () => {
      const writes = (path: RegExp) => (method: string, url: string) => method === "PATCH" && path.test(url);
      const grant = gates.webhook.hold(writes(/\/ipblocks\/[^/]+$/), 1);
      const report = gates.agent.hold(writes(/\/ipblocks\/[^/]+\/status/), 1);
      const claim = gates.agent.hold(writes(/\/ipclaims\/[^/]+\/status/), 1);
      const spec = {
        ranges: [{ cidr: "10.29.0.0/28" }],
        namespaceSelector: {}, // without one no agent asks for namespaces
        blockSize: { ipv4: 30 },
        default: true,
        cooldown: "1s",
      };
      await make(api, POOLS, { name: "life" }, { spec });
      const served = up("plain", {});
      await overtake(grant, BLOCKS);
      await overtake(report, BLOCKS);
      const box = await served;
      const pinned = up("pinned", { annotations: { "berth.dev/ips": "10.20.0.50" } }, "pinned");
      await overtake(claim, CLAIMS);
      for (const [account, right] of [
        ["berth-webhook", "get ipblocks.berth.dev"],
        ["berth-agent", "get ipblocks.berth.dev"],
        ["berth-agent", "get ipclaims.berth.dev"],
      ] as const)
        await untilUsed(account, right);
      await node.runtime.del(box);
      await node.runtime.del(await pinned);
    });

    it("what happens again is counted in its event", async () => {
      for (const disabled of [true, false, true]) {
        await change(api, POOLS, { name: "db" }, { spec: { disabled } });
        await eventually("the pool says so", async () => {
          const { status } = (await new Client(api, POOLS).get({ name: "db" })) as unknown as PoolObject;
          const ready = status?.conditions?.find(({ type }) => type === "Ready");
          return ready?.status === (disabled ? "False" : "True") || undefined;
        });
      }
      for (let n = 0; n < 2; n++) {
        const before = (await webhook.objects()).secret.data?.["tls.crt"];
        await webhook.rotate("leaf");
        await eventually(
          "another certificate",
          async () => (await webhook.objects()).secret.data?.["tls.crt"] !== before || undefined,
        );
      }
      await node.stop();
      for (const { process } of webhook.all) await process.stop("SIGTERM");
      await webhook.issuer.stop("SIGTERM"); // what was not counted yet is written now
    });

    it("nothing of that was forbidden, and no right is left that nothing uses", () => {
      const forbidden = audit
        .requests()
        .filter(({ responseStatus }) => [401, 403].includes(responseStatus?.code ?? 0));
      assert.deepEqual(
        forbidden.map(({ user, verb, requestURI }) => `${user.username} ${verb} ${requestURI}`),
        [],
      );
      for (const account of ["berth-webhook", "berth-issuer", "berth-agent"] as const) {
        const used = audit.usedBy(account);
        const elsewhere: readonly string[] = account === "berth-issuer" ? [] : BLOCK_RIGHTS[account];
        const rest = UNUSED[account].filter((right) => !used.has(right) && !elsewhere.includes(right));
        assert.deepEqual(rest, [], account);
      }
    });
  });
}

interface PoolObject {
  readonly status?: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] };
}

/** The status of the webhook's answer to who verifies nothing. */
function ask(port: number, body: string): Promise<number | undefined> {
  const headers = { "Content-Type": "application/json", "Content-Length": Buffer.byteLength(body) };
  const to = { host: "127.0.0.1", port, path: "/mutate/pods", method: "POST", rejectUnauthorized: false };
  return new Promise((resolve, reject) => {
    const asked = request({ ...to, headers, agent: false }, (response) => {
      response.resume();
      resolve(response.statusCode);
    });
    asked.once("error", reject);
    asked.end(body);
  });
}
