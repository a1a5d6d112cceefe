// SPDX-License-Identifier: Apache-2.0
// Pods that ask for nothing, served out of blocks: real agents on two nodes, a real webhook with its controllers, and a real
// API server.
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, afterEach, before, describe, it } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import type { Call, Connection } from "../../kube/api/connection.ts";
import { NODES } from "../../kube/api/resource.ts";
import type { Said } from "../cni/caller.ts";
import { eventually } from "../support/eventually.ts";
import { isFull, runsOf } from "../support/runs.ts";
import { checkOutBaseline } from "../versions/baseline.ts";
import type { AgentNode } from "./agent-node.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { BlockCluster, type Box, type PlainPod, SHOP } from "./block-cluster.ts";
import { type Calls, callsBetween, callsSoFar } from "./chaos-calls.ts";
import { change, forceDelete, type Json, makeNode } from "./replica-objects.ts";

const SHARED = { cidr: "10.20.0.0/24", from: "10.20.0.50", to: "10.20.0.70" };
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

function last(address: string): number {
  return Number(address.split("/")[0]?.split(".")[3]);
}

if (havePartsOrSkip(["etcd", "kube-apiserver"])) {
  describe("pods that ask for nothing, on nodes with blocks", () => {
    let cluster: BlockCluster;
    before(async () => {
      cluster = await BlockCluster.open();
    });
    after(() => cluster?.close());
    afterEach(() => cluster.clear());

    /** The last parts of all addresses that sandboxes have now. */
    const given = () =>
      cluster
        .addresses()
        .map(last)
        .toSorted((a, b) => a - b);

    /** The pool as it is after that. */
    async function writePool(name: string, call: Omit<Call, "path">) {
      const { status, body } = await cluster.api.call({
        ...call,
        path: `/apis/berth.dev/v1alpha1/ippools/${name}`,
      });
      assert.equal(status, 200, JSON.stringify(body));
      return body as { readonly metadata: Json; readonly spec: Json };
    }

    async function notesOf(reason: string): Promise<readonly string[]> {
      const { body } = await cluster.api.call({ method: "GET", path: "/apis/events.k8s.io/v1/events" });
      const { items } = body as {
        readonly items: readonly { readonly reason: string; readonly note: string }[];
      };
      return items.flatMap((one) => (one.reason === reason ? [one.note] : []));
    }

    /** Starts these pods and then others that nobody counts: the controller may have given blocks for all that it counts. */
    async function untilRefused(node: AgentNode, counted: PlainPod[], over: Said): Promise<[string, Box[]]> {
      const unknown: Box[] = [];
      for (let n = 0; n < 200; n++) {
        const pod = { namespace: SHOP, name: `unknown-${n}`, uid: `unknown-${n}`, node };
        const said = await cluster.tryUp(counted.shift() ?? pod, over);
        if (typeof said === "string") return [said, unknown];
        if (said.pod === pod) unknown.push(said);
      }
      return assert.fail("none was refused");
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
        given(),
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
      assert.equal(new Set(given()).size, 2);
      const written = { apiVersion: "berth.dev/v1alpha1", kind: "IPPool", metadata: { name: "plain" }, spec };
      const server = {
        contentType: "application/apply-patch+yaml",
        query: { fieldManager: "t", force: "true" },
      };
      const applied = await writePool("plain", { ...server, method: "PATCH", body: written });
      assert.deepEqual(applied.spec["blockSize"], { ipv4: 32 });
      const replaced = { ...written, metadata: applied.metadata, spec: { ...spec, cooldown: "2s" } };
      assert.deepEqual((await writePool("plain", { method: "PUT", body: replaced })).spec["blockSize"], {
        ipv4: 32,
      });
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
        ranges: [SHARED],
        blockSize: { ipv4: 30 },
        default: true,
        cooldown: "1s",
      });
      await eventually(
        "both have some",
        async () => Object.keys(await cluster.owned()).length === 2 || undefined,
      );
      const all = await cluster.upAll(n1, 21);
      await cluster.untilAlone("n1");
      for (const box of all) await cluster.down(box);
      await cluster.upAll(n2, 21);
      assert.equal(given().length, 21);
      await cluster.untilAlone("n2");
    });

    it("have the last address of blocks of four that another node uses in part, and are refused in words after it", async () => {
      const [n1, n2] = [cluster.node("n1"), cluster.node("n2")];
      await cluster.makePool("fours", {
        ranges: [SHARED],
        blockSize: { ipv4: 30 },
        default: true,
        cooldown: "1s",
      });
      const all = await cluster.upAll(n1, 21);
      await cluster.untilAlone("n1");
      // one address of each block stays in use
      const kept = new Set([50, 53, 58, 61, 64, 70]);
      const ended = all.filter(({ addresses }) => !kept.has(last(addresses[0] ?? "")));
      for (const box of ended) await cluster.down(box);
      const others = await cluster.upAll(n2, 15);
      assert.equal(new Set(given()).size, 21);
      const have = others.map(({ addresses }) => last(addresses[0] ?? "")).toSorted((a, b) => a - b);
      assert.deepEqual(
        have,
        Array.from({ length: 21 }, (_, n) => 50 + n).filter((n) => !kept.has(n)),
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
      const pods = await Promise.all(Array.from({ length: 20 }, () => cluster.pod(n1)));
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
      assert.ok(reports <= 2, `${reports} reports for 40 calls`);
    });

    it("have their addresses once, whoever is killed under load", async () => {
      await cluster.makePool("busy", {
        ranges: [{ cidr: "10.22.0.0/26" }],
        blockSize: { ipv4: 30 },
        default: true,
        cooldown: "0s",
      });
      const nodes = [cluster.node("n1"), cluster.node("n2")];
      const over = new AbortController();
      let lives = 0;
      const live = async (n: number) => {
        const node = nodes[n % 2] ?? assert.fail();
        while (!over.signal.aborted) {
          const box = await cluster.up(await cluster.pod(node));
          await pause(20);
          await cluster.down(box);
          lives++;
        }
      };
      const lanes = Array.from({ length: isFull ? 12 : 6 }, (_, n) => live(n));
      const rounds = runsOf(4, 2);
      for (let round = 0; round < rounds; round++) {
        const node = nodes[round % 2] ?? assert.fail();
        const until = lives + 20;
        await Promise.race([eventually("pods live", () => lives >= until || undefined), Promise.all(lanes)]);
        await node.stop("SIGKILL");
        await node.start();
      }
      over.abort();
      await Promise.all(lanes);
      assert.deepEqual(given(), []);
      console.log(`${lives} lives of pods with ${rounds} agents killed`);
    });

    it("end while their agent is away, and their blocks come back", async () => {
      const n1 = cluster.node("n1");
      await cluster.makePool("away", {
        ranges: [{ cidr: "10.23.0.0/28" }],
        blockSize: { ipv4: 32 },
        default: true,
        cooldown: "1s",
      });
      const boxes = await cluster.upAll(n1, 14);
      await cluster.untilOwned({ n1: 14 });
      await n1.stop("SIGKILL");
      for (const box of boxes) await cluster.down(box);
      await n1.start();
      await cluster.upAll(cluster.node("n2"), 14);
      await cluster.untilOwned({ n2: 14 });
    });

    it("are served while the blocks last without an API server, by an agent that starts then, too", async () => {
      const n1 = cluster.node("n1");
      await cluster.makePool("alone", {
        ranges: [{ cidr: "10.24.0.0/24" }],
        blockSize: { ipv4: 29 },
        default: true,
        cooldown: "0s",
      });
      await cluster.untilOwned({ n1: 2, n2: 2 });
      const pods = await Promise.all(Array.from({ length: 40 }, () => cluster.pod(n1)));
      const first = await cluster.up(pods.pop() ?? assert.fail());
      await cluster.plane.apiServer.stop("SIGKILL");
      const up = async (pod: PlainPod) => await cluster.tryUp(pod);
      for (const pod of pods.splice(0, 5)) assert.notEqual(typeof (await up(pod)), "string");
      await n1.stop("SIGKILL");
      await n1.serve();
      const annotated = { conf: { runtimeConfig: { "io.kubernetes.cri.pod-annotations": {} } } };
      const [words, unknown] = await untilRefused(n1, pods.splice(0, 14), annotated);
      console.log(`${unknown.length} that nobody counts, and then: ${words}`);
      assert.match(words, /^11 /);
      for (const box of unknown) await cluster.end(box);
      await cluster.plane.start();
      await n1.untilReady();
      await cluster.up(pods.pop() ?? assert.fail());
      assert.ok(first);
    });

    it("are served 110 at once, after a reboot", async () => {
      const n1 = cluster.node("n1");
      await cluster.makePool("many", {
        ranges: [{ cidr: "10.25.0.0/20" }],
        blockSize: { ipv4: 26 },
        default: true,
        cooldown: "10s",
      });
      const before = await cluster.upAll(n1, 110);
      await cluster.reboot(n1);
      for (const { pod } of before) await cluster.forget(pod);
      const began = performance.now();
      const boxes = await cluster.upAll(n1, 110);
      console.log(`110 pods at once after a reboot: ${Math.round(performance.now() - began)} ms`);
      assert.equal(new Set(boxes.flatMap(({ addresses }) => addresses)).size, 110);
    });

    it("of a node whose Node object is made again go on from the same blocks", async () => {
      const n1 = cluster.node("n1");
      await cluster.makePool("again", {
        ranges: [{ cidr: "10.27.0.0/24" }],
        ...{ blockSize: { ipv4: 29 }, default: true, cooldown: "1s" },
      });
      await cluster.upAll(n1, 4);
      const blocks = async () =>
        (await cluster.blocks()).flatMap(({ uid, record }) => (record.node === "n1" ? [uid] : [])).sort();
      // one that the agent does not know to be its own waits until the Node that it was made for is known to be gone
      await eventually(
        "each is the agent's",
        async () => (await cluster.blocks()).every(({ record }) => record.status !== undefined) || undefined,
      );
      const before = await blocks();
      await forceDelete(cluster.api, NODES, { name: "n1" });
      await makeNode(cluster.api, "n1");
      await cluster.upAll(n1, 4);
      await n1.stop("SIGKILL");
      await n1.start();
      await cluster.upAll(n1, 2);
      const after = new Set(await blocks());
      assert.ok(
        before.every((uid) => after.has(uid)),
        "none of them was taken",
      );
    });

    it("of a node whose agent is of the version before are not served there, and keep what they have through upgrade and rollback", async (t) => {
      const baseline = await checkOutBaseline();
      if ("why" in baseline) return t.skip(baseline.why);
      const n1 = cluster.node("n1");
      const old = join(baseline.root, "ipam-plugin/agent/main.ts");
      const as = async (main: string | undefined) => {
        await n1.stop();
        n1.main = main;
        await n1.start();
      };
      try {
        await cluster.makePool("versions", {
          ranges: [{ cidr: "10.28.0.0/24" }],
          ...{ blockSize: { ipv4: 29 }, default: true, cooldown: "1s" },
        });
        await cluster.untilOwned({ n1: 2, n2: 2 });
        await as(old);
        assert.match(String(await cluster.tryUp(await cluster.pod(n1))), /no IP ranges specified/);
        await cluster.upAll(cluster.node("n2"), 2);
        await as(undefined);
        const [kept, gone] = await cluster.upAll(n1, 2);
        assert.ok(kept && gone);
        await as(old);
        assert.deepEqual(await n1.runtime.add(kept.said), kept.addresses, "the same answer again");
        await cluster.end(gone);
        await n1.runtime.silently("STATUS");
        await as(undefined);
        assert.deepEqual(await n1.runtime.add(kept.said), kept.addresses);
        await cluster.upAll(n1, 3);
      } finally {
        n1.main = undefined;
        await baseline.remove();
      }
    });

    it("of a node whose power was cut, keep their addresses until it is fenced", async () => {
      const n3 = await cluster.addNode("n3");
      await cluster.makePool("power", {
        ranges: [{ cidr: "10.26.0.0/29" }],
        blockSize: { ipv4: 32 },
        default: true,
        cooldown: "1s",
      });
      await cluster.upAll(n3, 6);
      await cluster.untilOwned({ n3: 6 });
      await n3.stop("SIGKILL");
      cluster.lose(n3);
      const late = await cluster.pod(cluster.node("n1"));
      assert.match(String(await cluster.tryUp(late)), /^11 /);
      assert.deepEqual(await cluster.owned(), { n3: 6 }, "nobody has said that it is off");
      await forceDelete(cluster.api, NODES, { name: "n3" });
      await eventually(
        "an event of the pool says so",
        async () =>
          (await notesOf("NodeGone")).some((note) =>
            /^node n3 gone: 6 blocks \(.*\) given back 45s after that, and free after the pool's cooldown \(1s\)$/.test(
              note,
            ),
          ) || undefined,
      );
      await makeNode(cluster.api, "n3");
      const taint = { key: "node.kubernetes.io/out-of-service", effect: "NoExecute" };
      await change(cluster.api, NODES, { name: "n3" }, { spec: { taints: [taint] } });
      await cluster.up(late);
      await cluster.removeNode("n3");
    });
  });
}
