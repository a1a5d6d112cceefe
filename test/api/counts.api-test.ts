// SPDX-License-Identifier: Apache-2.0
// What Berth costs the API server, counted in the API server's own metrics: with two replicas of the webhook, all
// their controllers, and the agents of two nodes.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { isBound } from "../../allocator/model/claim.ts";
import { listed } from "../../allocator/store/contract/subject.ts";
import type { Connection } from "../../kube/api/connection.ts";
import { POOLS, STATEFULSETS } from "../../kube/api/resource.ts";
import { eventually } from "../support/eventually.ts";
import { SeededRandom } from "../support/random.ts";
import { NAMESPACE } from "./agent-cluster.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { makeSet } from "./chaos-actors.ts";
import { appear, type Life, leave, type Stage } from "./chaos-acts.ts";
import { ChaosApi, type ChaosPod } from "./chaos-api.ts";
import { type Calls, callsBetween, callsSoFar, inWords } from "./chaos-calls.ts";
import { ChaosCluster } from "./chaos-cluster.ts";
import { leftovers } from "./chaos-end.ts";
import { ExpectedUse } from "./chaos-expected.ts";
import { ChaosKubelets } from "./chaos-kubelets.ts";
import { ordinal, POOL, pinned, RANGE, type Role } from "./chaos-roles.ts";
import { ChaosTally } from "./chaos-tally.ts";
import { openStore } from "./open-store.ts";
import { readBack } from "./request-counts.ts";

/** But for pools, whose status says every few seconds how full they are, however many pods come and go. */
const BERTHS = ["ipclaims", "ipreservations", "ipblocks"];
const OTHERS = [
  "pods",
  "nodes",
  "namespaces",
  "statefulsets",
  "deployments",
  "events",
  "subjectaccessreviews",
];
const NODE = "n1";
/** Until everybody who heard of something has done what he does about it. */
const QUIET_MS = 1_500;
const GONE_MS = 90_000;
/** As many addresses are set aside for each test that tries again. */
const ATTEMPTS = 10;

if (havePartsOrSkip(["etcd", "kube-apiserver"])) {
  describe("what it costs the API server", () => {
    let cluster: ChaosCluster;
    let stage: Stage;
    let meter: Connection;
    before(async () => {
      cluster = await ChaosCluster.open();
      const [expected, tally, random] = [new ExpectedUse(), new ChaosTally(), new SeededRandom(1)];
      meter = cluster.plane.connect();
      const api = new ChaosApi(cluster.plane.connect(), tally);
      stage = {
        api,
        expected,
        tally,
        random,
        sets: new Map(),
        kubelets: new ChaosKubelets(cluster.nodes, expected, tally),
      };
      const spec = { ranges: [RANGE], cooldown: "1s", reserved: ["10.20.0.150-10.20.0.199"] };
      await api.make(POOLS, { name: POOL }, { spec });
      await appear(stage, pinned("first", "10.20.0.199"), NODE);
      await quiet();
    });
    after(async () => {
      await cluster?.close();
      assert.deepEqual(stage.expected.wrongs, []);
    });

    /** Waits until nothing is asked any more. */
    async function quiet(): Promise<void> {
      for (let last = await now(); ; ) {
        await pause(QUIET_MS);
        const next = await now();
        if (inWords(callsBetween(last, next, [...BERTHS, ...OTHERS])) === "nothing") return;
        last = next;
      }
    }

    const now = () => callsSoFar(meter);

    /** What the work gives, and what it costs with all that comes of it. */
    async function cost<T>(work: () => Promise<T>): Promise<readonly [T, Calls]> {
      const before = await now();
      const made = await work();
      await quiet();
      const calls = callsBetween(before, await now(), [...BERTHS, ...OTHERS]);
      // this test alone lists anything
      return [made, Object.fromEntries(Object.entries(calls).filter(([key]) => !key.startsWith("LIST ")))];
    }

    async function admitted({ pod }: Role): Promise<ChaosPod> {
      const made = await stage.api.makePod(pod(stage.sets));
      return typeof made === "string" ? assert.fail(made) : made;
    }

    /** What was asked before the answer came, and `meanwhile` follows it. */
    async function answered<T>(call: () => Promise<T>, meanwhile = () => {}): Promise<readonly [T, Calls]> {
      const before = await now();
      const answer = await call();
      meanwhile();
      return [answer, callsBetween(before, await now(), [...BERTHS, ...OTHERS])];
    }

    /** A call of the runtime's that asks nothing: after its answer the agent stands still while that is seen. */
    async function free<T>(call: () => Promise<T>): Promise<T> {
      const agent = cluster.victims.find(({ name }) => name === NODE) ?? assert.fail();
      try {
        const [answer, asked] = await answered(call, agent.freeze);
        assert.deepEqual(asked, {});
        return answer;
      } finally {
        agent.thaw?.();
      }
    }

    /**
     * Tries with one address after another until nothing else was written meanwhile: where a step takes seconds, what
     * comes seconds later anyway (a second replica that steps in) falls into it.
     */
    async function undisturbed(first: number, attempt: (address: string) => Promise<void>): Promise<void> {
      for (let n = 0; ; n++) {
        try {
          return await attempt(`10.20.0.${first + n}`);
        } catch (error) {
          if (!(error instanceof assert.AssertionError) || n === ATTEMPTS - 1) throw error;
          console.log(`attempt ${n + 1}: ${error.message}`);
        }
      }
    }

    it("is nothing for an ADD and a DEL", () =>
      undisturbed(150, async (address) => {
        const pod = await admitted(pinned(`free-${address}`.replaceAll(".", "-"), address));
        await cost(() => stage.api.schedule(pod, NODE));
        const [box, behind] = await cost(() => free(() => stage.kubelets.up(pod, NODE)));
        const [, after] = await cost(() => free(() => stage.kubelets.down(box)));
        assert.deepEqual(behind, {}, "the runtime has a record of it");
        assert.deepEqual(after, {}, "its pod is there: its claim is not let go");
      }));

    it("is two writes for a new identity, and nothing when its pod comes again", async () => {
      const role = pinned("twice", "10.20.0.160");
      await quiet();
      const [pod, first] = await answered(() => admitted(role));
      assert.deepEqual(first, {
        ...(await readBack(meter, { namespace: NAMESPACE, name: "twice" }, "10.20.0.160")),
        "POST ipclaims": 1,
        "POST ipreservations": 1,
        "POST pods": 1,
      });
      await stage.api.deletePod(pod, 0);
      await quiet();
      const [, again] = await answered(() => admitted(role));
      assert.deepEqual(again, { "POST pods": 1 });
    });

    it("is told of a pod's whole life", () =>
      undisturbed(170, async (address) => {
        const role = pinned(`whole-${address}`.replaceAll(".", "-"), address);
        const [pod, admission] = await cost(() => admitted(role));
        const [, binding] = await cost(() => stage.api.schedule(pod, NODE));
        const [box, attaching] = await cost(() => stage.kubelets.up(pod, NODE));
        const [, ending] = await cost(async () => {
          await leave(stage, { role, box });
          await eventually("its address is free", () => isFree(address), GONE_MS);
        });
        const steps = { admitted: admission, bound: binding, attached: attaching, ended: ending };
        assert.equal(binding["PATCH ipclaims"], 1);
        assert.equal(binding["POST events"], undefined, "nothing was in its way");
        assert.deepEqual(attaching, {});
        for (const [what, calls] of Object.entries(steps)) console.log(`a pod is ${what}: ${inWords(calls)}`);
      }));

    async function isFree(address: string): Promise<true | undefined> {
      await pause(500);
      return (await leftovers(cluster.plane)).includes(`reservation ${address}`) ? undefined : true;
    }

    it("is told of a StatefulSet of ten that is created and created again", async () => {
      const roles = Array.from({ length: 10 }, (_, n) => ordinal("ten", n));
      const [, reserved] = await cost(() => makeSet(stage, "ten", 10));
      let lives: Life[] = [];
      const come = async () => {
        lives = [];
        for (const role of roles) lives.push((await appear(stage, role, NODE)) ?? assert.fail());
      };
      const [, created] = await cost(come);
      const [, deleted] = await cost(async () => {
        for (const life of lives) await leave(stage, life);
      });
      const [, again] = await cost(come);
      assert.deepEqual([writesOf(deleted), writesOf(again)], [10, 10], "its sandbox has ended; it is bound");
      for (const [what, calls] of Object.entries({ reserved, created, deleted, again }))
        console.log(`a set of ten is ${what}: ${inWords(calls)}`);
      assert.deepEqual([again["POST ipclaims"], again["POST ipreservations"]], [undefined, undefined]);
      assert.equal(again["PATCH ipclaims"], 10, "each is bound, and nothing else");
    });

    it("is at most three writes of each claim that is scaled away and comes back", async () => {
      const roles = Array.from({ length: 4 }, (_, n) => ordinal("scaled", n));
      await makeSet(stage, "scaled", 4);
      let lives: Life[] = [];
      const come = async () => {
        lives = [];
        for (const role of roles) lives.push((await appear(stage, role, NODE)) ?? assert.fail());
      };
      const place = { namespace: NAMESPACE, name: "scaled" };
      const scaled = (replicas: number) => stage.api.change(STATEFULSETS, place, { spec: { replicas } });
      await cost(come);
      const [, away] = await cost(async () => {
        await scaled(0);
        for (const life of lives) await leave(stage, life);
      });
      const [, back] = await cost(async () => {
        await scaled(roles.length);
        await come();
      });
      console.log(`a set of four is scaled away: ${inWords(away)}`);
      console.log(`a set of four is scaled back: ${inWords(back)}`);
      // its sandbox has ended, it is retained, it is bound: in which step depends on the machine
      assert.ok(writesOf(away) + writesOf(back) <= 3 * roles.length, `${inWords(away)}; ${inWords(back)}`);
    });

    it("is nothing but watches and leases in a minute in which nothing happens to 100 pods", async () => {
      await makeSet(stage, "many", 100);
      for (let n = 0; n < 100; n += 10) {
        const ten = Array.from({ length: 10 }, (_, i) => ordinal("many", n + i));
        await Promise.all(ten.map((role) => appear(stage, role, NODE)));
      }
      await eventually("the pool says how full it is", isPoolUpToDate, GONE_MS);
      await quiet();
      const before = await now();
      await pause(60_000);
      const minute = callsBetween(before, await now(), [...BERTHS, "ippools", ...OTHERS, "leases"]);
      console.log(`an idle minute with 100 pods: ${inWords(minute)}`);
      const others = Object.keys(minute).filter(
        (key) => !key.startsWith("WATCH ") && !key.endsWith(" leases"),
      );
      assert.deepEqual(others, []);
    });

    /** Its status is written seconds after the last change of a record: `quiet` does not wait as long. */
    async function isPoolUpToDate(): Promise<true | undefined> {
      const store = openStore(meter);
      const reservations = await listed(store, "reservation");
      const claims = await listed(store, "claim");
      await store.close();
      const cooling = reservations.filter(({ record }) => record.releasedAt !== undefined).length;
      const bound = claims.filter(({ record }) => isBound(record)).flatMap(({ record }) => record.addresses);
      const pool = (await stage.api.get(POOLS, { name: POOL })) as { status?: { ipv4?: object } };
      const said = { reserved: 0, bound: 0, cooling: 0, ...pool.status?.ipv4 };
      const isSaid = said.reserved === reservations.length && said.bound === bound.length;
      return cooling + said.cooling === 0 && isSaid ? true : undefined;
    }
  });
}

/** Of claims and their status, without those that met a newer revision. */
function writesOf(calls: Calls): number {
  const writes = Object.entries(calls).filter(([call]) =>
    /^(POST|PUT|PATCH|DELETE) ipclaims(\/status)?$/.test(call),
  );
  return writes.reduce((sum, [, count]) => sum + count, 0);
}
