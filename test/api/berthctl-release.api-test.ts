// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { after, before, describe, it } from "node:test";
import { KeyedMutex } from "../../allocator/base/keyed-mutex.ts";
import { noopLogger } from "../../allocator/base/ports.ts";
import { releaseInCluster } from "../../cli/backend/cluster-release.ts";
import { Client } from "../../kube/api/client.ts";
import { CLAIMS, itemPath } from "../../kube/api/resource.ts";
import { createClock } from "../../system/clock.ts";
import { createRandom } from "../../system/random.ts";
import { issueAuthority, issueServingCertificate } from "../../webhook/certificates/issue.ts";
import { eventually } from "../support/eventually.ts";
import { addrs, bindingTo, claimRecord, viewOf } from "../support/fixtures.ts";
import { BerthctlCluster, callWith, lines, settingOf, steady } from "./berthctl-cluster.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, VALIDATING_WEBHOOKS } from "./cluster-resources.ts";

if (havePartsOrSkip(["etcd", "kube-apiserver", "kubectl"])) {
  describe("berthctl release in a cluster", () => {
    let cluster: BerthctlCluster;

    before(async () => {
      cluster = await BerthctlCluster.start();
    });
    after(() => cluster?.close());

    it("refuses a claim in use, and gives one at rest back", async () => {
      assert.deepEqual(await cluster.call("release", "mysql-0"), {
        code: 1,
        stdout: "",
        stderr:
          "Error: claim shop/mysql-0 (10.20.0.70, fd00:20::70) is bound to pod mysql-0 on node node-a, whose sandbox may be alive; " +
          "delete the pod first, or use --force if you know that its sandbox is gone\n",
      });
      const spare = claimRecord({ name: "spare", nonce: "n5", addresses: addrs("10.20.0.83") });
      await cluster.keep(spare);
      await cluster.makePod("spare", { annotations: { "berth.dev/claim": "spare" } });
      const { code, stdout, stderr } = await cluster.call("release", "shop/spare");
      assert.deepEqual(
        { code, stdout: steady(stdout), stderr },
        {
          code: 0,
          stdout: lines("ipclaim/shop/spare released", "  10.20.0.83 is free for others in 30 s, at TIME"),
          stderr:
            "Warning: pod shop/spare was admitted with this claim and cannot start without it; create it anew\n",
        },
      );
      assert.match((await cluster.call("who", "10.20.0.83")).stdout, /^10\.20\.0\.83 was given back/);
      assert.equal(await cluster.store.get("claim", "shop/spare"), undefined);
    });

    it("release of an ordinal that stays says what Berth does next, and --to foretells on a dry run", async () => {
      const identity = { kind: "StatefulSet", apiVersion: "apps/v1", name: "mysql", ordinal: 1 };
      const held = { name: "mysql-1", nonce: "n9", identity, addresses: addrs("10.20.0.87") };
      await cluster.keep(claimRecord(held));
      assert.deepEqual(await cluster.call("release", "mysql-1", "--to", "mysql-old", "--dry-run"), {
        code: 0,
        stdout: lines(
          "ipclaim/shop/mysql-1 released (dry run)",
          "ipclaim/shop/mysql-old created (dry run)   10.20.0.87",
        ),
        stderr: "",
      });
      const taken = await cluster.call("release", "mysql-1", "--to", "mysql-0", "--dry-run");
      assert.deepEqual([taken.code, taken.stdout], [1, ""]);
      assert.match(taken.stderr, /^Error: .*shop\/mysql-0/);
      assert.ok(await cluster.store.get("claim", "shop/mysql-1"));
      assert.equal(await cluster.store.get("claim", "shop/mysql-old"), undefined);
      const { code, stderr } = await cluster.call("release", "mysql-1");
      assert.deepEqual(
        [code, stderr],
        [
          0,
          "Warning: StatefulSet shop/mysql still has ordinal 1: Berth reserves for it again at once, these addresses or others; " +
            "to free the addresses for others, scale it down or change its list first\n",
        ],
      );
    });

    it("release lets go of exactly what was seen", async () => {
      const { store } = cluster;
      await cluster.keep(claimRecord({ name: "moving", nonce: "n8", addresses: addrs("10.20.0.86") }));
      const seen = await store.get("claim", "shop/moving");
      assert.ok(seen);
      await store.replace("claim", seen, { ...seen.record, binding: bindingTo("moving", "node-a") });
      const [clock, random, view] = [createClock(), createRandom(), viewOf({})];
      const context = { store, view, clock, random, log: noopLogger, serial: new KeyedMutex() };
      assert.equal(await releaseInCluster(context, seen), "changed");
      assert.equal((await store.get("claim", "shop/moving"))?.record.binding?.podName, "moving");
      assert.equal((await store.get("reservation", "10.20.0.86"))?.record.releasedAt, undefined);
    });

    describe("release by a person", () => {
      /** The API server's webhook for deletions of claims, which refuses all of them in those words. */
      async function denying(message: string): Promise<() => Promise<void>> {
        const clock = createClock();
        const ca = await issueAuthority(clock);
        const leaf = await issueServingCertificate(ca, { dnsNames: [], addresses: ["127.0.0.1"] }, clock);
        const server = createServer({ cert: leaf.cert, key: leaf.key }, async (request, response) => {
          const { uid } = (JSON.parse(await text(request)) as { request: { uid: string } }).request;
          const review = { uid, allowed: false, status: { code: 403, message } };
          const answer = { apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", response: review };
          response.setHeader("content-type", "application/json").end(JSON.stringify(answer));
        });
        await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
        const { port } = server.address() as AddressInfo;
        const rule = {
          operations: ["DELETE"],
          apiGroups: ["berth.dev"],
          apiVersions: ["*"],
          resources: ["ipclaims"],
        };
        const webhook = {
          name: "claims.berth.dev",
          clientConfig: {
            url: `https://127.0.0.1:${port}/`,
            caBundle: Buffer.from(ca.cert).toString("base64"),
          },
          rules: [rule],
          sideEffects: "None",
          admissionReviewVersions: ["v1"],
          matchConditions: [{ name: "guarded", expression: "oldObject.metadata.name == 'guarded'" }],
        };
        await new Client(cluster.connection, VALIDATING_WEBHOOKS).create(
          { name: "berth" },
          { webhooks: [webhook] },
        );
        return async () => {
          server.closeAllConnections();
          await new Promise((resolve) => server.close(resolve));
        };
      }

      it("passes the refusal of admission on, which force does not overrule", async (t) => {
        t.after(await denying("claim shop/guarded is in use by pod guarded on node node-a"));
        await cluster.keep(
          claimRecord({
            name: "guarded",
            nonce: "n6",
            addresses: addrs("10.20.0.84"),
            binding: bindingTo("guarded", "node-a"),
          }),
        );
        const key = { namespace: "shop", name: "guarded" };
        const claims = new Client(cluster.connection, CLAIMS);
        await eventually("the webhook to be in force", async () => {
          const dry = { method: "DELETE", path: itemPath(CLAIMS, key), query: { dryRun: "All" } } as const;
          return (await cluster.connection.call(dry)).status === 403 || undefined;
        });
        assert.deepEqual(await cluster.call("release", "guarded", "--force"), {
          code: 1,
          stdout: "",
          stderr:
            "Error: claim shop/guarded is in use by pod guarded on node node-a; if you know that its sandbox is gone, " +
            "vouch for its node: kubectl annotate node node-a berth.dev/fenced=true\n",
        });
        assert.ok(await claims.get(key));
      });

      it("needs no rights on reservations", async () => {
        const rules = [{ apiGroups: ["berth.dev"], resources: ["*"], verbs: ["get", "list"] }];
        const deleting = { apiGroups: ["berth.dev"], resources: ["ipclaims"], verbs: ["delete"] };
        await new Client(cluster.connection, CLUSTER_ROLES).create(
          { name: "releaser" },
          { rules: [...rules, deleting] },
        );
        await new Client(cluster.connection, CLUSTER_ROLE_BINDINGS).create(
          { name: "releaser" },
          {
            roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "releaser" },
            subjects: [{ kind: "User", name: "releaser", apiGroup: "rbac.authorization.k8s.io" }],
          },
        );
        const releaser = settingOf([cluster.kubeconfig("releaser")]);
        await cluster.keep(claimRecord({ name: "plainly", nonce: "n7", addresses: addrs("10.20.0.85") }));
        const done = await eventually("the role to be in force", async () => {
          const tried = await callWith(releaser, "release", "plainly");
          return tried.code === 2 ? undefined : tried;
        });
        assert.deepEqual(done, {
          code: 0,
          stdout: lines(
            "ipclaim/shop/plainly released",
            "  10.20.0.85 is free for others when Berth has seen it, within 120 s",
          ),
          stderr:
            "Warning: the pods of namespace shop may not be read: if one asks for this claim, Berth makes it again; another one that was admitted with it cannot start\n",
        });
        assert.equal((await cluster.store.get("reservation", "10.20.0.85"))?.record.releasedAt, undefined);
      });
    });
  });
}
