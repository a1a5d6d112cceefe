// SPDX-License-Identifier: Apache-2.0
// Pods that ask for nothing, served out of blocks: real agents on two nodes, a real webhook with its controllers, and a real
// API server. What happens while one of them is away is in blocks-away.api-test.ts.
import assert from "node:assert/strict";
import { after, afterEach, before, describe, it } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import type { Call, Connection } from "../../kube/api/connection.ts";
import { eventually } from "../support/eventually.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { BlockCluster, type Box, last } from "./block-cluster.ts";
import { type Calls, callsBetween, callsSoFar } from "./chaos-calls.ts";
import type { Json } from "./replica-objects.ts";

const SHARED = { cidr: "10.20.0.0/24", from: "10.20.0.50", to: "10.20.0.70" };
/** Nine, in three blocks of four at most. */
const FEW = { ...SHARED, to: "10.20.0.58" };
/** But for pools, whose status says every few seconds how much of them is used, however many pods come and go. */
const COUNTED = ["ipclaims", "ipreservations", "ipblocks", "pods", "namespaces", "nodes"];
const KUBE_SYSTEM = "kube-system";

const QUIET_MS = 1_500;

/** The calls until now, once none of those that are counted has come for a while: the controller may be giving blocks still. */
async function onceQuiet(api: Connection): Promise<Calls> {
  let before = await callsSoFar(api);
  return await eventually("nobody asks for anything", async () => {
    await pause(QUIET_MS);
    const now = await callsSoFar(api);
    const { "PATCH ipblocks/status": _, ...calls } = withoutWatches(callsBetween(before, now, COUNTED));
    before = now;
    return Object.keys(calls).length === 0 ? now : undefined;
  });
}

/** An API server ends each watch now and then, and it begins anew: that is no cost of an ADD. */
function withoutWatches(calls: Calls): Calls {
  return Object.fromEntries(Object.entries(calls).filter(([key]) => !key.startsWith("WATCH ")));
}

if (havePartsOrSkip(["etcd", "kube-apiserver"])) {
  describe("pods that ask for nothing, on nodes with blocks", () => {
    let cluster: BlockCluster;
    before(async () => {
      cluster = await BlockCluster.open();
    });
    after(() => cluster?.close());
    afterEach(() => cluster.clear());

    /** The pool as it is after that. */
    async function writePool(name: string, call: Omit<Call, "path">) {
      const { status, body } = await cluster.api.call({
        ...call,
        path: `/apis/berth.dev/v1alpha1/ippools/${name}`,
      });
      assert.equal(status, 200, JSON.stringify(body));
      return body as { readonly metadata: Json; readonly spec: Json };
    }

    /** As kubectl replace does it. A controller may have written into the pool since it was read. */
    async function replacePool(name: string, manifest: Json) {
      const path = `/apis/berth.dev/v1alpha1/ippools/${name}`;
      return await eventually("nobody else writes", async () => {
        const { metadata } = (await cluster.api.call({ method: "GET", path })).body as { metadata: Json };
        const { status, body } = await cluster.api.call({
          ...{ method: "PUT", path },
          body: { ...manifest, metadata },
        });
        if (status === 409) return undefined;
        assert.equal(status, 200, JSON.stringify(body));
        return body as { readonly spec: Json };
      });
    }

    it("share one range of 21 addresses without one annotation, and the 22nd pod is refused in words", async () => {
      const [n1, n2] = [cluster.node("n1"), cluster.node("n2")];
      await cluster.makePool("shared", {
        ranges: [SHARED],
        blockSize: { ipv4: 32 },
        default: true,
        cooldown: "1s",
      });
      const dns = await cluster.up(await cluster.pod(n1, KUBE_SYSTEM, "coredns-0"));
      const boxes = (await Promise.all([cluster.upAll(n1, 9), cluster.upAll(n2, 11)])).flat();
      assert.deepEqual(
        cluster.lasts(),
        Array.from({ length: 21 }, (_, n) => 50 + n),
      );
      assert.match(dns.addresses[0] ?? "", /^10\.20\.0\.\d+\/24$/);
      await cluster.untilOwned({ n1: 10, n2: 11 });
      const late = await cluster.pod(n1);
      const words = await eventually("the words have everything", async () => {
        const said = await cluster.tryUp(late);
        assert.equal(typeof said, "string", "there is no address for it");
        return String(said).includes("11 and 10 of the pool's blocks") ? String(said) : undefined;
      });
      console.log(words);
      assert.match(words, /^11 .*pool "shared".*\/32/);
      assert.doesNotMatch(words, /n1|n2|10\.20/, "they are read in the pod's namespace");
      for (const node of [n1, n2]) await node.runtime.silently("STATUS");
      const [one] = boxes.filter(({ pod }) => pod.node === n2);
      assert.ok(one);
      await cluster.down(one);
      const got = await cluster.up(late);
      assert.deepEqual(got.addresses, one.addresses, "the last free address, from the other node");
    });

    it("share a default pool that says no size, and it keeps single addresses whoever writes its manifest again", async () => {
      const [n1, n2] = [cluster.node("n1"), cluster.node("n2")];
      const spec = { ranges: [SHARED], default: true, cooldown: "1s" };
      await cluster.makePool("plain", spec);
      await cluster.up(await cluster.pod(n1));
      await cluster.up(await cluster.pod(n2));
      assert.equal(new Set(cluster.lasts()).size, 2);
      const written = { apiVersion: "berth.dev/v1alpha1", kind: "IPPool", metadata: { name: "plain" }, spec };
      const server = {
        contentType: "application/apply-patch+yaml",
        query: { fieldManager: "t", force: "true" },
      };
      const applied = await writePool("plain", { ...server, method: "PATCH", body: written });
      assert.deepEqual(applied.spec["blockSize"], { ipv4: 32 });
      const { spec: replaced } = await replacePool("plain", {
        ...written,
        spec: { ...spec, cooldown: "2s" },
      });
      assert.deepEqual(replaced["blockSize"], { ipv4: 32 });
      await cluster.makePool("fixed", { ranges: [{ cidr: "10.77.0.0/24" }] });
      const late = { contentType: "application/merge-patch+json", body: { spec: { default: true } } };
      const { spec: fixed } = await writePool("fixed", { ...late, method: "PATCH" });
      assert.equal(fixed["blockSize"], undefined, "what was made without blocks gets none");
    });

    it("are served from pools that select them and say no size, the next where the first has none left, and no node has an address before that", async () => {
      const [n1, n2] = [cluster.node("n1"), cluster.node("n2")];
      const one = [{ cidr: "10.78.0.0/24", from: "10.78.0.50", to: "10.78.0.51" }];
      await cluster.makePool("first", { ranges: one, namespaceSelector: {}, priority: 1, cooldown: "1s" });
      await cluster.makePool("second", {
        ...{ ranges: [{ cidr: "10.79.0.0/24" }], cooldown: "1s" },
        podSelector: { matchExpressions: [{ key: "never", operator: "DoesNotExist" }] },
      });
      await cluster.makePool("asked", {
        ranges: [{ cidr: "10.80.0.0/24" }],
        nodeSelector: {},
        blockSize: {},
      });
      await cluster.up(await cluster.pod(n1));
      assert.equal((await cluster.blocks()).length, 1, "n2 has nothing, and n1 nothing more");
      await cluster.up(await cluster.pod(n2));
      await cluster.up(await cluster.pod(n2));
      const nets = cluster.addresses().map((address) => address.split(".").slice(0, 2).join("."));
      assert.deepEqual(nets.toSorted(), ["10.78", "10.78", "10.79"]);
      // its network names one that selects nobody: no controller knows, and the pod waits
      await cluster.makePool("named", {
        ranges: [{ cidr: "10.81.0.0/24" }],
        ...{ blockSize: { ipv4: 32, ahead: 0 }, cooldown: "1s" },
      });
      const named = await cluster.up(await cluster.pod(n2), { ipam: { type: "berth", pools: ["named"] } });
      assert.match(named.addresses.join(), /^10\.81\.0\.\d+\/24$/);
    });

    it("are served from a pool of their network that says no size, and no node has an address before that", async () => {
      const n1 = cluster.node("n1");
      await cluster.makePool("wired", {
        ...{ ranges: [{ cidr: "10.82.0.0/24" }], networks: ["wire"], cooldown: "1s" },
      });
      const wire = { conf: { name: "wire" }, ipam: { type: "berth" } };
      const waits = await cluster.pod(n1);
      const { spec } = await writePool("wired", { method: "GET" });
      assert.deepEqual(spec["blockSize"], { ipv4: 32, ahead: 0 });
      assert.equal((await cluster.blocks()).length, 0);
      assert.match((await cluster.up(waits, wire)).addresses.join(), /^10\.82\.0\.\d+\/24$/);
      const other = await cluster.tryUp(await cluster.pod(n1));
      assert.match(String(other), /^7 /, "it is on another network");
    });

    it("go from one node to the other, down to the last address of blocks of four", async () => {
      const [n1, n2] = [cluster.node("n1"), cluster.node("n2")];
      await cluster.makePool("fours", {
        ranges: [FEW],
        blockSize: { ipv4: 30 },
        default: true,
        cooldown: "1s",
      });
      await eventually(
        "both have some",
        async () => Object.keys(await cluster.owned()).length === 2 || undefined,
      );
      const all = await cluster.upAll(n1, 9);
      await cluster.untilAlone("n1");
      for (const box of all) await cluster.down(box);
      await cluster.upAll(n2, 9);
      assert.equal(cluster.lasts().length, 9);
      await cluster.untilAlone("n2");
    });

    it("have the last address of blocks of four that another node uses in part, and are refused in words after it", async () => {
      const [n1, n2] = [cluster.node("n1"), cluster.node("n2")];
      await cluster.makePool("fours", {
        ranges: [FEW],
        blockSize: { ipv4: 30 },
        default: true,
        cooldown: "1s",
      });
      const all = await cluster.upAll(n1, 9);
      await cluster.untilAlone("n1");
      // one address of each block stays in use
      const kept = new Set([50, 53, 58]);
      const ended = all.filter(({ addresses }) => !kept.has(last(addresses[0] ?? "")));
      for (const box of ended) await cluster.down(box);
      const others = await cluster.upAll(n2, 6);
      assert.equal(new Set(cluster.lasts()).size, 9);
      const have = others.map(({ addresses }) => last(addresses[0] ?? "")).toSorted((a, b) => a - b);
      assert.deepEqual(
        have,
        Array.from({ length: 9 }, (_, n) => 50 + n).filter((n) => !kept.has(n)),
      );
      const late = await cluster.pod(n2);
      assert.match(String(await cluster.tryUp(late)), /^11 .*pool "fours"/);
      const [one] = all.filter(({ addresses }) => kept.has(last(addresses[0] ?? "")));
      assert.ok(one);
      await cluster.down(one);
      assert.deepEqual((await cluster.up(late)).addresses, one.addresses);
    });

    it("cost the API server nothing at ADD and DEL", async () => {
      const n1 = cluster.node("n1");
      await cluster.makePool("wide", {
        ranges: [{ cidr: "10.21.0.0/20" }],
        blockSize: { ipv4: 26 },
        default: true,
        cooldown: "1s",
      });
      await cluster.untilOwned({ n1: 2, n2: 2 });
      const pods = await Promise.all(Array.from({ length: 8 }, () => cluster.pod(n1)));
      const first = await cluster.up(await cluster.pod(n1)); // everything of the pool is known here
      await cluster.down(first);
      const before = await onceQuiet(cluster.api);
      const boxes: Box[] = [];
      for (const pod of pods) boxes.push(await cluster.up(pod));
      for (const box of boxes) await cluster.end(box);
      process.kill(n1.pid, "SIGSTOP");
      const asked = callsBetween(before, await callsSoFar(cluster.api), COUNTED);
      process.kill(n1.pid, "SIGCONT");
      // how much of a block is used is said now and then, however many pods there are
      const { "PATCH ipblocks/status": reports = 0, ...calls } = withoutWatches(asked);
      assert.deepEqual(calls, {});
      assert.ok(reports <= 2, `${reports} reports for 16 calls`);
    });
  });
}
