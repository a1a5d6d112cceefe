// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { Client } from "../../kube/api/client.ts";
import { NODES } from "../../kube/api/resource.ts";
import { createClock } from "../../system/clock.ts";
import { addrs, attachmentOf, bindingTo, claimRecord, reservationRecord } from "../support/fixtures.ts";
import { BerthctlCluster, lines, steady } from "./berthctl-cluster.ts";
import { havePartsOrSkip } from "./binaries.ts";

if (havePartsOrSkip(["etcd", "kube-apiserver", "kubectl"])) {
  describe("berthctl in a cluster", () => {
    let cluster: BerthctlCluster;

    before(async () => {
      cluster = await BerthctlCluster.startNew();
    });
    after(() => cluster?.close());

    it("says that Berth is not installed", () => {
      assert.deepEqual(cluster.notInstalled, {
        code: 2,
        stdout: "",
        stderr:
          `Error: Berth is not installed in this cluster: ${cluster.plane.url} does not serve its kinds; ` +
          `install Berth's chart, or choose another cluster than that of context "test" with --context\n`,
      });
    });

    describe("get", () => {
      it("lists claims of the context's namespace, of one that is named, and of all", async () => {
        const title =
          "NAMESPACE   NAME      ADDRESSES                 IDENTITY                       PHASE      POD       NODE     AGE";
        const mysql =
          "shop        mysql-0   10.20.0.70, fd00:20::70   StatefulSet mysql, ordinal 0   Attached   mysql-0   node-a   5h";
        const shop = await cluster.call("get", "claims");
        assert.deepEqual(shop, { code: 0, stdout: lines(title, mysql), stderr: "" });
        assert.deepEqual(await cluster.call("get", "claims", "-n", "bank"), {
          code: 0,
          stdout: lines(
            "NAMESPACE   NAME   ADDRESSES    IDENTITY   PHASE      POD   NODE   AGE",
            "bank        web    10.20.0.71   Pod web    Reserved   -     -      5h",
          ),
          stderr: "",
        });
        const all = await cluster.call("get", "claims", "-A");
        assert.deepEqual(
          all.stdout.split("\n").map((line) => line.split(/ {2,}/).slice(0, 2).join("/")),
          ["NAMESPACE/NAME", "bank/web", "shop/mysql-0", ""],
        );
        assert.deepEqual(await cluster.call("get", "claim", "mysql-0"), shop);
        assert.deepEqual(await cluster.call("get", "claims", "-n", "default"), {
          code: 0,
          stdout: "",
          stderr: "no claims in namespace default; see those of all with -A\n",
        });
      });

      it("lists pools, reservations and attachments", async () => {
        assert.equal(
          (await cluster.call("get", "pools")).stdout,
          lines(
            "NAME   RANGES                                                 IPV4 TAKEN   IPV6 TAKEN    STATE   AGE",
            "db     10.20.0.50-10.20.0.199 of 10.20.0.0/24, fd00:20::/64   2 of 139     1 of 1.8e19   open    5h",
          ),
        );
        assert.equal(
          (await cluster.call("get", "ipr")).stdout,
          lines(
            "ADDRESS       POOL   CLAIM          STATE   AGE",
            "10.20.0.70    db     shop/mysql-0   held    5h",
            "10.20.0.71    db     bank/web       held    5h",
            "fd00:20::70   db     shop/mysql-0   held    5h",
          ),
        );
        assert.match(
          (await cluster.call("get", "attachments")).stdout,
          /^NAMESPACE {3}POD {7}ADDRESSES {17}CLAIM {10}NODE {5}INTERFACE {3}AGE\nshop {8}mysql-0 {3}10\.20\.0\.70, fd00:20::70 {3}shop\/mysql-0 {3}node-a {3}eth0 {8}\d+[dh]\n$/,
        );
      });

      it("lists the pods and workloads that Berth has a say about, and any that is named", async () => {
        assert.equal(
          (await cluster.call("get", "pods")).stdout,
          lines(
            "NAMESPACE   NAME      ADDRESSES                 CLAIM     OWNER   AGE",
            "shop        mysql-0   10.20.0.70, fd00:20::70   mysql-0   -       5h",
          ),
        );
        assert.match((await cluster.call("get", "pod", "plain")).stdout, /^shop +plain +- +- +- +5h$/m);
        assert.equal(
          (await cluster.call("get", "workloads")).stdout,
          lines(
            "NAMESPACE   KIND          NAME    REPLICAS   CLAIMS   REQUEST                    AGE",
            "shop        StatefulSet   mysql   2          1        berth.dev/ips=10.20.0.70   5h",
          ),
        );
        const { kind, metadata } = JSON.parse(
          (await cluster.call("get", "pod", "plain", "-o", "json")).stdout,
        );
        assert.deepEqual([kind, metadata.managedFields], ["Pod", undefined]);
      });

      it("fails for what is not there", async () => {
        assert.deepEqual(await cluster.call("get", "claim", "web"), {
          code: 1,
          stdout: "",
          stderr:
            "Error: there is no claim web in namespace shop; see what there is with: berthctl get claims -A\n",
        });
      });
    });

    it("who tells pod, node and sandbox of an address", async () => {
      const { code, stdout, stderr } = await cluster.call("who", "10.20.0.70");
      assert.deepEqual([code, stderr], [0, ""]);
      assert.equal(
        steady(stdout),
        lines(
          "10.20.0.70 is held",
          "  pool       db",
          "  claim      shop/mysql-0",
          "  identity   StatefulSet mysql, ordinal 0",
          "  phase      Attached",
          "  pod        shop/mysql-0 (uid UID)",
          "  node       node-a",
          "  since      TIME",
          "  sandbox    sandbox-of-mysql-0 eth0, pod shop/mysql-0, since TIME",
        ),
      );
      assert.equal((await cluster.call("who", "10.20.0.99")).stdout, "10.20.0.99 is free\n  pool   db\n");
      assert.equal((await cluster.call("who", "10.9.0.1")).code, 1);
    });

    describe("explain", () => {
      it("says what the pods of a file would get", async () => {
        const { code, stdout } = await cluster.call("explain", "-f", "-");
        assert.equal(code, 1);
        assert.match(
          stdout,
          /^pod\/shop\/new {3}refused {3}address 10\.20\.0\.70 in pool "db" is held by shop\/mysql-0/,
        );
      });

      it("says that all is well", async () => {
        const { code, stdout } = await cluster.call("explain", "pod/mysql-0");
        assert.equal(code, 0);
        assert.equal(
          steady(stdout),
          lines(
            "pod/shop/mysql-0 has its addresses",
            "  pod             on node-a, Pending, uid UID",
            "  asks for        berth.dev/ips=10.20.0.70",
            "  admitted with   claim mysql-0, 10.20.0.70, fd00:20::70",
            "  claim           shop/mysql-0, Attached, for StatefulSet mysql, ordinal 0",
            "  address         10.20.0.70, pool db, held",
            "  address         fd00:20::70, pool db, held",
            "  bound to        pod mysql-0 (uid UID) on node-a since TIME",
            "  sandbox         sandbox-of-mysql-0 eth0 on node-a since TIME, not seen to end",
            "  node            node-a is Ready and not fenced",
          ),
        );
        assert.equal(
          (await cluster.call("explain", "pod/shop/plain")).stdout.split("\n")[0],
          "pod/shop/plain asks for no fixed address, and no pool serves such pods; unless its network has ranges or pools of its own it does not start: make a pool with blockSize (docs/blocks.md)",
        );
        assert.match(
          (await cluster.call("explain", "fd00:20::70")).stdout,
          /^fd00:20::70 is held\nipclaim\/shop\/mysql-0 is bound to pod mysql-0 on node-a\n/,
        );
        assert.match(
          (await cluster.call("explain", "claim/web", "-n", "bank")).stdout,
          /^ipclaim\/bank\/web keeps its addresses; nobody has them now\n/,
        );
      });

      it("says what a pod waits for whose predecessor's end was not reported, and what to do", async () => {
        const assigned = { "berth.dev/claim": "kafka-0", "berth.dev/addresses": "10.20.0.80" };
        await cluster.keep(
          claimRecord({
            name: "kafka-0",
            identity: { kind: "StatefulSet", apiVersion: "apps/v1", name: "kafka", ordinal: 0 },
            nonce: "n3",
            addresses: addrs("10.20.0.80"),
            binding: bindingTo("kafka-0", "node-b"),
            status: { attachment: attachmentOf("kafka-0", { node: "node-b" }) },
          }),
        );
        await cluster.makePod("kafka-0", { annotations: assigned, spec: { nodeName: "node-a" } });
        const waits = await cluster.call("explain", "pod/kafka-0");
        assert.equal(waits.code, 1);
        assert.equal(
          steady(waits.stdout),
          lines(
            "pod/shop/kafka-0 waits: claim shop/kafka-0 (10.20.0.80) is still bound to pod kafka-0 on node node-b, whose sandbox was not seen to end; " +
              "it moves when that node's agent reports, the node is deleted, or it is tainted out-of-service or annotated berth.dev/fenced=true",
            "  pod             on node-a, Pending, uid UID",
            "  admitted with   claim kafka-0, 10.20.0.80",
            "  claim           shop/kafka-0, Attached, for StatefulSet kafka, ordinal 0",
            "  address         10.20.0.80, pool db, held",
            "  bound to        pod kafka-0 (uid uid-of-kafka-0) on node-b since TIME",
            "  sandbox         sandbox-of-kafka-0 eth0 on node-b since TIME, not seen to end",
            "  node            node-b is not Ready since TIME and not fenced",
            "-> bring node-b back, and its agent reports",
            "-> or, when it is certainly off: kubectl taint node node-b node.kubernetes.io/out-of-service=nodeshutdown:NoExecute",
            "-> or, when you have cut it off yourself: kubectl annotate node node-b berth.dev/fenced=true",
          ),
        );
        assert.match(
          (await cluster.call("explain", "claim/kafka-0")).stdout,
          /^ipclaim\/shop\/kafka-0 is wanted by pod kafka-0, which waits: claim shop\/kafka-0 \(10\.20\.0\.80\) is still bound/,
        );
        await new Client(cluster.connection, NODES).patch(
          { name: "node-b" },
          { type: "merge", body: { metadata: { annotations: { "berth.dev/fenced": "true" } } } },
        );
        const fenced = await cluster.call("explain", "pod/kafka-0");
        assert.equal(fenced.code, 0);
        assert.match(
          fenced.stdout,
          /^pod\/shop\/kafka-0 may have claim shop\/kafka-0, and is not bound to it yet\n/,
        );
        assert.match(
          fenced.stdout,
          /^ {2}node +node-b is not Ready since .* and fenced by annotation berth\.dev\/fenced$/m,
        );
      });

      it("says that a pod is not scheduled, was never admitted, or lost its claim", async () => {
        await cluster.keep(claimRecord({ name: "early", nonce: "n4", addresses: addrs("10.20.0.81") }));
        await cluster.makePod("early", {
          annotations: { "berth.dev/claim": "early", "berth.dev/addresses": "10.20.0.81" },
        });
        await cluster.makePod("strayed", { annotations: { "berth.dev/ips": "10.20.0.82" } });
        await cluster.makePod("claimless", { annotations: { "berth.dev/claim": "claimless" } });
        const first = async (name: string) => {
          const { code, stdout } = await cluster.call("explain", `pod/${name}`);
          return [code, stdout.split("\n")[0]];
        };
        assert.deepEqual(await first("early"), [
          0,
          "pod/shop/early is not scheduled yet; its addresses are kept for it",
        ]);
        assert.deepEqual(await first("strayed"), [
          1,
          "pod/shop/strayed asks for a fixed address and has no claim: it was never admitted by Berth's webhook; it cannot start",
        ]);
        assert.deepEqual(await first("claimless"), [
          1,
          "pod/shop/claimless was admitted with claim claimless, which is gone; it cannot start",
        ]);
      });
    });

    describe("check", () => {
      it("finds order, and a defect that stays", async () => {
        const sound = await cluster.call("check", "-o", "json");
        assert.equal(sound.code, 0, sound.stdout);
        const lost = claimRecord({ name: "lost", nonce: "n9", addresses: addrs("10.20.0.99") });
        await cluster.store.create("claim", lost);
        const { code, stdout } = await cluster.call("check");
        assert.equal(code, 1);
        assert.match(
          stdout,
          /^defect +unreserved +claim shop\/lost lists 10\.20\.0\.99, which is not reserved for it$/m,
        );
        assert.match(stdout, /^1 defect: 1 pool, \d+ claims, \d+ reservations, 2 attachments\n$/m);
      });

      it("calls pending what somebody is at work on, and passes over what was repaired meanwhile", async () => {
        let rounds = 0;
        const stop = new AbortController();
        const touching = (async () => {
          while (!stop.signal.aborted) {
            const seen = await cluster.store.get("claim", "shop/lost");
            if (seen !== undefined) {
              rounds++;
              await cluster.store.replace("claim", seen, {
                ...seen.record,
                admittedAt: Date.UTC(2026, 0, 1) + rounds,
              });
            }
            await createClock().sleep(200, stop.signal);
          }
        })();
        const busy = await cluster.call("check");
        stop.abort();
        await touching;
        assert.equal(busy.code, 0);
        assert.match(busy.stdout, /^pending +unreserved +claim shop\/lost lists 10\.20\.0\.99/m);
        const second = cluster.call("check");
        const claim = { namespace: "shop", name: "lost" };
        await createClock().sleep(500);
        await cluster.store.create("reservation", reservationRecord("10.20.0.99", { claim, nonce: "n9" }));
        const { code, stdout } = await second;
        assert.equal(code, 0);
        // that nobody needs the claim is another matter
        assert.doesNotMatch(stdout, /unreserved/);
      });
    });
  });
}
