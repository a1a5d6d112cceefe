// SPDX-License-Identifier: Apache-2.0
// Parts of Berth, and the API server, that are away for a while.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { AGENT_NAMESPACE, BERTH_NAMESPACE } from "./berth.ts";
import { caseOptions, Times } from "./cases.ts";
import { startApi } from "./control-plane.ts";
import { Lab, type Running } from "./lab.ts";
import { deployment, pod, statefulSet } from "./objects.ts";
import { Sandboxes } from "./observer.ts";

const AWAY_MS = 60_000;
const IN_BERTH = { namespace: BERTH_NAMESPACE };
const OF_AGENTS = { namespace: AGENT_NAMESPACE };

let lab: Lab;
before(async () => {
  lab = await Lab.open("absences");
  await lab.apply([
    statefulSet("db", { replicas: 2, annotations: { "berth.dev/ips": "10.40.1.91-10.40.1.92" } }),
    pod("single", { annotations: { "berth.dev/ips": "10.40.1.93" } }),
  ]);
  await Promise.all([lab.runs("app=db", 2), lab.runsAgain("single")]);
});
after(async () => await lab?.close());

const addresses = (pods: readonly Running[]) =>
  Object.fromEntries(pods.map((one) => [one.name, one.addresses]));

/** Where no node has the label, the agents go. */
async function selectNodes(value: string | null): Promise<void> {
  const patch = { spec: { template: { spec: { nodeSelector: { "berth.dev/none": value } } } } };
  await lab.must(["patch", "daemonset/berth-agent", "--type=merge", "-p", JSON.stringify(patch)], OF_AGENTS);
}

async function agents(): Promise<string> {
  return await lab.must(["get", "pods", "-l", "app.kubernetes.io/component=agent", "-o", "name"], OF_AGENTS);
}

async function rolledOut(what: string, where = IN_BERTH): Promise<void> {
  await lab.must(["rollout", "status", what, "--timeout=180s"], where);
}

describe("absences", () => {
  it(
    "E0541 without agents pods end, and new ones wait for an agent and start by themselves",
    caseOptions(),
    async () => {
      const times = new Times("E0541");
      const were = await lab.runs("app=db", 2);
      const [db0] = were;
      assert.ok(db0 !== undefined);
      await selectNodes("here");
      try {
        await lab.until("the agents are gone", async () => (await agents()) === "");
        times.step("agents gone");
        await lab.must(["delete", "pod", db0.name, "--timeout=60s"]);
        times.step("deleted");
        await lab.until("an event says that there is no agent", async () =>
          (await lab.events(db0.name)).some((event) => /FailedCreatePodSandBox: .*agent/.test(event)),
        );
      } finally {
        await selectNodes(null);
      }
      await rolledOut("daemonset/berth-agent", OF_AGENTS);
      times.step("agents back");
      const now = await lab.runsAgain(db0.name, db0.uid);
      times.step("pod back");
      assert.deepEqual(now.addresses, db0.addresses);
      await lab.pingAll(await lab.running());
      await lab.check();
      times.end();
    },
  );

  it(
    "E0542 agents are upgraded while pods come and go, and every pod has its address",
    caseOptions(),
    async () => {
      const times = new Times("E0542");
      const were = addresses(await lab.runs("app=db", 2));
      await lab.must(["rollout", "restart", "daemonset/berth-agent"], OF_AGENTS);
      let isOver = false;
      const rollout = rolledOut("daemonset/berth-agent", OF_AGENTS).finally(() => {
        isOver = true;
      });
      let rounds = 0;
      for (; !isOver || rounds < 2; rounds++) {
        const old = new Set((await lab.running("app=db")).map(({ uid }) => uid));
        await lab.must(["delete", "pods", "-l", "app=db", "--timeout=60s"]);
        const now = await lab.runs("app=db", 2, (pods) => pods.every(({ uid }) => !old.has(uid)));
        assert.deepEqual(addresses(now), were);
      }
      await rollout;
      times.step("upgraded");
      await lab.pingAll(await lab.running());
      await lab.check();
      times.end({ rounds });
    },
  );

  it(
    "E0543 without a webhook pods that do not ask start, and pods that ask come up by themselves when it returns",
    caseOptions(),
    async () => {
      const times = new Times("E0543");
      await lab.must(["scale", "deployment/berth-webhook", "--replicas=0"], IN_BERTH);
      try {
        await lab.until("the webhook is gone", async () => {
          const label = "app.kubernetes.io/component=webhook";
          return (await lab.must(["get", "pods", "-l", label, "-o", "name"], IN_BERTH)) === "";
        });
        times.step("webhook gone");
        await lab.apply([pod("unpinned", { labels: { app: "unpinned" } })]);
        await lab.apply([pod("of-the-system")], { namespace: "kube-system" });
        const annotations = { "berth.dev/ips": "10.40.1.95-10.40.1.96" };
        await lab.apply([deployment("pinned", { replicas: 2, annotations })]);
        await lab.runsAgain("unpinned");
        const ready = ["wait", "--for=condition=Ready", "pod/of-the-system", "--timeout=60s"];
        await lab.must(ready, { namespace: "kube-system" });
        await lab.until("an event says that the webhook is away", async () =>
          (await lab.eventsWith("reason=FailedCreate")).some((event) =>
            /failed calling webhook "pods\.berth\.dev": .*berth-webhook/.test(event),
          ),
        );
        times.step("others started");
      } finally {
        await lab.kubectl(["delete", "pod", "of-the-system", "--wait=false"], { namespace: "kube-system" });
        await lab.must(["scale", "deployment/berth-webhook", "--replicas=2"], IN_BERTH);
      }
      await rolledOut("deployment/berth-webhook");
      times.step("webhook back");
      const now = await lab.runs("app=pinned", 2);
      times.step("pinned started");
      assert.deepEqual(now.flatMap((one) => one.addresses).sort(), ["10.40.1.95", "10.40.1.96"]);
      await lab.pingAll(now);
      await lab.check();
      times.end();
    },
  );

  it(
    "E0544 containers that die while there is no API server for a minute start again with their addresses",
    caseOptions({ machines: true, slow: true }),
    async () => {
      const times = new Times("E0544");
      const { control, state } = lab.cluster;
      const were = await lab.running();
      const single = await lab.runsAgain("single");
      const address = single.addresses[0] ?? "";
      await control.stop("kube-apiserver");
      const since = Date.now();
      try {
        const sandboxes = new Sandboxes(lab.cluster.nodes);
        const old = sandboxes.of(address);
        assert.ok(old !== undefined);
        const isAnother = sandboxes.kill(old);
        await lab.until("single has another sandbox", async () => {
          const next = sandboxes.of(address);
          return next !== undefined && isAnother(next);
        });
        times.step("sandbox back");
        await pause(Math.max(0, since + AWAY_MS - Date.now()));
      } finally {
        await startApi(control, state);
      }
      times.step("API server back");
      for (const { name } of lab.cluster.nodes) await lab.nodeBecomes(name, "True");
      await lab.until("the same pods run", async () => (await lab.running()).length === were.length);
      assert.deepEqual(addresses(await lab.running()), addresses(were));
      await lab.pingAll(await lab.running());
      await lab.check();
      times.end();
    },
  );
});
