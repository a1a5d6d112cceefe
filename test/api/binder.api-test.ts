// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { inParallel } from "../../allocator/base/parallel.ts";
import { NODE_GRACE_MS } from "../../allocator/model/cluster-state.ts";
import { eventually } from "../support/eventually.ts";
import { addrs } from "../support/fixtures.ts";
import { isFull } from "../support/runs.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { NAMESPACE } from "./binder-cluster.ts";
import { BinderSuite, busy } from "./binder-suite.ts";
import { type RequestCounts, requestCounts, requestsBetween, settledCounts } from "./request-counts.ts";

const TOKEN = "tokenofapodthatthereisnone";
const MANY = isFull ? 200 : 40;

if (havePartsOrSkip(["etcd", "kube-apiserver", "kubectl"])) {
  describe("the binder, beside a real API server", () => {
    const suite = new BinderSuite();
    const { binder, told, placed, reported, settled, overtaken } = suite;

    it("binds a claim to the pod of its name with one read and one write, and says so on the pod", async () => {
      await binder();
      const claim = await suite.cluster.claim("plain", "10.20.1.1");
      const start = await settledCounts(suite.cluster.connection);
      const { uid } = await suite.cluster.run("plain", "node-a", claim);
      await told("plain", "Normal AddressBound: claim shop/plain (10.20.1.1) is bound to node-a");
      const end = await requestCounts(suite.cluster.connection);
      assert.deepEqual(spent(start, end), ONE_BINDING);
      const { binding } = await suite.cluster.read("plain");
      assert.deepEqual([binding?.podUID, binding?.podName, binding?.node], [uid, "plain", "node-a"]);
      const described = await suite.plane.kubectl(["describe", "pod", "-n", NAMESPACE, "plain"]);
      assert.match(
        described.stdout,
        /Normal +AddressBound .*claim shop\/plain \(10\.20\.1\.1\) is bound to node-a/,
      );
    });

    it("binds a claim with both its addresses", async () => {
      await binder();
      await placed("dual", "node-a", await suite.cluster.claim("dual", "10.20.1.2,fd00:20::2"));
      await told("dual", "Normal AddressBound: claim shop/dual (10.20.1.2, fd00:20::2) is bound to node-a");
    });

    it("keeps the hold for a pod with a generated name that is scheduled late", async () => {
      const replica = await binder();
      const claim = await suite.cluster.hold("slowslowslowslowslowslowsl", "10.20.1.3");
      const { name, uid } = await suite.cluster.pod({ generateName: "etl-" }, claim);
      await eventually("the claim is bound to the pod", async () => {
        replica.clock.skip(1_000);
        return (await suite.cluster.read(claim.record.name)).binding?.podUID === uid || undefined;
      });
      const { binding } = await suite.cluster.read(claim.record.name);
      assert.deepEqual(
        [binding?.podName, binding?.node, binding?.token],
        [name, "", claim.record.binding?.token],
      );
      replica.clock.skip(600_000);
      await suite.cluster.schedule(name, "node-a");
      await suite.cluster.bound(claim.record.name, uid, "node-a");
    });

    it("says in the hold of an entry which pod it was for, when that has gone or ended before it was met", async () => {
      await binder();
      for (const [token, leave] of [
        ["gonegonegonegonegonegonego", (name: string) => suite.cluster.forceDelete(name)],
        ["overoveroveroveroveroverov", (name: string) => suite.cluster.end(name)],
      ] as const) {
        const claim = await suite.cluster.slot(token, "10.20.1.40");
        const { name, uid } = await suite.cluster.pod({ generateName: "web-" }, claim);
        await overtaken(`after-${token}`, token.startsWith("gone") ? "10.20.1.41" : "10.20.1.42");
        await leave(name);
        await eventually("the pod stands in the hold", async () => {
          const { binding } = await suite.cluster.read("web-slot-0");
          return (binding?.podUID === uid && binding.node === "") || undefined;
        });
        assert.equal((await suite.cluster.read("web-slot-0")).binding?.token, token);
        const stored = await suite.cluster.store.get("claim", "shop/web-slot-0");
        await suite.cluster.store.remove("claim", stored ?? assert.fail());
        const held = await suite.cluster.store.get("reservation", "10.20.1.40");
        await suite.cluster.store.remove("reservation", held ?? assert.fail());
      }
    });

    it("writes once for a pod with a generated name that is scheduled soon", async () => {
      await binder();
      const claim = await suite.cluster.hold("soonsoonsoonsoonsoonsoonso", "10.20.1.4");
      const { name, uid } = await suite.cluster.pod({ generateName: "etl-" }, claim);
      await overtaken("after-soon", "10.20.1.5");
      await suite.cluster.schedule(name, "node-a");
      await suite.cluster.bound(claim.record.name, uid, "node-a");
      assert.equal(await suite.cluster.generation(claim.record.name), 2);
    });

    it("binds a claim that comes after its pod", async () => {
      const replica = await binder();
      const token = "lagslagslagslagslagslagsla";
      const { record } = await suite.cluster.claim("before-lags", "10.20.1.27");
      const binding = { ...NOBODYS, token };
      const reported = {
        record: { ...record, name: `c-${token.slice(0, 12)}`, addresses: addrs("10.20.1.28"), binding },
      };
      const { uid } = await suite.cluster.run("lags", "node-a", reported);
      await settled(replica);
      const claim = await suite.cluster.hold(token, "10.20.1.28");
      await suite.cluster.bound(claim.record.name, uid, "node-a");
    });

    it("writes once, however late it hears of what it wrote", async () => {
      await binder({ lagMs: 400 });
      const claim = await suite.cluster.claim("echo", "10.20.1.29");
      const start = await settledCounts(suite.cluster.connection);
      await suite.cluster.run("echo", "node-a", claim);
      await told("echo", "Normal AddressBound: claim shop/echo (10.20.1.29) is bound to node-a");
      await suite.cluster.touch("echo");
      await pause(500);
      assert.deepEqual(spent(start, await requestCounts(suite.cluster.connection)), ONE_BINDING);
    });

    it("moves the claim at once to the next pod on the same node", async () => {
      await binder();
      const claim = await suite.cluster.claim("same", "10.20.1.6");
      const first = await placed("same", "node-a", claim);
      await suite.cluster.report("same", first.uid, false);
      await suite.cluster.forceDelete("same");
      await placed("same", "node-a", claim);
    });

    it("moves it to another node when the agent has reported, be it before the next pod comes or after", async () => {
      const replica = await binder();
      const claim = await suite.cluster.claim("moved", "10.20.1.7");
      const first = await placed("moved", "node-a", claim);
      await suite.cluster.report("moved", first.uid, false);
      await suite.cluster.forceDelete("moved");
      await suite.cluster.report("moved", first.uid, true);
      const second = await placed("moved", "node-b", claim);

      await suite.cluster.report("moved", second.uid, false);
      await suite.cluster.forceDelete("moved"); // and its sandbox may live on
      const third = await suite.cluster.run("moved", "node-c", claim);
      await reported(replica, "moved", busy(claim, "node-b"));
      await settled(replica);
      await overtaken("after-moved", "10.20.1.8");
      assert.equal((await suite.cluster.read("moved")).binding?.podUID, second.uid);
      await suite.cluster.report("moved", second.uid, true);
      await suite.cluster.bound("moved", third.uid, "node-c");
      const warnings = (await suite.cluster.events("moved")).filter((event) => event.startsWith("Warning"));
      assert.deepEqual(warnings, [busy(claim, "node-b")]);
    });

    it("moves it when the node is deleted and its grace is over", async () => {
      const replica = await binder();
      await suite.cluster.node("node-gone");
      const claim = await suite.cluster.claim("orphaned", "10.20.1.9");
      const first = await placed("orphaned", "node-gone", claim);
      await suite.cluster.forceDelete("orphaned");
      const next = await suite.cluster.run("orphaned", "node-b", claim);
      await reported(replica, "orphaned", busy(claim, "node-gone"));
      await suite.cluster.deleteNode("node-gone");
      replica.clock.skip(NODE_GRACE_MS - 1_000);
      await overtaken("after-orphaned", "10.20.1.10");
      assert.equal((await suite.cluster.read("orphaned")).binding?.podUID, first.uid);
      await eventually("the grace is over", async () => {
        replica.clock.skip(6_000);
        return (await suite.cluster.read("orphaned")).binding?.podUID === next.uid || undefined;
      });
    });

    it("moves it at once when the node is tainted out-of-service, and a late report changes nothing", async () => {
      const replica = await binder();
      await suite.cluster.node("node-down");
      const claim = await suite.cluster.claim("fenced", "10.20.1.11");
      const first = await placed("fenced", "node-down", claim);
      await suite.cluster.forceDelete("fenced");
      const second = await suite.cluster.run("fenced", "node-b", claim);
      await settled(replica);
      await overtaken("before-fenced", "10.20.1.12");
      assert.equal((await suite.cluster.read("fenced")).binding?.podUID, first.uid);
      await suite.cluster.taint("node-down");
      await suite.cluster.bound("fenced", second.uid, "node-b");

      await suite.cluster.report("fenced", first.uid, true); // the node is back, and says what it had to say
      await suite.cluster.forceDelete("fenced");
      await suite.cluster.run("fenced", "node-c", claim);
      await reported(replica, "fenced", busy(claim, "node-b"));
      assert.equal((await suite.cluster.read("fenced")).binding?.podUID, second.uid);
    });

    it("gives a copy of a pod's token nothing while the pod is there", async () => {
      const replica = await binder();
      const claim = await suite.cluster.hold("copycopycopycopycopycopyco", "10.20.1.13");
      const first = await placed("original", "node-a", claim);
      const copy = await suite.cluster.run("copy", "node-a", claim);
      await reported(
        replica,
        "copy",
        `Warning ClaimBusy: claim ${claim.key} (10.20.1.13) is bound to pod original on node node-a, which is still there; it moves when that pod is gone`,
      );
      await settled(replica);
      assert.equal((await suite.cluster.read(claim.record.name)).binding?.podUID, first.uid);
      await suite.cluster.forceDelete("original");
      await suite.cluster.bound(claim.record.name, copy.uid, "node-a");
    });

    it("leaves pods alone that have ended, or are being deleted, and says when a claim is not theirs", async () => {
      const names = ["ended", "deleted"];
      for (const [i, name] of names.entries()) {
        await suite.cluster.run(name, "node-a", await suite.cluster.claim(name, `10.20.1.${20 + i}`));
      }
      await suite.cluster.end("ended");
      await suite.cluster.deleteSlowly("deleted");
      const claim = await suite.cluster.hold("lostlostlostlostlostlostlo", "10.20.1.22");
      const stolen = { ...claim, record: { ...claim.record, binding: { ...NOBODYS, token: TOKEN } } };
      await suite.cluster.run("late", "node-a", stolen);
      const replica = await binder();
      await overtaken("after-ended", "10.20.1.23");
      for (const name of names) assert.equal((await suite.cluster.read(name)).binding, undefined, name);
      await reported(
        replica,
        "late",
        `Warning ClaimMissing: claim ${claim.key}, with which pod late was admitted, is gone or kept for another pod by now; delete the pod and create it again`,
      );
      assert.deepEqual((await suite.cluster.read(claim.record.name)).binding, claim.record.binding);
    });

    it("is done by a replica that does not lead after 2 s, and by none before", async () => {
      const replica = await binder({ leads: false });
      for (let attempt = 0; ; attempt++) {
        const name = `unled-${attempt}`;
        const claim = await suite.cluster.claim(name, `10.20.3.${1 + attempt}`);
        const stored = () => suite.cluster.store.get("claim", claim.key);
        const before = await stored();
        // the replica may see the pod before its maker has the answer
        const since = replica.clock.monotonic();
        const { uid } = await suite.cluster.run(name, "node-a", claim);
        await pause(300); // longer than the leader would take
        replica.clock.skip(1_000);
        await pause(100);
        const [after, events] = [await stored(), await suite.cluster.events(name)];
        // on a slow machine the 2 s may be over by now, which says nothing
        const isEarly = replica.clock.monotonic() - since < 1_900;
        if (isEarly) assert.deepEqual([after, events], [before, []]);
        replica.clock.skip(1_000);
        await suite.cluster.bound(name, uid, "node-a");
        if (isEarly) return;
        assert.ok(attempt < 20, "the machine is too slow to look within two seconds");
      }
    });

    it("binds each of many pods once, with two replicas at it, and not again after a restart", async () => {
      await Promise.all([binder(), binder()]);
      const names = Array.from({ length: MANY }, (_, i) => `many-${i}`);
      const uids = new Map<string, string>(); // pod -> uid
      await inParallel(names, 20, async (name) => {
        const n = Number(name.slice("many-".length));
        const claim = await suite.cluster.claim(name, `10.20.2.${n + 1}`);
        const { uid } = await suite.cluster.run(name, `node-${"abc".charAt(n % 3)}`, claim);
        uids.set(name, uid);
      });
      await inParallel(names, 20, async (name) => {
        const n = Number(name.slice("many-".length));
        await suite.cluster.bound(name, uids.get(name) ?? "", `node-${"abc".charAt(n % 3)}`);
        assert.equal(await suite.cluster.generation(name), 2, `${name} was written once`);
      });
      await Promise.all(suite.replicas.splice(0).map((replica) => replica.close()));

      await suite.cluster.run("unbound", "node-a", await suite.cluster.claim("unbound", "10.20.1.26"));
      const start = await settledCounts(suite.cluster.connection);
      await binder();
      await told("unbound", "Normal AddressBound: claim shop/unbound (10.20.1.26) is bound to node-a");
      assert.deepEqual(spent(start, await requestCounts(suite.cluster.connection)), ONE_BINDING);
    });

    it("binds what it could not while the API server was away, and makes no fuss about it", async () => {
      const replica = await binder({ leads: false });
      const { uid } = await suite.cluster.run(
        "away",
        "node-a",
        await suite.cluster.claim("away", "10.20.1.30"),
      );
      await pause(300); // it has seen the pod, and waits for a leader
      await suite.plane.apiServer.stop("SIGKILL");
      for (let i = 0; i < 5; i++) {
        replica.clock.skip(3_000);
        await pause(100);
      }
      await suite.plane.start();
      await eventually("the pod is bound", async () => {
        replica.clock.skip(5_000);
        return (await suite.cluster.read("away")).binding?.podUID === uid || undefined;
      });
      const said = ["Normal AddressBound: claim shop/away (10.20.1.30) is bound to node-a"];
      await eventually("the event", async () => (await suite.cluster.events("away")).length > 0 || undefined);
      assert.deepEqual(await suite.cluster.events("away"), said);
    });
  });
}

const ONE_BINDING = { "GET ipreservations": 1, "PATCH ipclaims": 1, "POST events": 1 };
const NOBODYS = { podName: "", podUID: "", node: "", since: 0 };

/** The binder's own calls meanwhile. */
function spent(...between: [RequestCounts, RequestCounts]): Record<string, number> {
  const resources = ["ipclaims", "ipreservations", "nodes", "events"];
  return requestsBetween(between, resources, ["GET", "POST", "PUT", "PATCH", "DELETE"]);
}
