// SPDX-License-Identifier: Apache-2.0
// How much memory processes take, and for how long they are kept from answering, with as many claims and reservations
// as BERTH_SCALE says: 10,000 if absent; 100,000 are what docs/performance.md promises something for.
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { Client } from "../../kube/api/client.ts";
import { CLAIMS, PODS, type Resource } from "../../kube/api/resource.ts";
import { eventually } from "../support/eventually.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { type Calls, callsBetween, callsSoFar, inWords } from "./chaos-calls.ts";
import { makeNamespaces } from "./crds.ts";
import { type OwnControlPlane, startControlPlane } from "./harness.ts";
import { WEBHOOK_USER } from "./plane.ts";
import { freePort } from "./ports.ts";
import { readyz } from "./replicas.ts";
import { API_SERVER_FLAGS, fill, type Load, nodeOf, ordinalOf } from "./scale-load.ts";
import { buildDist, canBePod, PodProcess, programIn } from "./scale-process.ts";
import { writeCertificate } from "./serving-certificate.ts";

const CLAIMS_LOADED = Number(process.env["BERTH_SCALE"] ?? 10_000);
const LOAD: Load = {
  claims: CLAIMS_LOADED,
  pods: CLAIMS_LOADED / 10,
  nodes: Math.max(10, CLAIMS_LOADED / 1_000),
};
const FULL = 100_000;
/** What a claim and its reservation may take in the webhook; they take 0.7 KiB. */
const BYTES_FOR_A_CLAIM = 2 * 1024;
/** What compiled code and buffers take once there is work, however many claims there are. */
const WARM_MIB = 32;
/**
 * What an agent takes, however large its cluster is, and what of it is its own and no file's: 71 to 73 and 22.5 to 24.6, by when V8 collected
 * last. The webhook, which keeps all pods and records of this cluster, takes 25 more for them.
 */
const AGENT_MIB = 76;
const AGENT_OWN_MIB = 26;
/** Processor time of a turn of the event loop; twice what is promised, since other work on the processor slows this too. */
const TURN_MS = 200;
const TRAFFIC_MS = LOAD.claims >= FULL ? 60_000 : 5_000;
const SYNC_MS = LOAD.claims >= FULL ? 300_000 : 120_000;
const EVENTS = 10;

if (havePartsOrSkip(["etcd", "kube-apiserver"])) {
  const skip = (await canBePod()) ? false : "needs root: its processes take themselves for pods";
  describe(`${LOAD.claims} claims`, { skip }, () => {
    let plane: OwnControlPlane;
    let folder: string;
    let dist: string;
    let ca: string;
    let empty: number;
    before(async () => {
      folder = mkdtempSync(join(tmpdir(), "berth-scale-"));
      dist = await buildDist();
      ca = await writeCertificate(folder);
      plane = await startControlPlane({
        users: [WEBHOOK_USER],
        authorization: "AlwaysAllow",
        apiServerFlags: API_SERVER_FLAGS,
        definitions: true,
      });
      await makeNamespaces(plane.connect(), ["berth-system"]);
      empty = await withWebhook(async (webhook) => {
        await pause(1_000);
        return webhook.resident();
      });
      await fill(plane.connect(), plane.etcdUrl, LOAD);
    });
    after(async () => {
      await plane?.close();
      for (const one of [folder, dist]) if (one !== undefined) rmSync(one, { recursive: true, force: true });
    });

    async function withWebhook<T>(work: (webhook: PodProcess) => Promise<T>): Promise<T> {
      const port = await freePort();
      const webhook = PodProcess.start({
        ...{ program: programIn(dist, "webhook"), plane, folder, user: WEBHOOK_USER.name },
        env: {
          BERTH_NAMESPACE: "berth-system",
          BERTH_POD_NAME: "webhook-0",
          BERTH_HOST: "127.0.0.1",
          BERTH_PORT: String(port),
          BERTH_TLS: folder,
          BERTH_DEPART: "0s",
        },
      });
      try {
        await serving(webhook);
        const look = async () => ((await readyz(port, ca)) === 200 ? true : undefined);
        await eventually("the webhook is ready", look, SYNC_MS).catch((error: unknown) => {
          throw new Error(`${String(error)}\n${webhook.log}`);
        });
        return await work(webhook);
      } finally {
        await webhook.end();
      }
    }

    async function withAgents<T>(
      nodes: readonly string[],
      work: (agents: readonly PodProcess[]) => Promise<T>,
    ): Promise<T> {
      const agents = nodes.map((node) => {
        const own = join(folder, node);
        mkdirSync(own, { recursive: true });
        return PodProcess.start({
          ...{ program: programIn(dist, "agent"), plane, user: WEBHOOK_USER.name, folder: own },
          env: {
            BERTH_NODE_NAME: node,
            BERTH_SOCKET: join(own, "agent.sock"),
            BERTH_DATA: join(own, "data"),
            BERTH_PORT: "0",
          },
        });
      });
      try {
        await Promise.all(agents.map(untilReady));
        return await work(agents);
      } finally {
        await Promise.all(agents.map((agent) => agent.end()));
      }
    }

    async function untilReady(agent: PodProcess): Promise<void> {
      await serving(agent);
      const look = async () => {
        const port = /"port":(\d+).*"agent serves"/.exec(agent.log)?.[1];
        const { status } = await fetch(`http://127.0.0.1:${port}/readyz`);
        return status === 200 ? true : undefined;
      };
      await eventually("the agent is ready", look, SYNC_MS).catch((error: unknown) => {
        throw new Error(`${String(error)}\n${agent.log}`);
      });
    }

    /** Loading its code is a long turn, and nobody waits for it. */
    async function serving(process: PodProcess): Promise<void> {
      const look = () => (/"message":"(?:webhook|agent) serves"/.test(process.log) ? true : undefined);
      await eventually("it serves", look, SYNC_MS).catch((error: unknown) => {
        throw new Error(`${String(error)}\n${process.log}`);
      });
      await process.longestTurn();
    }

    /** Something about the n-th pod, or its claim, changes so often. */
    async function touch(resource: Resource, n: number, times: number): Promise<void> {
      const client = new Client(plane.connect(), resource);
      const { namespace, name } = ordinalOf(n);
      for (let i = 0; i < times; i++) {
        const body = { metadata: { annotations: { "example.org/touched": `${Date.now()} ${i}` } } };
        assert.ok(await client.patch({ namespace, name }, { type: "merge", body }));
      }
    }

    async function traffic(): Promise<void> {
      const until = Date.now() + TRAFFIC_MS;
      for (let n = 0; Date.now() < until; n++) {
        await Promise.all([touch(PODS, n % LOAD.pods, 1), touch(CLAIMS, n % LOAD.claims, 1)]);
      }
    }

    it("take little of the webhook's memory, and keep it from nothing", async (t) => {
      const calls: Calls = await callsSoFar(plane.connect());
      const began = Date.now();
      await withWebhook(async (webhook) => {
        const synced = { seconds: (Date.now() - began) / 1000, memory: webhook.resident() };
        const syncing = await webhook.longestTurn();
        await traffic();
        const memory = webhook.resident();
        const turn = Math.max(syncing, await webhook.longestTurn());
        const lists = callsBetween(calls, await callsSoFar(plane.connect()), [
          "ipclaims",
          "ipreservations",
          "pods",
        ]);
        t.diagnostic(
          `webhook: ${empty.toFixed(0)} MiB without claims; synced after ${synced.seconds.toFixed(1)} s at ` +
            `${synced.memory.toFixed(0)} MiB, ${memory.toFixed(0)} MiB after traffic; ` +
            `longest turn ${syncing.toFixed(0)} ms while it synced, ${turn.toFixed(0)} ms in all; ${inWords(lists)}`,
        );
        const perClaim = ((memory - empty - WARM_MIB) * 2 ** 20) / LOAD.claims;
        assert.ok(perClaim <= BYTES_FOR_A_CLAIM, `a claim takes ${perClaim.toFixed(0)} bytes`);
        assert.ok(turn <= TURN_MS, `a turn of the event loop took ${turn.toFixed(0)} ms of the processor`);
        if (LOAD.claims === FULL) assert.ok(memory <= 220, `the webhook takes ${memory.toFixed(0)} MiB`);
      });
    });

    it("of other nodes take nothing of an agent's memory, and none of their events reach it", async (t) => {
      const watched = async () => await watchEvents(plane);
      const idle = await grownBy(watched, () => touch(PODS, 2, EVENTS));
      await withAgents([nodeOf(0, LOAD), nodeOf(1, LOAD)], async (agents) => {
        await pause(2_000);
        const memory = agents.map((agent) => agent.resident());
        const own = agents.map((agent) => agent.anonymous());
        const ofOwn = await grownBy(watched, () => touch(PODS, 0, EVENTS));
        const others = await grownBy(watched, () => touch(PODS, 2, EVENTS));
        const claims = await grownBy(watched, () => touch(CLAIMS, 1, EVENTS));
        const turns = await Promise.all(agents.map((agent) => agent.longestTurn()));
        t.diagnostic(
          `agents: ${memory.map((mib) => mib.toFixed(0)).join(" and ")} MiB, ` +
            `${own.map((mib) => mib.toFixed(0)).join(" and ")} of it their own, ` +
            `longest turn ${turns.map((ms) => ms.toFixed(0)).join(" and ")} ms`,
        );
        assert.equal(ofOwn - idle, EVENTS, "each event of a pod reaches one agent");
        assert.equal(others - idle, 0, "the events of a pod on a node without an agent reach none");
        assert.equal(claims, EVENTS, "each event of a claim reaches one agent");
        assert.ok(Math.max(...own) <= AGENT_OWN_MIB, `agents take ${own.join(" and ")} MiB of their own`);
        assert.ok(Math.max(...memory) <= AGENT_MIB, `agents take ${memory.join(" and ")} MiB`);
      });
    });
  });
}

/** Events that the API server has sent to watches of pods and claims, by its own count. */
async function watchEvents(plane: OwnControlPlane): Promise<number> {
  const { body } = await plane.connect().call({ method: "GET", path: "/metrics" });
  const lines = String(body).split("\n");
  return lines
    .filter((line) =>
      /^apiserver_watch_events_total\{.*(?:resource="(?:pods|ipclaims)"|kind="(?:Pod|IPClaim)")/.test(line),
    )
    .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" "))), 0);
}

async function grownBy(count: () => Promise<number>, work: () => Promise<void>): Promise<number> {
  const before = await count();
  await work();
  await pause(1_000);
  return (await count()) - before;
}
