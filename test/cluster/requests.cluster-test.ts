// SPDX-License-Identifier: Apache-2.0
// What pods ask for and what they get, on two nodes.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { caseOptions, Times } from "./cases.ts";
import { Lab, type Running } from "./lab.ts";
import { deployment, pod, statefulSet } from "./objects.ts";

let lab: Lab;
before(async () => {
  lab = await Lab.open("requests");
});
after(async () => await lab?.close());

/** What the pod's interface has, with what kubectl knows nothing of. */
async function onInterface({ name }: Running): Promise<string> {
  return await lab.must(["exec", name, "--", "ip", "-o", "addr", "show", "eth0"]);
}

describe("requests", () => {
  it(
    "E0501 pinned pods, sticky and listed ordinals and a Deployment's set have their addresses, and reach each other",
    caseOptions(),
    async () => {
      const times = new Times("E0501");
      await lab.apply([
        pod("pinned", {
          annotations: { "cni.projectcalico.org/ipAddrs": '["10.40.1.11"]' },
          labels: { app: "one" },
        }),
        pod("dual", { annotations: { "berth.dev/ips": "10.40.1.12,fd00:40::112" }, labels: { app: "one" } }),
        statefulSet("sticky", {
          replicas: 3,
          annotations: { "berth.dev/sticky": "true", "berth.dev/pools": "lab", "berth.dev/families": "IPv4" },
        }),
        statefulSet("listed", {
          replicas: 2,
          start: 5,
          annotations: { "berth.dev/ips": "10.40.1.21;10.40.1.22" },
        }),
        deployment("set", { replicas: 4, annotations: { "berth.dev/ips": "10.40.1.31-10.40.1.34" } }),
      ]);
      times.step("applied");
      const [one, sticky, listed, set] = await Promise.all([
        lab.runs("app=one", 2),
        lab.runs("app=sticky", 3),
        lab.runs("app=listed", 2),
        lab.runs("app=set", 4),
      ]);
      times.step("running");
      const of = (pods: typeof one) =>
        Object.fromEntries(pods.map(({ name, addresses }) => [name, addresses]));
      assert.deepEqual(of(one), { pinned: ["10.40.1.11"], dual: ["10.40.1.12", "fd00:40::112"] });
      assert.deepEqual(of(listed), { "listed-5": ["10.40.1.21"], "listed-6": ["10.40.1.22"] });
      assert.deepEqual(set.flatMap(({ addresses }) => addresses).sort(), [
        "10.40.1.31",
        "10.40.1.32",
        "10.40.1.33",
        "10.40.1.34",
      ]);
      assert.equal(new Set(sticky.map(({ node }) => node)).size, 2, "both nodes have one of three");
      for (const each of [...one, ...sticky, ...listed, ...set]) {
        const seen = await onInterface(each);
        for (const address of each.addresses)
          assert.ok(seen.includes(` ${address}/`), `${each.name}: ${seen}`);
      }
      await lab.pingAll([...one, ...sticky, ...listed, ...set]);
      times.step("pinged");
      await lab.check();
      times.end();
    },
  );

  it(
    "E0502 a Deployment's pods take the addresses of their set over from each other in a rolling update",
    caseOptions(),
    async () => {
      const times = new Times("E0502");
      const before = await lab.runs("app=set", 4);
      await lab.must(["rollout", "restart", "deployment/set"]);
      await lab.must(["rollout", "status", "deployment/set", "--timeout=120s"]);
      const uids = new Set(before.map(({ uid }) => uid));
      const now = await lab.runs("app=set", 4, (pods) => pods.every(({ uid }) => !uids.has(uid)));
      times.step("rolled");
      const addresses = (pods: typeof now) => pods.flatMap((one) => one.addresses).sort();
      assert.deepEqual(addresses(now), addresses(before));
      await lab.pingAll(now);
      await lab.check();
      times.end();
    },
  );
});
