// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Store } from "../../allocator/store/store.ts";
import { assertClean } from "../../test/support/assert-audit.ts";
import { addrs, attachmentOf, bindingTo, DB_POOL } from "../../test/support/fixtures.ts";
import { claimObject, deniedAs, type Json, pod, review } from "../../test/support/objects.ts";
import { overlay } from "../../test/support/overlay.ts";
import { admitPod, send } from "../../test/support/reviewing.ts";
import { openWorld, type World } from "../../test/support/world.ts";
import { validateClaims } from "./validate-claim.ts";

const POOLS = [DB_POOL];
const resolved = (addresses: readonly string[]) => claimObject("licence", { request: { addresses } });

async function said(world: World, object: Json, over = {}): Promise<string> {
  const response = await send(world, "/validate/claims", object, over);
  return response.allowed ? (response.warnings ?? []).join(" | ") : deniedAs(response);
}

async function stored(world: World, key = "shop/licence") {
  return (await world.realStore.get("claim", key))?.record;
}

/** What it is asked for first is not there yet. */
function blindOnce(store: Store): Store {
  let looks = 0;
  return overlay(store, {
    get: async (kind, key) => (looks++ === 0 ? undefined : await store.get(kind, key)),
  });
}

/** Somebody acts just before the second look. */
function overtaken(store: Store, act: () => Promise<void>): Store {
  let looks = 0;
  return overlay(store, {
    get: async (kind, key) => {
      if (looks++ === 1) await act();
      return await store.get(kind, key);
    },
  });
}

describe("a claim that is deleted", () => {
  async function used(world: World, detached: boolean): Promise<void> {
    await said(world, resolved(["10.20.0.70"]));
    const seen = await world.realStore.get("claim", "shop/licence");
    assert.ok(seen);
    const bound = await world.realStore.replace("claim", seen, {
      ...seen.record,
      binding: bindingTo("licence", "node-a"),
    });
    assert.ok(bound.kind === "replaced");
    await world.realStore.report(bound.stored, {
      attachment: attachmentOf("licence", { detached }),
    });
    await world.settle();
  }

  it("gives its addresses back", async () => {
    await using world = await openWorld({ pools: POOLS });
    await used(world, true);
    const before = world.dump();
    assert.equal(await said(world, resolved(["10.20.0.70"]), { operation: "DELETE", dryRun: true }), "");
    assert.equal(world.dump(), before);
    assert.equal(await said(world, resolved(["10.20.0.70"]), { operation: "DELETE" }), "");
    assert.deepEqual(await world.holdings(), {});
    assert.equal((await world.all("reservation"))[0]?.record.releasedAt, world.clock.now());
    assert.equal(await said(world, resolved(["10.20.0.70"]), { operation: "DELETE" }), "");
    await assertClean(world);
  });

  it("stays as long as a pod uses it", async () => {
    await using world = await openWorld({ pools: POOLS });
    await used(world, false);
    assert.equal(
      await said(world, resolved(["10.20.0.70"]), { operation: "DELETE" }),
      "CLAIM_BUSY: claim shop/licence is in use by pod licence on node node-a; delete the pod first",
    );
    assert.equal((await stored(world))?.releasing, undefined);
  });

  it("goes all the same when the node of that pod is fenced", async () => {
    await using world = await openWorld({ pools: POOLS });
    await used(world, false);
    const inventory = {
      pod: world.objects.pod.bind(world.objects),
      workload: world.objects.workload.bind(world.objects),
      namespace: world.objects.namespace.bind(world.objects),
      fenced: async (node: string) => node === "node-a",
    };
    const validate = validateClaims({ ...world.admission, inventory });
    const response = await validate(review(resolved(["10.20.0.70"]), "DELETE"), new AbortController().signal);
    assert.equal(response.allowed, true);
    assert.deepEqual(await world.holdings(), {});
  });

  it("is not made of one that a pod came to have while it was looked at", async () => {
    await using world = await openWorld({ pools: POOLS });
    await admitPod(world, pod("licence", { annotations: { "berth.dev/ips": "10.20.0.71" } }));
    const validate = validateClaims({
      ...world.admission,
      context: { ...world.context, store: blindOnce(world.realStore) },
    });
    assert.equal(
      deniedAs(await validate(review(resolved(["10.20.0.70"])), new AbortController().signal)),
      "CLAIM_BUSY: claim shop/licence exists already and holds 10.20.0.71; release it first, or choose another name",
    );
    assert.deepEqual((await stored(world))?.addresses, addrs("10.20.0.71"));
  });
});

describe("a claim that is deleted while its addresses are reserved", () => {
  for (const [title, next, words] of [
    [
      "is not made again",
      undefined,
      "CLAIM_RELEASING: claim shop/licence was deleted while its addresses were reserved; create it again if it is wanted",
    ],
    [
      "leaves that of a pod, which came after it, as it is",
      "10.20.0.71",
      "CLAIM_BUSY: claim shop/licence exists already and holds 10.20.0.71; release it first, or choose another name",
    ],
  ] as const) {
    it(title, async () => {
      await using world = await openWorld({ pools: POOLS });
      const store = overtaken(world.realStore, async () => {
        const made = await world.realStore.get("claim", "shop/licence");
        if (made !== undefined) await world.realStore.remove("claim", made);
        if (next !== undefined)
          await admitPod(world, pod("licence", { annotations: { "berth.dev/ips": next } }));
      });
      const validate = validateClaims({ ...world.admission, context: { ...world.another(2), store } });
      assert.equal(
        deniedAs(await validate(review(resolved(["10.20.0.70"])), new AbortController().signal)),
        words,
      );
      assert.deepEqual(await world.holdings(), next === undefined ? {} : { "shop/licence": next });
      assert.notEqual((await stored(world))?.handMade, true);
      await assertClean(world);
    });
  }
});
