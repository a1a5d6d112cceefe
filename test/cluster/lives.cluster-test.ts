// SPDX-License-Identifier: Apache-2.0
// Pods that go and come back: with their addresses, and never two at a time with one.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { caseOptions, Times } from "./cases.ts";
import { Lab, type Running } from "./lab.ts";
import { deployment, pod, statefulSet } from "./objects.ts";
import { Sandboxes } from "./observer.ts";

/** An agent that has something to write of a sandbox does so in this time. */
const REPORTED_MS = 8_000;
const STICKY = { "berth.dev/sticky": "true", "berth.dev/pools": "lab", "berth.dev/families": "IPv4" };

let lab: Lab;
before(async () => {
  lab = await Lab.open("lives");
  await lab.apply([
    pod("single", { annotations: { "berth.dev/ips": "10.40.1.61" } }),
    statefulSet("db", { replicas: 3, annotations: STICKY }),
    deployment("gate", { replicas: 2, annotations: { "berth.dev/ips": "10.40.1.65-10.40.1.66" } }),
  ]);
  await Promise.all([lab.runs("app=db", 3), lab.runs("app=gate", 2), lab.runsAgain("single")]);
});
after(async () => await lab?.close());

const addresses = (pods: readonly Running[]) =>
  Object.fromEntries(pods.map((one) => [one.name, one.addresses]));

/** All pods of the set have gone and come back, with the addresses that they had. */
async function cameBack(label: string, were: readonly Running[]): Promise<readonly Running[]> {
  const old = new Set(were.map(({ uid }) => uid));
  const now = await lab.runs(label, were.length, (pods) => pods.every(({ uid }) => !old.has(uid)));
  assert.deepEqual(addresses(now), addresses(were));
  return now;
}

describe("lives", () => {
  it("E0521 a deleted pod of a StatefulSet comes back with its address", caseOptions(), async () => {
    const times = new Times("E0521");
    const [db0] = await lab.runs("app=db", 3);
    assert.ok(db0 !== undefined);
    await lab.must(["delete", "pod", db0.name, "--wait=false"]);
    const now = await lab.runsAgain(db0.name, db0.uid);
    times.step("back");
    assert.deepEqual(now.addresses, db0.addresses);
    await lab.pingAll(await lab.runs("app=db", 3));
    await lab.check();
    // containerd has its record of the sandbox, and the kubelet tells of the address: the agent has nothing to add
    await pause(REPORTED_MS);
    const told = await lab.must(["get", "ipclaim", db0.name, "-o", "jsonpath={.status.attachment}"]);
    const { detached, podUID } = JSON.parse(told) as { detached?: boolean; podUID?: string };
    assert.deepEqual({ detached, podUID }, { detached: true, podUID: db0.uid });
    const { stdout } = await lab.berthctl("get", "attachments", "-A");
    assert.match(stdout, new RegExp(`^\\S+ +${db0.name} +${db0.addresses[0]} `, "m"));
    times.end();
  });

  it(
    "E0522 a pod that is deleted by force comes back with its address once the old one has ended",
    caseOptions(),
    async () => {
      const times = new Times("E0522");
      const [db0] = await lab.runs("app=db", 3);
      assert.ok(db0 !== undefined);
      await lab.must(["delete", "pod", db0.name, "--force", "--grace-period=0"]);
      const now = await lab.runsAgain(db0.name, db0.uid);
      times.step("back");
      assert.deepEqual(now.addresses, db0.addresses);
      await lab.pingAll(await lab.runs("app=db", 3));
      await lab.check();
      times.end();
    },
  );

  it(
    "E0523 a pod whose sandbox is killed has its address in the next one",
    caseOptions({ machines: true }),
    async () => {
      const times = new Times("E0523");
      const were = await lab.runsAgain("single");
      const sandbox = new Sandboxes(lab.cluster.nodes).of(were.addresses[0] ?? "");
      assert.ok(sandbox !== undefined);
      const isAnother = new Sandboxes(lab.cluster.nodes).kill(sandbox);
      await lab.until("single has another sandbox", async () => {
        const next = new Sandboxes(lab.cluster.nodes).of(were.addresses[0] ?? "");
        return next !== undefined && isAnother(next);
      });
      // the sandbox is there before its container, and before kubectl hears of either
      await lab.until("single is reached, and reaches the others", async () => {
        return await lab.reachEachOther([...(await lab.running("app=db")), await lab.runsAgain("single")]);
      });
      const now = await lab.runsAgain("single");
      times.step("back");
      assert.deepEqual([now.uid, now.addresses], [were.uid, were.addresses]);
      await lab.check();
      times.end();
    },
  );

  it("E0524 a drained node's pods have their addresses on the other one", caseOptions(), async () => {
    const times = new Times("E0524");
    const were = await lab.runs("app=db", 3);
    const node = were[0]?.node ?? "";
    const flags = ["--ignore-daemonsets", "--force", "--delete-emptydir-data", "--timeout=120s"];
    await lab.must(["drain", node, "--pod-selector=app=db", ...flags]);
    try {
      const now = await lab.runs("app=db", 3, (pods) => pods.every((one) => one.node !== node));
      times.step("moved");
      assert.deepEqual(addresses(now), addresses(were));
      await lab.pingAll(now);
    } finally {
      await lab.must(["uncordon", node]);
    }
    await lab.check();
    times.end();
  });

  it(
    "E0525 a restarted kubelet and a restarted containerd change no address",
    caseOptions({ machines: true }),
    async () => {
      const times = new Times("E0525");
      const were = await lab.running();
      for (const node of lab.cluster.nodes) {
        await node.stop("kubelet");
        await node.stop("containerd");
        await lab.cluster.startDaemons(node.name);
      }
      times.step("restarted");
      const [db0] = await lab.runs("app=db", 3);
      assert.ok(db0 !== undefined);
      await lab.until("all run", async () => (await lab.running()).length === were.length);
      assert.deepEqual(addresses(await lab.running()), addresses(were));
      await lab.must(["delete", "pod", db0.name]);
      const now = await lab.runsAgain(db0.name, db0.uid);
      times.step("back");
      assert.deepEqual(now.addresses, db0.addresses);
      await lab.pingAll(await lab.runs("app=db", 3));
      await lab.check();
      times.end();
    },
  );

  it("E0526 a rolling update of a StatefulSet keeps every ordinal's address", caseOptions(), async () => {
    const times = new Times("E0526");
    const were = await lab.runs("app=db", 3);
    await lab.must(["rollout", "restart", "statefulset/db"]);
    const now = await cameBack("app=db", were);
    times.step("rolled");
    await lab.pingAll(now);
    await lab.check();
    times.end();
  });

  it(
    "E0527 scaled to nothing and back, a StatefulSet and a Deployment have the addresses that they had",
    caseOptions(),
    async () => {
      const times = new Times("E0527");
      const [db, gate] = await Promise.all([lab.runs("app=db", 3), lab.runs("app=gate", 2)]);
      await lab.must(["scale", "statefulset/db", "deployment/gate", "--replicas=0"]);
      await lab.until("all are gone", async () => {
        const left = await lab.must(["get", "pods", "-l", "app in (db,gate)", "-o", "name"]);
        return left === "";
      });
      times.step("gone");
      await lab.must(["scale", "statefulset/db", "--replicas=3"]);
      await lab.must(["scale", "deployment/gate", "--replicas=2"]);
      await cameBack("app=db", db);
      const now = await lab.runs("app=gate", 2);
      times.step("back");
      const all = (pods: readonly Running[]) => pods.flatMap((one) => one.addresses).sort();
      assert.deepEqual(all(now), all(gate));
      await lab.pingAll([...now, ...(await lab.runs("app=db", 3))]);
      await lab.check();
      times.end();
    },
  );
});
