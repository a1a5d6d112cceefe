// SPDX-License-Identifier: Apache-2.0
// Pods whose addresses come from elsewhere than themselves: a set, a claim made by hand, their namespace.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { assertClean } from "../../test/support/assert-audit.ts";
import { claimRecord, DB_POOL, poolRecord, reservationRecord, viewOf } from "../../test/support/fixtures.ts";
import {
  annotationsOf,
  applied,
  claimObject,
  deniedAs,
  deploymentPod,
  namespaceObject,
  ownedBy,
  pod,
  review,
  statefulPod,
} from "../../test/support/objects.ts";
import { admitPod, createPod, send } from "../../test/support/reviewing.ts";
import { openWorld } from "../../test/support/world.ts";
import { mutatePods } from "./mutate-pod.ts";

const POOLS = [DB_POOL, poolRecord("web", "10.30.0.1/32")];
const IPS = "berth.dev/ips";

describe("pods of a Deployment with a set", () => {
  const annotations = { [IPS]: "10.20.0.70/fd00:20::70;10.20.0.71/fd00:20::71" };

  it("take the slots in order, with a token each, and the third is refused", async () => {
    await using world = await openWorld({ pools: POOLS });
    const object = deploymentPod("web", { annotations });
    const tokens = new Set<string>();
    for (const slot of [0, 1]) {
      const written = annotationsOf(applied(object, await send(world, "/mutate/pods", object)));
      assert.equal(written["berth.dev/claim"], `web-slot-${slot}`);
      assert.equal(written["berth.dev/addresses"], `10.20.0.7${slot},fd00:20::7${slot}`);
      tokens.add(written["berth.dev/token"] ?? "");
    }
    assert.deepEqual([tokens.size, tokens.has("")], [2, false]);
    assert.equal(
      await admitPod(world, object),
      "SET_EXHAUSTED: all 2 entries of the list are in use: 10.20.0.70,fd00:20::70 (web-slot-0) is bound to a pod that was admitted less than 120 s ago; 10.20.0.71,fd00:20::71 (web-slot-1) is bound to a pod that was admitted less than 120 s ago; add entries for replicas and maxSurge, or lower them",
    );
    await assertClean(world);
  });

  it("that were refused because they took too long leave their slot to the next one", async () => {
    await using world = await openWorld({ pools: POOLS });
    const object = deploymentPod("web", { annotations: { [IPS]: "10.20.0.70" } });
    for (let n = 0; n < 3; n++) {
      const late = await mutatePods(world.admission)(review(object, "CREATE"), AbortSignal.abort());
      assert.equal(late.allowed, true);
      await world.settle();
    }
    assert.equal((await world.all("claim"))[0]?.record.binding, undefined);
    assert.equal(await admitPod(world, object), "10.20.0.70");
    const second = await mutatePods(world.admission)(review(object, "CREATE"), AbortSignal.abort());
    assert.equal(second.allowed, false);
    assert.match(await admitPod(world, object), /^SET_EXHAUSTED: .*admitted less than 120 s ago/);
    await assertClean(world);
  });

  it("leave it, too, when their time ends while the API server is asked what the sender may read", async () => {
    const beijing = poolRecord("beijing", "10.1.0.0/24", {
      nodeSelector: { matchLabels: { zone: "beijing" } },
    });
    await using world = await openWorld({ pools: [beijing] });
    const late = new AbortController();
    const readAccess = {
      mayRead: async () => {
        late.abort();
        return false;
      },
    };
    const { objects } = world;
    const inventory = {
      pod: objects.pod.bind(objects),
      workload: objects.workload.bind(objects),
      namespace: objects.namespace.bind(objects),
      fenced: objects.fenced.bind(objects),
      nodes: () => [{ name: "node-a", labels: {} }],
    };
    const object = deploymentPod("web", { annotations: { [IPS]: "10.1.0.9" } });
    await mutatePods({ ...world.admission, inventory, readAccess })(review(object), late.signal);
    await world.settle();
    assert.equal((await world.all("claim"))[0]?.record.binding, undefined);
  });

  it("are known by name once they exist, and their slot is free when they are gone", async () => {
    await using world = await openWorld({ pools: POOLS });
    const object = deploymentPod("web", { annotations: { [IPS]: "10.20.0.70" } });
    const made = await createPod(world, object, "web-5d9c7b-x");
    const { binding } = (await world.all("claim"))[0]?.record ?? {};
    assert.deepEqual(
      [binding?.podName, binding?.podUID, binding?.node],
      ["web-5d9c7b-x", "uid-of-web-5d9c7b-x", ""],
    );
    assert.match(await admitPod(world, object), /\(web-slot-0\) is bound to pod web-5d9c7b-x;/);
    await send(world, "/validate/pods", made, { operation: "DELETE" });
    world.clock.advance(120_000);
    assert.equal(await admitPod(world, object), "10.20.0.70");
  });

  it("of an OpenKruise CloneSet share the set in the same way", async () => {
    await using world = await openWorld({ pools: POOLS });
    const clone = (id: string) =>
      pod(`web-${id}`, { annotations, owner: ownedBy("CloneSet", "web", "apps.kruise.io/v1alpha1") });
    assert.equal(await admitPod(world, clone("aaaaa")), "10.20.0.70,fd00:20::70");
    assert.equal(await admitPod(world, clone("bbbbb")), "10.20.0.71,fd00:20::71");
    assert.match(
      await admitPod(world, clone("ccccc")),
      /^SET_EXHAUSTED: all 2 entries of the list are in use: /,
    );
    assert.deepEqual(Object.keys(await world.holdings()), ["shop/web-slot-0", "shop/web-slot-1"]);
  });
});

describe("a pod whose name has a claim", () => {
  it("made by hand gets what it asks for, though the pod says nothing", async () => {
    await using world = await openWorld({ pools: POOLS });
    await send(world, "/validate/claims", claimObject("licence", { request: { addresses: ["10.20.0.70"] } }));
    assert.equal(await admitPod(world, pod("licence")), "10.20.0.70");
    assert.equal(await admitPod(world, pod("licence", { namespace: "bank" })), "");
  });

  it("made by hand and not reserved yet completes it", async () => {
    await using world = await openWorld({ pools: POOLS });
    const identity = { kind: "Pod", apiVersion: "v1", name: "licence" };
    const request = { pools: ["web"] };
    await world.realStore.create(
      "claim",
      claimRecord({ name: "licence", identity, request, addresses: [], nonce: "", handMade: true }),
    );
    await world.settle();
    assert.equal(await admitPod(world, pod("licence")), "10.30.0.1");
    await assertClean(world);
  });

  it("made by hand a moment ago gets it, though the cache has not seen it", async () => {
    await using world = await openWorld({ pools: POOLS });
    const empty = viewOf({ pools: POOLS });
    const admission = { ...world.admission, context: { ...world.context, view: empty } };
    await send(world, "/validate/claims", claimObject("licence", { request: { addresses: ["10.20.0.70"] } }));
    const response = await mutatePods(admission)(review(pod("licence")), new AbortController().signal);
    assert.equal(annotationsOf(applied(pod("licence"), response))["berth.dev/addresses"], "10.20.0.70");
  });

  it("made by hand for an indexed Job gets it by the claim's name", async () => {
    await using world = await openWorld({ pools: POOLS });
    await send(world, "/validate/claims", claimObject("train-2", { request: { addresses: ["10.20.0.70"] } }));
    const index = { "batch.kubernetes.io/job-completion-index": "2" };
    const job = pod("", {
      generateName: "train-2-",
      annotations: index,
      owner: ownedBy("Job", "train", "batch/v1"),
    });
    assert.equal(await admitPod(world, job), "10.20.0.70");
  });

  it("of an ordinal that was kept from before is not given it when its template asks no more", async () => {
    await using world = await openWorld({ pools: POOLS });
    assert.equal(
      await admitPod(world, statefulPod("mysql", 0, { annotations: { [IPS]: "10.20.0.70" } })),
      "10.20.0.70",
    );
    assert.equal(await admitPod(world, statefulPod("mysql", 0)), "");
    await assertClean(world);
  });

  it("of somebody else's making is not drawn into it", async () => {
    await using world = await openWorld({ pools: POOLS });
    const identity = { kind: "Job", apiVersion: "batch/v1", name: "train", ordinal: 0 };
    await world.realStore.create("claim", claimRecord({ name: "train-0", identity }));
    await world.realStore.create(
      "reservation",
      reservationRecord("10.20.0.70", { claim: { namespace: "shop", name: "train-0" } }),
    );
    await world.settle();
    assert.equal(await admitPod(world, pod("train-0")), "");
    assert.equal(
      await admitPod(world, pod("train-0", { annotations: { [IPS]: "10.20.0.71" } })),
      "CLAIM_BUSY: claim shop/train-0 belongs to Job train, ordinal 0; give this pod another name",
    );
  });

  it("that is being given back is its own no longer", async () => {
    await using world = await openWorld({ pools: POOLS });
    await world.realStore.create("claim", claimRecord({ name: "licence", handMade: true, releasing: true }));
    await world.settle();
    assert.equal(await admitPod(world, pod("licence")), "");
  });
});

describe("defaults of a namespace", () => {
  it("serve pods that say nothing themselves", async () => {
    await using world = await openWorld({ pools: POOLS });
    const defaults = { "berth.dev/pools": "web", "berth.dev/sticky": "true" };
    await send(world, "/validate/namespaces", namespaceObject("shop", defaults));
    assert.equal(await admitPod(world, pod("a")), "10.30.0.1");
    assert.equal((await world.all("claim"))[0]?.record.retention.whenDeleted, "Retain");
    assert.equal(await admitPod(world, pod("b", { annotations: { [IPS]: "10.20.0.70" } })), "10.20.0.70");
    assert.equal(await admitPod(world, pod("c", { namespace: "bank" })), "");
    assert.equal(await admitPod(world, pod("d", { spec: { hostNetwork: true } })), "");
  });

  it("and its labels decide which pools it may use", async () => {
    const closed = poolRecord("vault", "10.40.0.0/29", {
      namespaceSelector: { matchLabels: { team: "bank" } },
    });
    await using world = await openWorld({ pools: [closed] });
    const asking = pod("a", { annotations: { "berth.dev/pools": "vault" } });
    assert.equal(
      await admitPod(world, asking),
      'POOL_FORBIDDEN: pool "vault" is not open to namespace shop; ask its administrator',
    );
    await send(world, "/validate/namespaces", namespaceObject("shop", {}, { team: "bank" }));
    assert.match(await admitPod(world, asking), /^10\.40\.0\./);
  });

  it("that nobody can read are refused where they are written", async () => {
    await using world = await openWorld({ pools: POOLS });
    const response = await send(
      world,
      "/validate/namespaces",
      namespaceObject("shop", { "berth.dev/sticky": "yes" }),
    );
    assert.equal(
      deniedAs(response),
      'REQUEST_INVALID: annotation berth.dev/sticky: "yes" is not known here; write "true", "false" or interfaces: "eth0,net1"',
    );
  });
});
