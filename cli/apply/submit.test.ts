// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Fields } from "../../allocator/manifest/kubernetes-object.ts";
import { claimRecord, DB_POOL, granted } from "../../test/support/fixtures.ts";
import { claimObject, namespaceObject, pod, poolObject, workload } from "../../test/support/objects.ts";
import { counterAt, object, said, send, specOf, worldFor } from "../testing/submitted.ts";
import { keyOfOperand } from "./object-ref.ts";
import { deleteObject } from "./submit.ts";

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
