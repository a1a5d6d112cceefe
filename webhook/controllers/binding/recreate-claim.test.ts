// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { isRefusal } from "../../../allocator/base/errors.ts";
import { release } from "../../../allocator/lifecycle/release.ts";
import { ASSIGNED_TOKEN } from "../../../allocator/manifest/annotations.ts";
import type { Claim } from "../../../allocator/model/claim.ts";
import type { Connection } from "../../../kube/api/connection.ts";
import { DB_POOL, poolRecord } from "../../../test/support/fixtures.ts";
import {
  annotationsOf,
  applied,
  deploymentPod,
  type Json,
  ownedBy,
  pod,
  review,
} from "../../../test/support/objects.ts";
import { openWorld, type World } from "../../../test/support/world.ts";
import type { PoolAccess } from "../../admission/admission-context.ts";
import { mutatePods } from "../../admission/mutate-pod.ts";
import { recreateClaim } from "./recreate-claim.ts";

const POOLS = [DB_POOL, poolRecord("vault", "10.50.0.0/29", { authorization: "ServiceAccount" })];
const VAULT = { "berth.dev/pools": "vault" };
const TELLER: PoolAccess = { mayUse: async ({ name }) => name === "teller" };
const NOBODY: PoolAccess = { mayUse: async () => false };

/** What the API server has of the pod, from admission on. */
async function stored(world: World, object: Json, access: PoolAccess): Promise<Json> {
  const response = await mutatePods({ ...world.admission, access })(
    review(object),
    new AbortController().signal,
  );
  await world.settle();
  const made = applied(object, response);
  const metadata = made["metadata"] as Json;
  const name = metadata["name"] ?? `${String(metadata["generateName"])}x7k2p`;
  const server = { name, uid: "uid-1", resourceVersion: "1", creationTimestamp: "2026-01-01T00:00:00Z" };
  return { ...made, metadata: { ...metadata, ...server } };
}

function serving(object: Json): Connection {
  return {
    call: async () => ({ status: 200, body: object }),
    stream: () => Promise.reject(new Error("nothing is watched here")),
    close: () => {},
  };
}

async function again(world: World, object: Json, access: PoolAccess = TELLER) {
  const { name, namespace, uid } = object["metadata"] as Readonly<Record<string, string>>;
  const inventory = { live: world.objects, cached: world.objects };
  const deps = { context: world.context, inventory, connection: serving(object), access };
  const got = await recreateClaim(deps, { name: name ?? "", namespace: namespace ?? "", uid: uid ?? "" });
  await world.settle();
  return got;
}

/** The only claim: its name, addresses, identity and the token of its hold. */
async function onlyClaim(
  world: World,
): Promise<Pick<Claim, "name" | "addresses" | "identity"> & { token: string }> {
  const [claim, ...others] = await world.all("claim");
  assert.ok(claim !== undefined && others.length === 0, "one claim");
  const { name, addresses, identity, binding } = claim.record;
  return { name, addresses, identity, token: binding?.token ?? "" };
}

async function letGo(world: World): Promise<void> {
  for (const claim of await world.all("claim")) await release(world.context, claim);
  await world.settle();
  assert.deepEqual(await world.holdings(), {});
}

const KINDS: Readonly<Record<string, Json>> = {
  "a named pod": pod("a", { annotations: { "berth.dev/pools": "db" } }),
  "a pod from generateName": pod("", { generateName: "etl-", annotations: { "berth.dev/pools": "db" } }),
  "a pod of a Deployment with a list": deploymentPod("web", {
    annotations: { "berth.dev/ips": "10.20.0.70;10.20.0.71" },
  }),
  "a pod of a Deployment by pool": deploymentPod("web", { annotations: { "berth.dev/pools": "db" } }),
  "a pod of an indexed Job": pod("", {
    generateName: "train-2-",
    annotations: { "berth.dev/pools": "db", "batch.kubernetes.io/job-completion-index": "2" },
    owner: ownedBy("Job", "train", "batch/v1"),
  }),
  "a pod whose pool needs the verb use": pod("a", {
    annotations: VAULT,
    spec: { serviceAccountName: "teller" },
  }),
  "one from generateName whose pool needs the verb use": pod("", {
    generateName: "etl-",
    annotations: VAULT,
    spec: { serviceAccountName: "teller" },
  }),
};

describe("a claim that went while its pod was on its way", () => {
  for (const [kind, object] of Object.entries(KINDS)) {
    it(`is made again for ${kind}: name, addresses and token as they stand in the pod`, async () => {
      await using world = await openWorld({ pools: POOLS });
      const made = await stored(world, object, TELLER);
      const before = await onlyClaim(world);
      assert.equal(before.token, annotationsOf(made)[ASSIGNED_TOKEN] ?? "");
      await letGo(world);
      const got = await again(world, made);
      assert.equal(got?.kind, "reserved");
      assert.deepEqual(await onlyClaim(world), before);
      assert.ok(await again(world, made));
      assert.deepEqual(await onlyClaim(world), before, "asked twice, made once");
    });
  }

  it("is not made for a pod whose account lost the verb meanwhile", async () => {
    await using world = await openWorld({ pools: POOLS });
    const object = pod("a", { annotations: VAULT, spec: { serviceAccountName: "teller" } });
    const made = await stored(world, object, TELLER);
    await letGo(world);
    const got = await again(world, made, NOBODY);
    assert.ok(isRefusal(got) && got.code === "POOL_FORBIDDEN");
    assert.deepEqual(await world.holdings(), {});
  });

  it("stays with the pod that has the slot by now", async () => {
    await using world = await openWorld({ pools: POOLS });
    const object = deploymentPod("web", { annotations: { "berth.dev/ips": "10.20.0.70" } });
    const made = await stored(world, object, NOBODY);
    await letGo(world);
    const next = await stored(world, object, NOBODY);
    const got = await again(world, made);
    assert.ok(isRefusal(got) && got.code === "SET_EXHAUSTED");
    assert.equal((await onlyClaim(world)).token, annotationsOf(next)[ASSIGNED_TOKEN]);
  });

  it("is not made by the word of annotations alone", async () => {
    await using world = await openWorld({ pools: POOLS });
    const asking = { "berth.dev/pools": "db", "berth.dev/claim": "b", "berth.dev/addresses": "10.20.0.70" };
    const server = { name: "a", namespace: "shop", uid: "u", resourceVersion: "1" };
    for (const annotations of [
      asking,
      { ...asking, "berth.dev/token": "t" },
      { "berth.dev/claim": "a", "berth.dev/addresses": "10.20.0.70" },
      { "berth.dev/claim": "a", "berth.dev/pools": "db" },
    ]) {
      const forged = { ...pod("a"), metadata: { ...server, annotations } };
      assert.equal(await again(world, forged), undefined);
    }
    assert.deepEqual(await world.holdings(), {});
  });
});
