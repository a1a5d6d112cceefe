// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { after, afterEach, before, describe, it } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { NODE_GRACE_MS } from "../../allocator/model/cluster-state.ts";
import type { Stored } from "../../allocator/store/store.ts";
import { eventually } from "../support/eventually.ts";
import { addrs } from "../support/fixtures.ts";
import { isFull } from "../support/runs.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { BinderCluster, NAMESPACE, type Replica, type ReplicaOptions } from "./binder-cluster.ts";
import { type RequestCounts, requestCounts, settledCounts } from "./request-counts.ts";
import { openControlPlane, type StoppablePlane } from "./shared-plane.ts";

const TOKEN = "tokenofapodthatthereisnone";
const MANY = isFull ? 200 : 40;

if (havePartsOrSkip(["etcd", "kube-apiserver", "kubectl"])) {
  describe("the binder, beside a real API server", () => {
    let plane: StoppablePlane;
    let cluster: BinderCluster;
    const replicas: Replica[] = [];
    before(async () => {
      plane = await openControlPlane();
      cluster = await BinderCluster.open(plane);
      for (const node of ["node-a", "node-b", "node-c"]) await cluster.node(node);
    });
    afterEach(async () => {
      await Promise.all(replicas.splice(0).map((replica) => replica.close()));
      await cluster.forceDeleteAll(); // the next test's binder would see to those that still wait
    });
    after(async () => {
      await cluster?.close();
      await plane?.close();
    });

    const binder = async (options: ReplicaOptions = {}): Promise<Replica> => {
      const replica = await cluster.replica(options);
      replicas.push(replica);
      return replica;
    };
    /** Lets time pass until the event is there. */
    const reported = async (replica: Replica, pod: string, event: string): Promise<void> => {
      await eventually(`${event} on ${pod}`, async () => {
        replica.clock.skip(1_000);
        return (await cluster.events(pod)).includes(event) || undefined;
      });
    };
    /** Until whoever waits looks again after 15 s at the earliest, unless something wakes it. */
    const settled = async (replica: Replica): Promise<void> => {
      for (let i = 0; i < 8; i++) {
        replica.clock.skip(30_000);
        await pause(20);
      }
    };
    /** Everything that came before was looked at when this pod, which nothing keeps from its claim, is bound. */
    const overtaken = async (name: string, address: string): Promise<void> => {
      const { uid } = await cluster.run(name, "node-c", await cluster.claim(name, address));
      await cluster.bound(name, uid, "node-c");
    };
    const busy = ({ key, record: { name, addresses } }: Stored<"claim">, node: string) =>
      `Warning ClaimBusy: claim ${key} (${addresses.join()}) is still bound to pod ${name} on node ${node}, whose sandbox was not seen to end; ` +
      "it moves when that node's agent reports, the node is deleted, or it is tainted out-of-service or annotated berth.dev/fenced=true";

    it("binds a claim to the pod of its name with one read and one write, and says so on the pod", async () => {
      await binder();
      const claim = await cluster.claim("plain", "10.20.1.1");
      const start = await settledCounts(cluster.connection);
      const { uid } = await cluster.run("plain", "node-a", claim);
      const said = "Normal AddressBound: claim shop/plain (10.20.1.1) is bound to node-a";
      await eventually(said, async () => (await cluster.events("plain")).includes(said) || undefined);
      const end = await requestCounts(cluster.connection);
      assert.deepEqual(spent(start, end), ONE_BINDING);
      const { binding } = await cluster.read("plain");
      assert.deepEqual([binding?.podUID, binding?.podName, binding?.node], [uid, "plain", "node-a"]);
      const described = await plane.kubectl(["describe", "pod", "-n", NAMESPACE, "plain"]);
      assert.match(
        described.stdout,
        /Normal +AddressBound .*claim shop\/plain \(10\.20\.1\.1\) is bound to node-a/,
      );
    });

    it("binds a claim with both its addresses", async () => {
      await binder();
      const { uid } = await cluster.run(
        "dual",
        "node-a",
        await cluster.claim("dual", "10.20.1.2,fd00:20::2"),
      );
      await cluster.bound("dual", uid, "node-a");
      const said = "Normal AddressBound: claim shop/dual (10.20.1.2, fd00:20::2) is bound to node-a";
      await eventually(said, async () => (await cluster.events("dual")).includes(said) || undefined);
    });

    it("keeps the hold for a pod with a generated name that is scheduled late", async () => {
      const replica = await binder();
      const claim = await cluster.hold("slowslowslowslowslowslowsl", "10.20.1.3");
      const { name, uid } = await cluster.pod({ generateName: "etl-" }, claim);
      await eventually("the claim is bound to the pod", async () => {
        replica.clock.skip(1_000);
        return (await cluster.read(claim.record.name)).binding?.podUID === uid || undefined;
      });
      const { binding } = await cluster.read(claim.record.name);
      assert.deepEqual(
        [binding?.podName, binding?.node, binding?.token],
        [name, "", claim.record.binding?.token],
      );
      replica.clock.skip(600_000);
      await cluster.schedule(name, "node-a");
      await cluster.bound(claim.record.name, uid, "node-a");
    });

    it("says in the hold of an entry which pod it was for, when that has gone or ended before it was met", async () => {
      await binder();
      for (const [token, leave] of [
        ["gonegonegonegonegonegonego", (name: string) => cluster.forceDelete(name)],
        ["overoveroveroveroveroverov", (name: string) => cluster.end(name)],
      ] as const) {
        const claim = await cluster.slot(token, "10.20.1.40");
        const { name, uid } = await cluster.pod({ generateName: "web-" }, claim);
        await overtaken(`after-${token}`, token.startsWith("gone") ? "10.20.1.41" : "10.20.1.42");
        await leave(name);
        await eventually("the pod stands in the hold", async () => {
          const { binding } = await cluster.read("web-slot-0");
          return (binding?.podUID === uid && binding.node === "") || undefined;
        });
        assert.equal((await cluster.read("web-slot-0")).binding?.token, token);
        const stored = await cluster.store.get("claim", "shop/web-slot-0");
        await cluster.store.remove("claim", stored ?? assert.fail());
        const held = await cluster.store.get("reservation", "10.20.1.40");
        await cluster.store.remove("reservation", held ?? assert.fail());
      }
    });

    it("writes once for a pod with a generated name that is scheduled soon", async () => {
      await binder();
      const claim = await cluster.hold("soonsoonsoonsoonsoonsoonso", "10.20.1.4");
      const { name, uid } = await cluster.pod({ generateName: "etl-" }, claim);
      await overtaken("after-soon", "10.20.1.5");
      await cluster.schedule(name, "node-a");
      await cluster.bound(claim.record.name, uid, "node-a");
      assert.equal(await cluster.generation(claim.record.name), 2);
    });

    it("binds a claim that comes after its pod", async () => {
      const replica = await binder();
      const token = "lagslagslagslagslagslagsla";
      const { record } = await cluster.claim("before-lags", "10.20.1.27");
      const binding = { ...NOBODYS, token };
      const reported = {
        record: { ...record, name: `c-${token.slice(0, 12)}`, addresses: addrs("10.20.1.28"), binding },
      };
      const { uid } = await cluster.run("lags", "node-a", reported);
      await settled(replica);
      const claim = await cluster.hold(token, "10.20.1.28");
      await cluster.bound(claim.record.name, uid, "node-a");
    });

    it("writes once, however late it hears of what it wrote", async () => {
      await binder({ lagMs: 400 });
      const claim = await cluster.claim("echo", "10.20.1.29");
      const start = await settledCounts(cluster.connection);
      await cluster.run("echo", "node-a", claim);
      const said = "Normal AddressBound: claim shop/echo (10.20.1.29) is bound to node-a";
      await eventually(said, async () => (await cluster.events("echo")).includes(said) || undefined);
      await cluster.touch("echo");
      await pause(500);
      assert.deepEqual(spent(start, await requestCounts(cluster.connection)), ONE_BINDING);
    });

    it("moves the claim at once to the next pod on the same node", async () => {
      await binder();
      const claim = await cluster.claim("same", "10.20.1.6");
      const first = await cluster.run("same", "node-a", claim);
      await cluster.bound("same", first.uid, "node-a");
      await cluster.report("same", first.uid, false);
      await cluster.forceDelete("same");
      const next = await cluster.run("same", "node-a", claim);
      await cluster.bound("same", next.uid, "node-a");
    });

    it("moves it to another node when the agent has reported, be it before the next pod comes or after", async () => {
      const replica = await binder();
      const claim = await cluster.claim("moved", "10.20.1.7");
      const first = await cluster.run("moved", "node-a", claim);
      await cluster.bound("moved", first.uid, "node-a");
      await cluster.report("moved", first.uid, false);
      await cluster.forceDelete("moved");
      await cluster.report("moved", first.uid, true);
      const second = await cluster.run("moved", "node-b", claim);
      await cluster.bound("moved", second.uid, "node-b");

      await cluster.report("moved", second.uid, false);
      await cluster.forceDelete("moved"); // and its sandbox may live on
      const third = await cluster.run("moved", "node-c", claim);
      await reported(replica, "moved", busy(claim, "node-b"));
      await settled(replica);
      await overtaken("after-moved", "10.20.1.8");
      assert.equal((await cluster.read("moved")).binding?.podUID, second.uid);
      await cluster.report("moved", second.uid, true);
      await cluster.bound("moved", third.uid, "node-c");
      const warnings = (await cluster.events("moved")).filter((event) => event.startsWith("Warning"));
      assert.deepEqual(warnings, [busy(claim, "node-b")]);
    });

    it("moves it when the node is deleted and its grace is over", async () => {
      const replica = await binder();
      await cluster.node("node-gone");
      const claim = await cluster.claim("orphaned", "10.20.1.9");
      const first = await cluster.run("orphaned", "node-gone", claim);
      await cluster.bound("orphaned", first.uid, "node-gone");
      await cluster.forceDelete("orphaned");
      const next = await cluster.run("orphaned", "node-b", claim);
      await reported(replica, "orphaned", busy(claim, "node-gone"));
      await cluster.deleteNode("node-gone");
      replica.clock.skip(NODE_GRACE_MS - 1_000);
      await overtaken("after-orphaned", "10.20.1.10");
      assert.equal((await cluster.read("orphaned")).binding?.podUID, first.uid);
      await eventually("the grace is over", async () => {
        replica.clock.skip(6_000);
        return (await cluster.read("orphaned")).binding?.podUID === next.uid || undefined;
      });
    });

    it("moves it at once when the node is tainted out-of-service, and a late report changes nothing", async () => {
      const replica = await binder();
      await cluster.node("node-down");
      const claim = await cluster.claim("fenced", "10.20.1.11");
      const first = await cluster.run("fenced", "node-down", claim);
      await cluster.bound("fenced", first.uid, "node-down");
      await cluster.forceDelete("fenced");
      const second = await cluster.run("fenced", "node-b", claim);
      await settled(replica);
      await overtaken("before-fenced", "10.20.1.12");
      assert.equal((await cluster.read("fenced")).binding?.podUID, first.uid);
      await cluster.taint("node-down");
      await cluster.bound("fenced", second.uid, "node-b");

      await cluster.report("fenced", first.uid, true); // the node is back, and says what it had to say
      await cluster.forceDelete("fenced");
      await cluster.run("fenced", "node-c", claim);
      await reported(replica, "fenced", busy(claim, "node-b"));
      assert.equal((await cluster.read("fenced")).binding?.podUID, second.uid);
    });

    it("gives a copy of a pod's token nothing while the pod is there", async () => {
      const replica = await binder();
      const claim = await cluster.hold("copycopycopycopycopycopyco", "10.20.1.13");
      const first = await cluster.run("original", "node-a", claim);
      await cluster.bound(claim.record.name, first.uid, "node-a");
      const copy = await cluster.run("copy", "node-a", claim);
      await reported(
        replica,
        "copy",
        `Warning ClaimBusy: claim ${claim.key} (10.20.1.13) is bound to pod original on node node-a, which is still there; it moves when that pod is gone`,
      );
      await settled(replica);
      assert.equal((await cluster.read(claim.record.name)).binding?.podUID, first.uid);
      await cluster.forceDelete("original");
      await cluster.bound(claim.record.name, copy.uid, "node-a");
    });

    it("leaves pods alone that have ended, or are being deleted, and says when a claim is not theirs", async () => {
      const names = ["ended", "deleted"];
      for (const [i, name] of names.entries()) {
        await cluster.run(name, "node-a", await cluster.claim(name, `10.20.1.${20 + i}`));
      }
      await cluster.end("ended");
      await cluster.deleteSlowly("deleted");
      const claim = await cluster.hold("lostlostlostlostlostlostlo", "10.20.1.22");
      const stolen = { ...claim, record: { ...claim.record, binding: { ...NOBODYS, token: TOKEN } } };
      await cluster.run("late", "node-a", stolen);
      const replica = await binder();
      await overtaken("after-ended", "10.20.1.23");
      for (const name of names) assert.equal((await cluster.read(name)).binding, undefined, name);
      await reported(
        replica,
        "late",
        `Warning ClaimMissing: claim ${claim.key}, with which pod late was admitted, is gone or kept for another pod by now; delete the pod and create it again`,
      );
      assert.deepEqual((await cluster.read(claim.record.name)).binding, claim.record.binding);
    });

    it("is done by a replica that does not lead after 2 s, and by none before", async () => {
      const replica = await binder({ leads: false });
      for (let attempt = 0; ; attempt++) {
        const name = `unled-${attempt}`;
        const claim = await cluster.claim(name, `10.20.3.${1 + attempt}`);
        const stored = () => cluster.store.get("claim", claim.key);
        const before = await stored();
        // the replica may see the pod before its maker has the answer
        const since = replica.clock.monotonic();
        const { uid } = await cluster.run(name, "node-a", claim);
        await pause(300); // longer than the leader would take
        replica.clock.skip(1_000);
        await pause(100);
        const [after, events] = [await stored(), await cluster.events(name)];
        // on a slow machine the 2 s may be over by now, which says nothing
        const isEarly = replica.clock.monotonic() - since < 1_900;
        if (isEarly) assert.deepEqual([after, events], [before, []]);
        replica.clock.skip(1_000);
        await cluster.bound(name, uid, "node-a");
        if (isEarly) return;
        assert.ok(attempt < 20, "the machine is too slow to look within two seconds");
      }
    });

    it("binds each of many pods once, with two replicas at it, and not again after a restart", async () => {
      await Promise.all([binder(), binder()]);
      const names = Array.from({ length: MANY }, (_, i) => `many-${i}`);
      const uids = new Map<string, string>(); // pod -> uid
      await inLots(names, 20, async (name) => {
        const n = Number(name.slice("many-".length));
        const claim = await cluster.claim(name, `10.20.2.${n + 1}`);
        const { uid } = await cluster.run(name, `node-${"abc".charAt(n % 3)}`, claim);
        uids.set(name, uid);
      });
      await inLots(names, 20, async (name) => {
        const n = Number(name.slice("many-".length));
        await cluster.bound(name, uids.get(name) ?? "", `node-${"abc".charAt(n % 3)}`);
        assert.equal(await cluster.generation(name), 2, `${name} was written once`);
      });
      await Promise.all(replicas.splice(0).map((replica) => replica.close()));

      await cluster.run("unbound", "node-a", await cluster.claim("unbound", "10.20.1.26"));
      const start = await settledCounts(cluster.connection);
      await binder();
      const said = "Normal AddressBound: claim shop/unbound (10.20.1.26) is bound to node-a";
      await eventually(said, async () => (await cluster.events("unbound")).includes(said) || undefined);
      assert.deepEqual(spent(start, await requestCounts(cluster.connection)), ONE_BINDING);
    });

    it("binds what it could not while the API server was away, and makes no fuss about it", async () => {
      const replica = await binder({ leads: false });
      const { uid } = await cluster.run("away", "node-a", await cluster.claim("away", "10.20.1.30"));
      await pause(300); // it has seen the pod, and waits for a leader
      await plane.apiServer.stop("SIGKILL");
      for (let i = 0; i < 5; i++) {
        replica.clock.skip(3_000);
        await pause(100);
      }
      await plane.start();
      await eventually("the pod is bound", async () => {
        replica.clock.skip(5_000);
        return (await cluster.read("away")).binding?.podUID === uid || undefined;
      });
      const said = ["Normal AddressBound: claim shop/away (10.20.1.30) is bound to node-a"];
      await eventually("the event", async () => (await cluster.events("away")).length > 0 || undefined);
      assert.deepEqual(await cluster.events("away"), said);
    });
  });
}

const ONE_BINDING = { "GET ipreservations": 1, "PATCH ipclaims": 1, "POST events": 1 };
const NOBODYS = { podName: "", podUID: "", node: "", since: 0 };

/** What the binder's own calls may be, those that were made: "VERB resource" -> how many. */
function spent(start: RequestCounts, end: RequestCounts): Record<string, number> {
  const calls: Record<string, number> = {};
  for (const resource of ["ipclaims", "ipreservations", "nodes", "events"]) {
    for (const verb of ["GET", "POST", "PUT", "PATCH", "DELETE"]) {
      const count = end({ resource, verb }) - start({ resource, verb });
      if (count > 0) calls[`${verb} ${resource}`] = count;
    }
  }
  return calls;
}

async function inLots<T>(all: readonly T[], size: number, work: (one: T) => Promise<void>): Promise<void> {
  for (let i = 0; i < all.length; i += size) await Promise.all(all.slice(i, i + size).map(work));
}
