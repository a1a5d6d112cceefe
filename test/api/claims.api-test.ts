// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { after, afterEach, before, describe, it } from "node:test";
import { KeyedMutex } from "../../allocator/base/keyed-mutex.ts";
import { requestFor, requestForClaim } from "../../allocator/demand/build-request.ts";
import { bind } from "../../allocator/lifecycle/bind.ts";
import { release } from "../../allocator/lifecycle/release.ts";
import { reserve } from "../../allocator/lifecycle/reserve.ts";
import { timeOf } from "../../allocator/store/kubernetes/crd-mapping.ts";
import type { Stored } from "../../allocator/store/store.ts";
import { CLAIMS, type KubeItem, POOLS } from "../../kube/api/resource.ts";
import { startClaims } from "../../webhook/controllers/claims/controller.ts";
import { conditionsOf, generationOf } from "../../webhook/controllers/conditions.ts";
import { eventually } from "../support/eventually.ts";
import { FailingStore } from "../support/failing-store.ts";
import { addr, addrs, applicantOf, attachmentOf, granted, poolRecord } from "../support/fixtures.ts";
import { SeededRandom } from "../support/random.ts";
import { deathsAt, drawn } from "../support/runs.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { ControllersCluster, NAMESPACE } from "./controllers-cluster.ts";
import { SwitchedLeadership } from "./replica-deps.ts";

const FREE = { fenced: false, holdExpired: true };

if (havePartsOrSkip(["etcd", "kube-apiserver", "kubectl"])) {
  describe("the claims controller on a real API server", () => {
    let cluster: ControllersCluster;
    before(async () => {
      cluster = await ControllersCluster.open();
      await cluster.makePool(poolRecord("db", ["10.20.0.0/16", "fd00:20::/64"]));
      await cluster.makePool(poolRecord("quick", "10.21.0.0/24", { cooldown: "0s" }));
    });
    after(() => cluster?.close());
    afterEach(() => cluster.endAll());

    const ready = (name: string, wanted = "True Reserved") =>
      cluster.condition(CLAIMS, name, `Ready=${wanted}`);

    /** As admission does for a pod of that name that asks for nothing itself, with the claim as it is seen now. */
    const admitPodOf = async (claim: Stored<"claim">) => {
      const identity = { kind: "Pod", apiVersion: "v1", name: claim.record.name };
      const podIdentity = { kind: "named", claim: claim.record.name, identity } as const;
      const allocation = requestForClaim(applicantOf({ podIdentity, now: Date.now() }), claim.record);
      return granted(await reserve(cluster.context, allocation, "pod"));
    };

    const reservationOf = async (address: string) =>
      (await cluster.store.get("reservation", address))?.record;

    it("reserves at once, says so in the status and by an event, and the pod of that name gets it", async () => {
      cluster.start(startClaims);
      await cluster.applyClaim("licence", { addresses: ["10.20.1.1", "fd00:20::1:1"] });
      const waited = await cluster.plane.kubectl([
        ...["wait", "ipclaim/licence", "-n", NAMESPACE],
        ...["--for=condition=Ready", "--timeout=10s"],
      ]);
      assert.equal(waited.stderr, "");
      const condition = await ready("licence");
      assert.equal(condition.message, "10.20.1.1 and fd00:20::1:1 are reserved");
      const item = await cluster.claimItem("licence");
      assert.equal(condition.observedGeneration, generationOf(item));
      assert.equal(statusOf(item)["message"], undefined);
      await cluster.tells("licence", ["Normal Reserved"]);
      const claim = await cluster.claim("licence");
      assert.ok(claim);
      const pod = await admitPodOf(claim);
      assert.equal(pod.claim.key, "shop/licence");
      assert.deepEqual(pod.claim.record.addresses, addrs("10.20.1.1", "fd00:20::1:1"));
      assert.equal(pod.claim.record.nonce, claim.record.nonce);
      await cluster.sound();
    });

    it("keeps the condition of the generation that is there, past bindings and reports of agents", async () => {
      cluster.start(startClaims);
      await cluster.applyClaim("bound", { pools: ["quick"] });
      const { lastTransitionTime } = await ready("bound");
      const target = { name: "bound", uid: "uid-of-bound", node: "node-a", token: "" };
      const bound = granted(await bind(cluster.context, "shop/bound", target, async () => FREE));
      const attached = { attachment: attachmentOf("bound") } as const;
      await eventually("the report", async () => {
        const seen = (await cluster.claim("bound")) ?? bound;
        return (await cluster.store.report(seen, attached)).kind === "replaced" ? true : undefined;
      });
      const item = await eventually("the generation is observed", async () => {
        const now = await cluster.claimItem("bound");
        return conditionsOf(now)[0]?.observedGeneration === generationOf(now) ? now : undefined;
      });
      assert.deepEqual(statusOf(item)["attachment"], {
        ...attached.attachment,
        since: timeOf(attached.attachment.since),
      });
      assert.deepEqual(
        conditionsOf(item).map(({ type, status }) => `${type}=${status}`),
        ["Ready=True"],
      );
      assert.equal(conditionsOf(item)[0]?.lastTransitionTime, lastTransitionTime);
      await cluster.tells("bound", ["Normal Reserved"]);
    });

    it("says why an address is not to be had, and takes it when it is given back", async () => {
      cluster.start(startClaims);
      await cluster.applyClaim("first", { addresses: ["10.21.0.10"] });
      await ready("first");
      await cluster.applyClaim("second", { addresses: ["10.21.0.10"] });
      const condition = await ready("second", "False AddressTaken");
      assert.match(
        condition.message,
        /^address 10\.21\.0\.10 in pool "quick" is held by shop\/first \(Pod first\); free nearby: /,
      );
      const item = await cluster.claimItem("second");
      assert.equal(statusOf(item)["message"], condition.message);
      await cluster.tells("second", ["Warning AddressTaken"]);
      const first = await cluster.claim("first");
      assert.ok(first);
      assert.equal(await release(cluster.context, first), "released");
      await ready("second");
      assert.equal(statusOf(await cluster.claimItem("second"))["message"], undefined);
      await cluster.tells("second", ["Warning AddressTaken", "Normal Reserved"]);
      assert.deepEqual((await cluster.claim("second"))?.record.addresses, addrs("10.21.0.10"));
    });

    it("says that no pool has the address, and takes it when one has", async () => {
      cluster.start(startClaims);
      await cluster.applyClaim("outside", { addresses: ["10.99.0.5"] });
      const condition = await ready("outside", "False AddressOutside");
      assert.match(condition.message, /10\.99\.0\.5/);
      await cluster.apply(POOLS, {
        metadata: { name: "late" },
        spec: { ranges: [{ cidr: "10.99.0.0/24" }] },
      });
      await ready("outside");
    });

    it("follows its author to another address while no pod has the claim, and not under a pod", async () => {
      cluster.start(startClaims);
      await cluster.applyClaim("moves", { addresses: ["10.20.2.1"] });
      await ready("moves");
      await cluster.applyClaim("moves", { addresses: ["10.20.2.2"] });
      await cluster.holds("moves", { moves: "10.20.2.2" });
      await eventually("the old one cools", async () => (await reservationOf("10.20.2.1"))?.releasedAt);
      await eventually("the condition", async () => {
        const [condition] = conditionsOf(await cluster.claimItem("moves"));
        return condition?.message === "10.20.2.2 is reserved" ? true : undefined;
      });
      const target = { name: "moves", uid: "uid-of-moves", node: "node-a", token: "" };
      granted(await bind(cluster.context, "shop/moves", target, async () => FREE));
      await cluster.caughtUp();
      await cluster.applyClaim("moves", { addresses: ["10.20.2.3"] });
      const condition = await ready("moves", "False ClaimChanged");
      assert.match(condition.message, /^claim shop\/moves holds 10\.20\.2\.2 and is in use by pod moves, /);
      assert.deepEqual((await cluster.claim("moves"))?.record.addresses, addrs("10.20.2.2"));
      assert.equal(await reservationOf("10.20.2.3"), undefined);
    });

    it("gives back at once what a claim held that is deleted by hand", async () => {
      cluster.start(startClaims);
      await cluster.applyClaim("gone", { addresses: ["10.20.3.1", "fd00:20::3:1"] });
      await ready("gone");
      await cluster.caughtUp();
      await cluster.deleteClaim("gone");
      for (const address of ["10.20.3.1", "fd00:20::3:1"]) {
        await eventually(`${address} cools`, async () => (await reservationOf(address))?.releasedAt);
        assert.equal((await reservationOf(address))?.marked, undefined);
      }
      await cluster.sound();
    });

    it("never frees the address of a claim that was made again under the same name", async () => {
      cluster.start(startClaims);
      for (let round = 0; round < 5; round++) {
        await cluster.applyClaim("again", { addresses: ["10.20.3.9"] });
        await ready("again");
        const { uid } = (await cluster.claimItem("again")).metadata;
        await cluster.caughtUp();
        await cluster.deleteClaim("again");
        await cluster.applyClaim("again", { addresses: ["10.20.3.9"] });
        await ready("again");
        const claim = await cluster.claim("again");
        assert.notEqual(claim?.uid, uid);
        const reservation = await reservationOf("10.20.3.9");
        assert.equal(reservation?.nonce, claim?.record.nonce);
        assert.equal(reservation?.releasedAt, undefined);
        await cluster.sound();
      }
    });

    it("leaves the address of a claim that a pod has alone when the claim is deleted past the webhook", async () => {
      cluster.start(startClaims);
      await cluster.applyClaim("used", { addresses: ["10.20.3.20"] });
      await ready("used");
      const target = { name: "used", uid: "uid-of-used", node: "node-a", token: "" };
      granted(await bind(cluster.context, "shop/used", target, async () => FREE));
      await cluster.caughtUp();
      await cluster.deleteClaim("used");
      // another one that is given back afterwards
      await cluster.applyClaim("marker", { addresses: ["10.20.3.21"] });
      await ready("marker");
      await cluster.caughtUp();
      await cluster.deleteClaim("marker");
      await eventually("the marker cools", async () => (await reservationOf("10.20.3.21"))?.releasedAt);
      assert.equal((await reservationOf("10.20.3.20"))?.releasedAt, undefined);
      await cluster.collectAt(0, 2);
    });

    it("writes nothing when nothing has changed, and leaves claims of Berth's own making alone", async () => {
      const identity = { kind: "Pod", apiVersion: "v1", name: "plain" };
      const podIdentity = { kind: "named", claim: "plain", identity } as const;
      const request = { entries: [[addr("10.20.4.1")]] };
      granted(
        await reserve(
          cluster.context,
          granted(requestFor(applicantOf({ podIdentity, request, now: Date.now() }))),
          "pod",
        ),
      );
      cluster.start(startClaims);
      await cluster.applyClaim("calm", { addresses: ["10.20.4.2"] });
      await ready("calm");
      await cluster.caughtUp();
      await cluster.endAll();
      const before = await cluster.claimItem("calm");
      cluster.start(startClaims);
      await cluster.applyClaim("marker-2", { addresses: ["10.20.4.3"] });
      await ready("marker-2");
      assert.deepEqual(await cluster.claimItem("calm"), before);
      assert.deepEqual(conditionsOf(await cluster.claimItem("plain")), []);
    });

    it("does nothing while another replica leads, and everything once it leads itself", async () => {
      const leadership = new SwitchedLeadership();
      cluster.start(startClaims, { leadership });
      await cluster.applyClaim("later", { addresses: ["10.20.5.1"] });
      await eventually("it is seen", () => cluster.replica.cache.claim("shop/later"));
      assert.equal((await cluster.claim("later"))?.record.nonce, "");
      leadership.set(true);
      await ready("later");
    });

    it("reserves once and says the same when two believe that they lead", async () => {
      for (let n = 0; n < 2; n++) {
        const own = { random: new SeededRandom(n), serial: new KeyedMutex() };
        cluster.start(startClaims, { context: { ...cluster.context, ...own } });
      }
      const names = Array.from({ length: 10 }, (_, n) => `twice-${n}`);
      for (const name of names) await cluster.applyClaim(name, { pools: ["db"] });
      for (const name of names) await ready(name);
      await cluster.caughtUp();
      for (const name of names.slice(5)) await cluster.deleteClaim(name);
      const held = async () =>
        (await cluster.all("reservation")).filter(
          ({ record }) => record.claim.name.startsWith("twice-") && record.releasedAt === undefined,
        ).length;
      await eventually("five are given back", async () => ((await held()) === 10 ? true : undefined));
      await cluster.endAll();
      await cluster.sound();
    });

    it("converges when it was killed before or after any write, and leaks nothing", async (t) => {
      const made: string[] = [];
      for (const { failure, at } of drawn(t, deathsAt([1, 2, 3]), 3)) {
        const name = `crash-${failure}-${at}`;
        const store = new FailingStore(cluster.store, at, failure);
        cluster.start(startClaims, { context: { ...cluster.context, store } });
        await cluster.applyClaim(name, { pools: ["db"] });
        await eventually("it dies", () => (store.died ? true : undefined));
        await cluster.endAll();
        cluster.start(startClaims);
        await ready(name);
        await cluster.endAll();
        made.push(name);
      }
      // a deletion: the reservation is marked, then it cools
      for (const { failure, at } of drawn(t, deathsAt([1, 2]), 2)) {
        const name = made.shift() ?? assert.fail("there is no claim left");
        await cluster.caughtUp();
        const store = new FailingStore(cluster.store, at, failure);
        cluster.start(startClaims, { context: { ...cluster.context, store } });
        await cluster.deleteClaim(name);
        await eventually("it dies", () => (store.died ? true : undefined));
        await cluster.endAll();
      }
      assert.deepEqual(Object.keys(await cluster.holdings("crash-")).toSorted(), made.toSorted());
      await cluster.collectAt(0, 3);
      await cluster.sound();
      const held = (await cluster.all("reservation")).filter(({ record }) =>
        record.claim.name.startsWith("crash-"),
      );
      assert.equal(held.length, 2 * made.length);
    });
  });
}

function statusOf(item: KubeItem): Readonly<Record<string, unknown>> {
  return (item as KubeItem & { readonly status?: Readonly<Record<string, unknown>> }).status ?? {};
}
