// SPDX-License-Identifier: Apache-2.0
// Nodes that lose their power or their kubelet: an address stays with them until they are fenced.
import assert from "node:assert/strict";
import { after, afterEach, before, describe, it } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { caseOptions, isForGate, Times } from "./cases.ts";
import { Lab, type Running } from "./lab.ts";
import { statefulSet } from "./objects.ts";

/** How long it is watched that an address does not move; half a minute is longer than whatever Berth does again. */
const STAYS_MS = isForGate() ? 8_000 : 30_000;
const OUT_OF_SERVICE = "node.kubernetes.io/out-of-service";

let lab: Lab;
before(async () => {
  lab = await Lab.open("power");
  const annotations = { "berth.dev/ips": "10.40.1.81-10.40.1.82" };
  await lab.apply([statefulSet("db", { replicas: 2, annotations })]);
  await lab.runs("app=db", 2, onTwoNodes);
});
afterEach(async () => {
  for (const { name, isOn } of lab.cluster.nodes) if (!isOn) await lab.cluster.powerOn(name);
  for (const { name } of lab.cluster.nodes) {
    await lab.cluster.startDaemons(name);
    await lab.kubectl(["taint", "node", name, `${OUT_OF_SERVICE}-`]);
    await lab.nodeReturns(name);
  }
  await lab.must(["delete", "pods", "-l", "app=db"]);
  await lab.runs("app=db", 2, onTwoNodes);
  await lab.check();
});
after(async () => await lab?.close());

const onTwoNodes = (pods: readonly Running[]) => new Set(pods.map(({ node }) => node)).size === 2;

async function victim(): Promise<Running> {
  const [pod] = await lab.runs("app=db", 2, onTwoNodes);
  assert.ok(pod !== undefined);
  return pod;
}

/** Its object goes, while its containers may run; the next pod of the name is scheduled elsewhere. */
async function forceAway({ name, node }: Running): Promise<void> {
  await lab.nodeBecomes(node, "Unknown");
  await lab.must(["delete", "pod", name, "--force", "--grace-period=0"]);
}

/** The new pod waits, and its events say for what; it waits on. */
async function waits({ name, node, addresses }: Running): Promise<void> {
  await lab.until(`an event says why ${name} waits`, async () =>
    (await lab.events(name)).some(
      (event) => event.startsWith("ClaimBusy: ") && event.includes(node) && event.includes("out-of-service"),
    ),
  );
  await pause(STAYS_MS);
  const running = await lab.running("app=db");
  assert.ok(!running.some((one) => one.addresses.includes(addresses[0] ?? "")), "the address has moved");
}

describe("power", () => {
  it(
    "E0531 a node that loses its power and returns has its pods again, with their addresses",
    caseOptions({ machines: true }),
    async () => {
      const times = new Times("E0531");
      const before = await lab.runs("app=db", 2);
      const { node } = await victim();
      await lab.cluster.powerOff(node);
      await lab.nodeBecomes(node, "Unknown");
      times.step("lost");
      await lab.cluster.powerOn(node);
      await lab.nodeBecomes(node, "True");
      times.step("node back");
      const uids = (pods: readonly Running[]) => pods.map(({ uid, addresses }) => [uid, addresses]);
      const now = await lab.runs("app=db", 2);
      assert.deepEqual(uids(now), uids(before));
      await lab.until("the pods reach each other", async () => await lab.reachEachOther(now));
      times.step("pods back");
      await lab.check();
      times.end();
    },
  );

  it(
    "E0532 a pod that is forced away from a node without power gets its address elsewhere once the node is out of service",
    caseOptions({ machines: true }),
    async () => {
      const times = new Times("E0532");
      const pod = await victim();
      await lab.cluster.powerOff(pod.node);
      await forceAway(pod);
      times.step("forced away");
      await waits(pod);
      times.step("waited");
      await lab.must(["taint", "node", pod.node, `${OUT_OF_SERVICE}=nodeshutdown:NoExecute`]);
      const now = await lab.runsAgain(pod.name, pod.uid);
      times.step("moved");
      assert.notEqual(now.node, pod.node);
      assert.deepEqual(now.addresses, pod.addresses);
      times.end();
    },
  );

  it(
    "E0533 the same once the Node has been deleted for a while",
    caseOptions({ machines: true, slow: true }),
    async () => {
      const times = new Times("E0533");
      const pod = await victim();
      await lab.cluster.powerOff(pod.node);
      await forceAway(pod);
      await waits(pod);
      await lab.must(["delete", "node", pod.node]);
      times.step("deleted");
      const now = await lab.runsAgain(pod.name, pod.uid);
      times.step("moved");
      assert.notEqual(now.node, pod.node);
      assert.deepEqual(now.addresses, pod.addresses);
      times.end();
    },
  );

  it(
    "E0534 a pod that runs on without its kubelet keeps its address until it has really ended",
    caseOptions({ machines: true }),
    async () => {
      const times = new Times("E0534");
      const pod = await victim();
      const node = lab.cluster.node(pod.node);
      await node.stop("kubelet", "KILL");
      await forceAway(pod);
      times.step("forced away");
      await waits(pod);
      assert.ok(lab.hasAddress(pod), "the old container runs on with its address");
      times.step("waited");
      await lab.cluster.startDaemons(pod.node);
      const now = await lab.runsAgain(pod.name, pod.uid);
      times.step("moved");
      assert.deepEqual(now.addresses, pod.addresses);
      times.end();
    },
  );
});
