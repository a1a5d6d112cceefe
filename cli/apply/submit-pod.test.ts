// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { release } from "../../allocator/lifecycle/release.ts";
import { DB_POOL } from "../../test/support/fixtures.ts";
import { pod } from "../../test/support/objects.ts";
import { counterAt, object, said, send, worldFor } from "../testing/submitted.ts";

const sticky = { annotations: { "berth.dev/ips": "10.20.0.70" } };

describe("a pod", () => {
  it("is reviewed without uid and then as it will be", async (t) => {
    const world = await worldFor(t, { pools: [DB_POOL] });
    const { target, asked } = counterAt(world);
    const { metadata } = object(await send(target, pod("web", sticky)));
    assert.equal(metadata.annotations["berth.dev/addresses"], "10.20.0.70");
    assert.equal(metadata.uid, "uuid-1");
    const [first, second] = asked;
    assert.deepEqual([first?.route, second?.route], ["/mutate/pods", "/validate/pods"]);
    assert.deepEqual(first?.object, pod("web", sticky));
    assert.deepEqual(second?.object, {
      ...pod("web", sticky),
      metadata: {
        name: "web",
        namespace: "shop",
        annotations: {
          "berth.dev/ips": "10.20.0.70",
          "berth.dev/claim": "web",
          "berth.dev/addresses": "10.20.0.70",
        },
        uid: "uuid-1",
        creationTimestamp: "2026-01-01T00:00:00Z",
      },
    });
    for (const question of asked) {
      const { operation, name, namespace, oldObject, dryRun } = question;
      assert.deepEqual(
        { operation, name, namespace, oldObject, dryRun },
        { operation: "CREATE", name: "web", namespace: "shop", oldObject: null, dryRun: false },
      );
    }
    assert.equal((await world.objects.pod("shop", "web"))?.uid, "uuid-1");
  });

  it("gets its name between the two when it has none", async (t) => {
    const world = await worldFor(t, { pools: [DB_POOL] });
    const { target, asked } = counterAt(world);
    const long = "a".repeat(70);
    const { metadata } = object(await send(target, pod("", { generateName: long })));
    assert.match(metadata.name, /^a{58}[bcdfghjklmnpqrstvwxz2456789]{5}$/);
    assert.deepEqual(
      asked.map(({ name }) => name),
      ["", metadata.name],
    );
  });

  it("that is there already is left alone", async (t) => {
    const world = await worldFor(t, { pools: [DB_POOL] });
    const { target, asked } = counterAt(world);
    await send(target, pod("web", sticky));
    assert.equal(said(await send(target, pod("web", sticky))), "unchanged");
    assert.equal(asked.length, 2);
  });

  it("that is there already has the labels and annotations of its manifest, and what Berth wrote", async (t) => {
    const world = await worldFor(t, { pools: [DB_POOL] });
    const { target } = counterAt(world);
    await send(target, pod("web", { ...sticky, labels: { old: "x" } }));
    const next = pod("web", { annotations: { ...sticky.annotations, note: "y" }, labels: { team: "net" } });
    assert.equal(said(await send(target, next)), "configured");
    const { metadata } = object(await send(target, next));
    assert.deepEqual([metadata.labels, metadata.annotations["note"]], [{ team: "net" }, "y"]);
    assert.equal(metadata.annotations["berth.dev/claim"], "web");
    assert.equal(said(await send(target, next)), "unchanged");
  });

  it("that is there already, and whose claim was released, is told of", async (t) => {
    const world = await worldFor(t, { pools: [DB_POOL] });
    const { target } = counterAt(world);
    await send(target, pod("web", sticky));
    const claim = await world.realStore.get("claim", "shop/web");
    assert.ok(claim);
    assert.equal(await release(world.context, claim), "released");
    const again = await send(target, pod("web", sticky));
    assert.equal(said(again), "unchanged");
    assert.deepEqual(again.warnings, [
      "its claim shop/web was released, and without it the pod cannot start; delete it with: berthctl delete pod/shop/web, and apply it again",
    ]);
  });

  it("that is there already, and asks for something else now, is refused with what to do", async (t) => {
    const world = await worldFor(t, { pools: [DB_POOL] });
    const { target } = counterAt(world);
    await send(target, pod("web", { annotations: { "berth.dev/ips": "10.20.0.51" } }));
    const moved = pod("web", { annotations: { "berth.dev/ips": "10.20.0.52" } });
    assert.equal(
      said(await send(target, moved)),
      "refused: annotation berth.dev/ips of pod shop/web is read when the pod is created, and a change would do nothing; delete the pod and create it again with what you want",
    );
    const strange = pod("web", { annotations: { "berth.dev/ips": "10.20.0.51", "berth.dev/pool": "db" } });
    assert.match(said(await send(target, strange)), /did you mean berth\.dev\/pools\?$/);
  });

  it("that is refused is not reviewed again", async (t) => {
    const world = await worldFor(t, { pools: [DB_POOL] });
    const { target, asked } = counterAt(world);
    await send(target, pod("web", sticky));
    assert.match(
      said(await send(target, pod("other", sticky))),
      /^refused: address 10\.20\.0\.70 .* is held by/,
    );
    assert.equal(asked.length, 3);
    assert.equal(await world.objects.pod("shop", "other"), undefined);
  });

  it("is told about on a dry run, and nothing is written", async (t) => {
    const world = await worldFor(t, { pools: [DB_POOL] });
    const { target, asked } = counterAt(world, true);
    const before = world.dump();
    const submitted = await send(target, pod("web", sticky));
    assert.equal(said(submitted), "created");
    assert.deepEqual(submitted.warnings, ["this pod would get 10.20.0.70 from pool db"]);
    assert.ok(asked.every(({ dryRun }) => dryRun));
    assert.equal(world.dump(), before);
  });
});
