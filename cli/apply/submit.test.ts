// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { release } from "../../allocator/lifecycle/release.ts";
import { Fields, type KubeObject, readObject } from "../../allocator/manifest/kubernetes-object.ts";
import { claimRecord, DB_POOL, granted } from "../../test/support/fixtures.ts";
import {
  claimObject,
  type Json,
  namespaceObject,
  pod,
  poolObject,
  workload,
} from "../../test/support/objects.ts";
import { openWorld, type World, type WorldOptions } from "../../test/support/world.ts";
import { createHandlers } from "../../webhook/admission/routes.ts";
import { parseReview, reviewOf } from "../../webhook/review/admission-review.ts";
import { kindNamed } from "./kinds.ts";
import { keyOfOperand, subjectOf } from "./object-ref.ts";
import { type ReviewInput, readAnswer } from "./review-client.ts";
import { deleteObject, type ReviewTarget, type Submitted, submit } from "./submit.ts";

interface Asked extends ReviewInput {
  readonly route: string;
}

/** A world that is closed when its test is over. */
async function worldFor(t: TestContext, options?: WorldOptions): Promise<World> {
  const world = await openWorld(options);
  t.after(() => world[Symbol.asyncDispose]());
  return world;
}

/** A counter at the real decisions, without the network between them; `asked` has every question. */
function counterAt(world: World, dryRun = false): { target: ReviewTarget; asked: Asked[] } {
  const handlers = createHandlers(world.admission);
  const asked: Asked[] = [];
  let uuids = 0;
  const target: ReviewTarget = {
    dryRun,
    io: {
      clock: world.clock,
      random: { token: () => "", fraction: () => 0.5 },
      uuid: () => `uuid-${++uuids}`,
    },
    backend: {
      store: world.realStore,
      admitted: world.objects,
      attachments: () => [],
      journal: () => ({ journal: "", position: 0 }),
    },
    webhook: {
      review: async (route, question) => {
        asked.push({ route, ...structuredClone(question) });
        const body = {
          apiVersion: "admission.k8s.io/v1",
          kind: "AdmissionReview",
          request: { uid: "u", ...question },
        };
        const parsed = parseReview(body);
        assert.ok("request" in parsed);
        await world.settle();
        const response = await handlers[route](parsed.request, AbortSignal.timeout(5_000));
        await world.settle();
        return readAnswer(JSON.stringify(reviewOf(response)), "u");
      },
    },
  };
  return { target, asked };
}

async function send(target: ReviewTarget, json: Json): Promise<Submitted> {
  const kind = kindNamed(String(json["kind"]));
  assert.ok(kind);
  return await submit(target, granted(subjectOf({ kind, json })));
}

/** The verb, or the refusal. */
function said(submitted: Submitted | undefined): string {
  if (submitted === undefined) return "none";
  return submitted.kind === "done" ? submitted.verb : `refused: ${submitted.why}`;
}

function object(submitted: Submitted): KubeObject {
  assert.ok(submitted.kind === "done");
  return granted(readObject(submitted.object));
}

/** Of what the object was before. */
function specOf(question: Asked | undefined): unknown {
  return new Fields(question?.oldObject).get("spec");
}

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

describe("other objects", () => {
  const set = (replicas: number) =>
    workload("StatefulSet", "mysql", { replicas, annotations: { "berth.dev/ips": "10.20.0.70;10.20.0.71" } });

  it("are created, then changed with their uid kept, then unchanged", async (t) => {
    const world = await worldFor(t, { pools: [DB_POOL] });
    const { target, asked } = counterAt(world);
    assert.equal(said(await send(target, set(1))), "created");
    const second = await send(target, set(2));
    assert.equal(said(second), "configured");
    assert.equal(object(second).metadata.uid, "uuid-1");
    assert.equal(said(await send(target, set(2))), "unchanged");
    assert.deepEqual(
      asked.map(({ operation }) => operation),
      ["CREATE", "UPDATE"],
    );
    assert.deepEqual(specOf(asked[1]), set(1)["spec"]);
    assert.deepEqual(Object.keys(await world.holdings()), ["shop/mysql-0", "shop/mysql-1"]);
  });

  it("differ when labels or annotations do", async (t) => {
    const world = await worldFor(t);
    const { target } = counterAt(world);
    assert.equal(said(await send(target, namespaceObject("shop"))), "created");
    assert.equal(said(await send(target, namespaceObject("shop"))), "unchanged");
    assert.equal(said(await send(target, namespaceObject("shop", {}, { team: "a" }))), "configured");
  });

  it("have the name of a namespace in both fields of its review", async (t) => {
    const world = await worldFor(t);
    const { target, asked } = counterAt(world);
    await send(target, namespaceObject("shop"));
    assert.deepEqual([asked[0]?.name, asked[0]?.namespace], ["shop", "shop"]);
  });

  it("are compared with the store when they are pools", async (t) => {
    const world = await worldFor(t);
    const { target, asked } = counterAt(world);
    const spec = { ranges: [{ cidr: "10.9.0.0/24" }] };
    assert.equal(said(await send(target, poolObject("lab", spec))), "created");
    assert.equal(said(await send(target, poolObject("lab", spec))), "unchanged");
    assert.equal(said(await send(target, poolObject("lab", { ...spec, priority: 1 }))), "configured");
    assert.deepEqual(specOf(asked[1]), spec);
    assert.match(
      said(await send(target, poolObject("lab", { ranges: [] }))),
      /^refused: spec\.ranges is empty/,
    );
    const any = poolObject("any", { ranges: [{ cidr: "10.8.0.0/24" }], default: true });
    assert.equal(said(await send(target, any)), "created");
    assert.equal(said(await send(target, any)), "unchanged", "its size was settled when it was made");
  });

  it("are compared by what a person writes when they are claims", async (t) => {
    const world = await worldFor(t, { pools: [DB_POOL] });
    const { target } = counterAt(world);
    const request = { request: { addresses: ["10.20.0.70"] } };
    assert.equal(said(await send(target, claimObject("vip", request))), "created");
    assert.equal(
      said(await send(target, claimObject("vip", { ...request, retention: { ttl: null } }))),
      "unchanged",
    );
    assert.match(
      said(await send(target, claimObject("vip", { request: { addresses: ["10.20.0.1"] } }))),
      /^refused: address 10\.20\.0\.1 is in no pool/,
    );
  });

  it("are deleted with what they were", async (t) => {
    const world = await worldFor(t, { pools: [DB_POOL] });
    const { target, asked } = counterAt(world);
    await send(target, set(1));
    assert.equal(said(await deleteObject(target, granted(keyOfOperand("sts/shop/mysql")))), "deleted");
    const { operation, object: next, oldObject } = asked.at(-1) ?? {};
    assert.deepEqual({ operation, next }, { operation: "DELETE", next: null });
    assert.equal((oldObject as { metadata: { uid: string } }).metadata.uid, "uuid-1");
    assert.equal(await deleteObject(target, granted(keyOfOperand("sts/shop/mysql"))), undefined);
    assert.equal(said(await deleteObject(target, granted(keyOfOperand("pool/db")))), POOL_HELD);
  });

  it("are deleted by their key when they cannot be read, and made again", async (t) => {
    const world = await worldFor(t, { pools: [DB_POOL] });
    const { target } = counterAt(world);
    const licence = pod("licence", { annotations: { "berth.dev/ips": "10.20.0.70" } });
    const kept = object(await send(target, licence));
    await world.objects.keep({ ...kept, json: new Fields({}) });
    await assert.rejects(send(target, licence), { code: "STATE_CORRUPT" });
    assert.equal(said(await deleteObject(target, granted(keyOfOperand("pod/shop/licence")))), "deleted");
    assert.equal(said(await send(target, licence)), "created");
    assert.equal(said(await send(target, licence)), "unchanged");
  });
});

const POOL_HELD =
  "refused: pool db is in use: it still holds 10.20.0.70 (shop/mysql-0); release them first, or set disabled: true and wait";

describe("a claim", () => {
  it("that a broken-off call has left without addresses is reviewed again, and unchanged from then on", async (t) => {
    const world = await worldFor(t, { pools: [DB_POOL] });
    const { target, asked } = counterAt(world);
    const identity = { kind: "Pod", apiVersion: "v1", name: "licence" };
    const left = { name: "licence", identity, addresses: [], nonce: "", handMade: true };
    await world.realStore.create("claim", claimRecord(left));
    await world.settle();
    const json = claimObject("licence", { request: { addresses: ["10.20.0.70"] } });
    assert.equal(said(await send(target, json)), "configured");
    assert.deepEqual(await world.holdings(), { "shop/licence": "10.20.0.70" });
    assert.equal(said(await send(target, json)), "unchanged");
    assert.equal(asked.length, 1);
  });
});
