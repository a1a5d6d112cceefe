// SPDX-License-Identifier: Apache-2.0
// The embedded stack hears of a pod's making and its end through /validate/pods.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { DB_POOL } from "../../test/support/fixtures.ts";
import {
  applied,
  deniedAs,
  deploymentPod,
  type Json,
  namespaceObject,
  ownedBy,
  pod,
  review,
  statefulPod,
} from "../../test/support/objects.ts";
import { createPod, send } from "../../test/support/reviewing.ts";
import { openWorld, type World } from "../../test/support/world.ts";
import { createHandlers } from "./routes.ts";

const ROUTE = "/validate/pods";
const PIN = { "berth.dev/ips": "10.20.0.70" };

async function said(world: World, object: Json, over = {}): Promise<string> {
  return deniedAs(await send(world, ROUTE, object, over));
}

function named(object: Json, name: string): Json {
  return { ...object, metadata: { ...(object["metadata"] as Json), name, uid: `uid-of-${name}` } };
}

describe("a pod that was made", () => {
  it("is kept, with what it was assigned", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    await createPod(world, pod("licence", { annotations: PIN }), "licence");
    const facts = await world.objects.pod("shop", "licence");
    assert.deepEqual(
      [facts?.uid, facts?.annotations["berth.dev/addresses"]],
      ["uid-of-licence", "10.20.0.70"],
    );
  });

  it("tells the claim that is held for it its name", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const object = pod("", {
      generateName: "etl-",
      annotations: { "berth.dev/pools": "db" },
      owner: ownedBy("Workflow", "etl"),
    });
    await createPod(world, object, "etl-x");
    const [claim] = await world.all("claim");
    const { podName, podUID, node, token } = claim?.record.binding ?? {};
    assert.deepEqual([podName, podUID, node, token?.length], ["etl-x", "uid-of-etl-x", "", 26]);
    world.clock.advance(1e9);
    await world.collector().pass();
    await world.settle();
    assert.equal((await world.all("claim")).length, 1);
  });

  it("is refused when another pod was made with its token", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const object = deploymentPod("web", { annotations: PIN });
    const mutated = applied(object, await send(world, "/mutate/pods", object));
    assert.equal(await said(world, named(mutated, "web-x")), "");
    assert.equal(
      await said(world, named(mutated, "web-y")),
      "CLAIM_BUSY: claim shop/web-slot-0 (10.20.0.70) is held for another pod of its set; it is free again when that pod is gone",
    );
    assert.equal(await world.objects.pod("shop", "web-y"), undefined);
    assert.equal(await said(world, named(mutated, "web-x"), { operation: "UPDATE" }), "");
  });

  it("is refused when its claim was given to somebody else or is gone", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const object = deploymentPod("web", { annotations: PIN });
    const mutated = applied(object, await send(world, "/mutate/pods", object));
    const seen = await world.realStore.get("claim", "shop/web-slot-0");
    assert.ok(seen);
    await world.realStore.remove("claim", seen);
    await world.settle();
    assert.equal(
      await said(world, named(mutated, "web-x")),
      "CLAIM_MISSING: there is no claim shop/web-slot-0 with addresses; create the pod anew so that they are reserved",
    );
  });

  it("without a claim is refused if it asks for an address, whoever asks for it", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const words = (name: string) =>
      `CLAIM_MISSING: pod shop/${name} asks for an address and no claim was made for it; Berth was not asked before; use: berthctl apply -f FILE`;
    assert.equal(await said(world, pod("a", { annotations: PIN })), words("a"));
    assert.equal(await said(world, pod("b", { annotations: { "berth.dev/ips": "junk" } })), words("b"));
    await send(world, "/validate/namespaces", namespaceObject("shop", { "berth.dev/sticky": "true" }));
    assert.equal(await said(world, pod("c")), words("c"));
    assert.equal(await world.objects.pod("shop", "c"), undefined);
    assert.equal(await said(world, pod("d", { spec: { hostNetwork: true }, annotations: PIN })), "");
    assert.ok(await world.objects.pod("shop", "d"));
  });

  it("in a dry run is not kept", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const before = world.dump();
    assert.equal(await said(world, pod("a"), { dryRun: true }), "");
    assert.equal(await said(world, pod("a"), { dryRun: true, operation: "DELETE" }), "");
    assert.equal(world.dump(), before);
  });
});

describe("a pod that is deleted", () => {
  it("is known to be gone, and its claim is looked at", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const made = await createPod(world, statefulPod("mysql", 0, { annotations: PIN }), "mysql-0");
    await createPod(world, pod("other", { annotations: { "berth.dev/ips": "10.20.0.80" } }), "other");
    assert.equal(await said(world, made, { operation: "DELETE" }), "");
    assert.equal(await world.objects.pod("shop", "mysql-0"), undefined);
    assert.deepEqual(
      world.suspects.map(({ name }) => name),
      ["mysql-0"],
    );
    assert.deepEqual((await world.holdings())["shop/mysql-0"], "10.20.0.70");
  });

  it("is found by the name that its slot was told", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const made = await createPod(world, deploymentPod("web", { annotations: PIN }), "web-x");
    await said(world, made, { operation: "DELETE" });
    assert.deepEqual(
      world.suspects.map(({ name }) => name),
      ["web-slot-0"],
    );
  });

  it("of a namespace and name of its own has no other claim looked at", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    await createPod(world, pod("mysql-1", { annotations: { "berth.dev/ips": "10.20.0.80" } }), "mysql-1");
    const slot = await createPod(world, deploymentPod("web", { annotations: PIN }), "mysql-1-x");
    await said(world, slot, { operation: "DELETE" });
    await said(world, pod("nobody"), { operation: "DELETE" });
    assert.deepEqual(
      world.suspects.map(({ name }) => name),
      ["web-slot-0"],
    );
  });

  it("without an object is taken by the name of the request", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    await createPod(world, pod("a", { annotations: PIN }), "a");
    await said(world, pod("a"), { operation: "DELETE", oldObject: null });
    assert.equal(await world.objects.pod("shop", "a"), undefined);
  });
});

describe("the handlers", () => {
  it("are there for every route, and answer whatever they are sent with a decision", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const handlers = createHandlers(world.admission);
    const junk: readonly unknown[] = [
      null,
      7,
      "x",
      [],
      {},
      { kind: "Pod" },
      { kind: 7 },
      { kind: "Secret", metadata: [] },
    ];
    for (const [route, handler] of Object.entries(handlers)) {
      for (const object of junk) {
        for (const operation of ["CREATE", "UPDATE", "DELETE", "CONNECT"] as const) {
          const request = { ...review(pod("a")), object, oldObject: object, operation };
          const { uid, allowed, status } = await handler(request, new AbortController().signal);
          assert.equal(uid, "review-1", route);
          assert.ok(allowed || (status?.code === 403 && status.message !== ""), `${route} ${operation}`);
        }
      }
    }
    assert.deepEqual([await world.all("claim"), (await world.all("pool")).length], [[], 1]);
  });
});
