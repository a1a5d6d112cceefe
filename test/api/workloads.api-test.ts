// SPDX-License-Identifier: Apache-2.0
// Sets of hundreds are in workloads-crowds.api-test.ts.
import assert from "node:assert/strict";
import { after, afterEach, before, describe, it } from "node:test";
import { KeyedMutex } from "../../allocator/base/keyed-mutex.ts";
import { requestForClaim } from "../../allocator/demand/build-request.ts";
import { type BindingEvidence, bind } from "../../allocator/lifecycle/bind.ts";
import { release } from "../../allocator/lifecycle/release.ts";
import { reserve } from "../../allocator/lifecycle/reserve.ts";
import type { Claim } from "../../allocator/model/claim.ts";
import { type Resource, STATEFULSETS } from "../../kube/api/resource.ts";
import { startWorkloads } from "../../webhook/controllers/statefulset-controller.ts";
import { eventually } from "../support/eventually.ts";
import { FailingStore, type Failure } from "../support/failing-store.ts";
import { applicantOf, attachmentOf, claimRecord, granted, poolRecord } from "../support/fixtures.ts";
import { SeededRandom } from "../support/random.ts";
import { deathsAt, drawn } from "../support/runs.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { ControllersCluster } from "./controllers-cluster.ts";
import { SwitchedLeadership } from "./replica-deps.ts";
import { installKruise } from "./replica-kruise.ts";
import { readBack, requestCounts } from "./request-counts.ts";
import { seesWorkload } from "./seen-workloads.ts";

const IPS = "berth.dev/ips";
const FREE: BindingEvidence = { fenced: false, holdExpired: false };

if (havePartsOrSkip(["etcd", "kube-apiserver"])) {
  describe("the workloads controller on a real API server", () => {
    let cluster: ControllersCluster;
    let kruiseSets: Resource;
    before(async () => {
      cluster = await ControllersCluster.open(async (connection) => {
        [kruiseSets] = await installKruise(connection, "statefulsets");
      });
      await cluster.makePool(poolRecord("db", ["10.20.0.0/16", "fd00:20::/64"], { cooldown: "0s" }));
    });
    after(() => cluster?.close());
    afterEach(() => cluster.endAll());

    /** A pod had the claim, and its sandbox has ended. */
    const podHad = async (name: string) => {
      const pod = { name, uid: `uid-of-${name}`, node: "node-a", token: "" };
      const bound = granted(await bind(cluster.context, `shop/${name}`, pod, async () => FREE));
      const attachment = attachmentOf(name, { podUID: pod.uid, detached: true });
      assert.equal((await cluster.store.report(bound, { attachment })).kind, "replaced");
    };

    /** Writes and reads of Berth's kinds so far, but for watches and lists. */
    const calls = async () => {
      const of = await requestCounts(cluster.connection);
      const one = (resource: string) =>
        ["POST", "GET", "PATCH", "DELETE"].reduce((sum, verb) => sum + of({ resource, verb }), 0);
      return one("ipclaims") + one("ipreservations");
    };

    it("reserves the list of a set from ordinals.start on, and more when it is scaled up", async () => {
      cluster.start(startWorkloads);
      const annotations = { [IPS]: "10.20.1.5;10.20.1.6;10.20.1.7;10.20.1.8" };
      await cluster.applySet("late", { replicas: 3, start: 5, annotations });
      const three = { "late-5": "10.20.1.5", "late-6": "10.20.1.6", "late-7": "10.20.1.7" };
      await cluster.holds("late-", three);
      await cluster.scale("late", 4);
      await cluster.holds("late-", { ...three, "late-8": "10.20.1.8" });
      const { identity } = (await cluster.claim("late-8"))?.record ?? claimRecord();
      assert.equal(identity.ordinal, 8);
      assert.equal(identity.apiVersion, "apps/v1");
      assert.deepEqual(cluster.told("late"), []);
      await cluster.sound();
    });

    it("makes no call for claims that stand, whatever is looked at again", async () => {
      cluster.start(startWorkloads);
      const annotations = { "berth.dev/pools": "db" };
      await cluster.applySet("calm", { replicas: 3, annotations });
      await eventually("three claims", async () =>
        Object.keys(await cluster.holdings("calm-")).length === 3 ? true : undefined,
      );
      await cluster.caughtUp();
      await cluster.endAll();
      const before = await calls();
      cluster.clock.skip(600_000); // pods that wait for their turn are no reason to touch their claims
      cluster.start(startWorkloads, { context: { ...cluster.context, clock: cluster.clock } });
      await cluster.patch(STATEFULSETS, "calm", {
        spec: { template: { metadata: { labels: { version: "2" } } } },
      });
      // another one that is looked at afterwards
      await cluster.applySet("marker", { replicas: 1, annotations: { [IPS]: "10.20.1.30" } });
      await eventually("the marker's claim", () => cluster.replica.cache.claim("shop/marker-0"));
      await cluster.endAll(); // after the work at hand, which has more to read
      const after = await calls();
      const again = await readBack(cluster.connection, { namespace: "shop", name: "marker-0" }, "10.20.1.30");
      assert.equal(after - before, 3 + Object.keys(again).length); // is there a claim, reservation, claim
    });

    it("reserves for OpenKruise's sets too, but not the ordinals that they leave out", async () => {
      cluster.start(startWorkloads);
      const annotations = { [IPS]: "10.20.9.1-10.20.9.8" };
      const set = { replicas: 3, annotations, reserveOrdinals: [1, "3-4"] };
      await cluster.applySet("holes", set, kruiseSets);
      await cluster.holds("holes-", {
        "holes-0": "10.20.9.1",
        "holes-2": "10.20.9.3",
        "holes-5": "10.20.9.6",
      });
      assert.equal((await cluster.claim("holes-5"))?.record.identity.apiVersion, "apps.kruise.io/v1beta1");
      assert.deepEqual(cluster.told("holes"), []);
      await cluster.sound();
    });

    it("scales down as whenScaled says, and up again to the same addresses", async () => {
      const judge = cluster.collectGarbage();
      const suspected = new Set<string>();
      const enqueueForGc = (claim: Claim) => {
        suspected.add(claim.name);
        judge(claim);
      };
      cluster.start(startWorkloads, { enqueueForGc });
      const list = { [IPS]: "10.20.2.1;10.20.2.2" };
      await cluster.applySet("kept", {
        replicas: 2,
        annotations: { ...list, "berth.dev/when-scaled": "Retain" },
      });
      const other = { [IPS]: "10.20.2.11;10.20.2.12", "berth.dev/when-scaled": "Release" };
      await cluster.applySet("let", { replicas: 2, annotations: other });
      await cluster.holds("kept-", { "kept-0": "10.20.2.1", "kept-1": "10.20.2.2" });
      await cluster.holds("let-", { "let-0": "10.20.2.11", "let-1": "10.20.2.12" });
      await cluster.scale("kept", 1);
      await cluster.scale("let", 1);
      await cluster.holds("let-", { "let-0": "10.20.2.11" });
      const retained = async () => (await cluster.claim("kept-1"))?.record.retained?.because;
      await eventually("kept-1 is retained", retained);
      assert.equal(await retained(), "scaled");
      assert.equal((await cluster.claim("kept-0"))?.record.retained, undefined);
      assert.deepEqual([...suspected].sort(), ["kept-1", "let-1"]);
      await cluster.scale("kept", 2);
      await cluster.scale("let", 2);
      await eventually("kept-1 is wanted again", async () =>
        (await retained()) === undefined ? true : undefined,
      );
      await cluster.holds("let-", { "let-0": "10.20.2.11", "let-1": "10.20.2.12" });
      await cluster.holds("kept-", { "kept-0": "10.20.2.1", "kept-1": "10.20.2.2" });
      await cluster.sound();
    });

    it("lets a deleted set's addresses go as whenDeleted and ttl say", async () => {
      const enqueueForGc = cluster.collectGarbage();
      cluster.start(startWorkloads, { enqueueForGc });
      const keep = { [IPS]: "10.20.3.1", "berth.dev/when-deleted": "Retain", "berth.dev/ttl": "1h" };
      await cluster.applySet("stays", { replicas: 1, annotations: keep });
      await cluster.applySet("goes", { replicas: 1, annotations: { [IPS]: "10.20.3.2" } });
      await cluster.applySet("never", { replicas: 1, annotations: { ...keep, [IPS]: "10.20.3.3" } });
      await cluster.holds("stays-", { "stays-0": "10.20.3.1" });
      await cluster.holds("goes-", { "goes-0": "10.20.3.2" });
      await cluster.holds("never-", { "never-0": "10.20.3.3" });
      await podHad("stays-0");
      await cluster.deleteSet("stays");
      await cluster.deleteSet("goes");
      await cluster.deleteSet("never");
      await cluster.holds("goes-", {});
      // no pod ever had it
      await cluster.holds("never-", {});
      const retained = async () => (await cluster.claim("stays-0"))?.record.retained?.because;
      assert.equal(await eventually("stays-0 is retained", retained), "deleted");
      await cluster.collectAt(59 * 60_000);
      await cluster.holds("stays-", { "stays-0": "10.20.3.1" });
      await cluster.collectAt(61 * 60_000);
      await cluster.holds("stays-", {});
      await cluster.sound();
    });

    it("takes up the retention that changes in the template, and leaves addresses to the pods that ask for them", async () => {
      cluster.start(startWorkloads);
      await cluster.applySet("moves", { replicas: 2, annotations: { [IPS]: "10.20.4.1;10.20.4.2" } });
      await cluster.holds("moves-", { "moves-0": "10.20.4.1", "moves-1": "10.20.4.2" });
      const annotations = { [IPS]: "10.20.4.1;10.20.4.9", "berth.dev/when-deleted": "Retain" };
      await cluster.patch(STATEFULSETS, "moves", { spec: { template: { metadata: { annotations } } } });
      const whenDeleted = async () => (await cluster.claim("moves-0"))?.record.retention.whenDeleted;
      await eventually("the retention", async () => ((await whenDeleted()) === "Retain" ? true : undefined));
      await cluster.holds("moves-", { "moves-0": "10.20.4.1", "moves-1": "10.20.4.2" });
      await cluster.tells("moves", ["Normal ClaimChanged"]);
      const notice = cluster.note("moves");
      assert.match(
        notice?.note ?? "",
        /^pod moves-1: claim shop\/moves-1 holds 10\.20\.4\.2, and the request is now for 10\.20\.4\.9; it changes when /,
      );
      await cluster.sound();
    });

    it("goes on with the others when one address is taken, says so, and takes it when it is free", async () => {
      const identity = { kind: "Pod", apiVersion: "v1", name: "squatter" };
      const wanted = claimRecord({
        name: "squatter",
        identity,
        request: { pools: ["db"] },
        addresses: [],
        nonce: "",
      });
      const podIdentity = { kind: "named", claim: "squatter", identity } as const;
      const request = { ...wanted, request: { addresses: claimRecord().addresses } };
      const allocation = requestForClaim(applicantOf({ podIdentity }), request);
      const squatter = granted(await reserve(cluster.context, allocation, "pod")).claim;
      const [address] = squatter.record.addresses;
      assert.equal(address, "10.20.0.70");
      cluster.start(startWorkloads);
      const list = { [IPS]: "10.20.5.1;10.20.0.70;10.20.5.3" };
      await cluster.applySet("blocked", { replicas: 3, annotations: list });
      await cluster.holds("blocked-", { "blocked-0": "10.20.5.1", "blocked-2": "10.20.5.3" });
      await cluster.tells("blocked", ["Warning AddressTaken"]);
      const notice = cluster.note("blocked");
      assert.match(
        notice?.note ?? "",
        /^pod blocked-1: address 10\.20\.0\.70 in pool "db" is held by shop\/squatter \(Pod squatter\)/,
      );
      assert.equal(notice?.regarding.kind, "StatefulSet");
      assert.equal(await release(cluster.context, squatter), "released");
      await cluster.holds("blocked-", {
        "blocked-0": "10.20.5.1",
        "blocked-1": "10.20.0.70",
        "blocked-2": "10.20.5.3",
      });
      await cluster.sound();
    });

    it("says in one event how many of its pods lack an entry of the list", async () => {
      cluster.start(startWorkloads);
      await cluster.applySet("short", { replicas: 3, annotations: { [IPS]: "10.20.6.1" } });
      await cluster.holds("short-", { "short-0": "10.20.6.1" });
      await eventually("the event", () => (cluster.told("short").length > 0 ? true : undefined));
      const notice = cluster.note("short");
      assert.match(
        notice?.note ?? "",
        /^2 pods cannot have their addresses now; the first, pod short-1: the list has 1 entry, for ordinals 0 to 0/,
      );
      assert.equal(notice?.reason, "ListTooShort");
    });

    it("does nothing while another replica leads, and everything once it leads itself", async () => {
      const leadership = new SwitchedLeadership();
      cluster.start(startWorkloads, { leadership });
      await cluster.applySet("later", { replicas: 2, annotations: { [IPS]: "10.20.7.1;10.20.7.2" } });
      await eventually("it is seen", () => seesWorkload(cluster, "later"));
      assert.deepEqual(await cluster.holdings("later-"), {});
      leadership.set(true);
      await cluster.holds("later-", { "later-0": "10.20.7.1", "later-1": "10.20.7.2" });
    });

    it("makes one claim for each ordinal when two believe that they lead", async () => {
      for (let n = 0; n < 2; n++) {
        const own = { random: new SeededRandom(n), serial: new KeyedMutex() };
        cluster.start(startWorkloads, { context: { ...cluster.context, ...own } });
      }
      await cluster.applySet("twice", { replicas: 20, annotations: { "berth.dev/pools": "db" } });
      await eventually("20 claims", async () =>
        Object.keys(await cluster.holdings("twice-")).length === 20 ? true : undefined,
      );
      await cluster.endAll();
      await cluster.collectAt(0, 2);
      await cluster.sound();
      const held = (await cluster.all("reservation")).filter(({ record }) =>
        record.claim.name.startsWith("twice-"),
      );
      assert.equal(held.filter(({ record }) => record.releasedAt === undefined).length, 40);
    });

    it("converges when it was killed before or after any write, and leaks nothing", async (t) => {
      for (const death of drawn(t, deathsAt([1, 2, 3, 4, 5, 6]), 4))
        await crash(cluster, `crash-${death.failure}-${death.at}`, death);
      await cluster.collectAt(0, 3);
      await cluster.sound();
    });
  });
}

/** Two ordinals of both families: three writes each. */
async function crash(
  cluster: ControllersCluster,
  name: string,
  { at, failure }: { at: number; failure: Failure },
): Promise<void> {
  const store = new FailingStore(cluster.store, at, failure);
  cluster.start(startWorkloads, { context: { ...cluster.context, store } });
  await cluster.applySet(name, { replicas: 2, annotations: { "berth.dev/pools": "db" } });
  await eventually("it dies", () => (store.died ? true : undefined));
  await cluster.endAll();
  cluster.start(startWorkloads);
  const claims = await eventually("both claims", async () => {
    const holdings = Object.values(await cluster.holdings(`${name}-`));
    return holdings.length === 2 ? holdings : undefined;
  });
  for (const addresses of claims) assert.match(addresses, /^10\.20\.\d+\.\d+,fd00:20::/);
  await cluster.endAll();
}
