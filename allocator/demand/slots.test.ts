// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { entries, podAllocation, slotsFor } from "../../test/support/allocation-requests.ts";
import { assertClean } from "../../test/support/assert-audit.ts";
import { addrs, granted, refusalOf } from "../../test/support/fixtures.ts";
import { overlay } from "../../test/support/overlay.ts";
import type { World } from "../../test/support/world.ts";
import { bind } from "../lifecycle/bind.ts";
import { reserve } from "../lifecycle/reserve.ts";
import type { ClusterState, PodState } from "../model/cluster-state.ts";
import { settleAnswer } from "./admitted-pod.ts";
import { dryRun } from "./allocation-dry-run.ts";
import { allocateSlot, dryRunSlot } from "./slots.ts";
import { admit, detach, FOUR, NO_PROOF, opened, slotOf, start } from "./testing/slots.ts";

async function boundTo(world: World, name: string): Promise<{ slot: string; token: string }> {
  const bound = await admit(world);
  assert.ok(typeof bound !== "string", String(bound));
  await start(world, name, bound);
  return bound;
}

describe("a set of four", () => {
  it("is filled in its order, and refuses the fifth in words", async () => {
    await using world = await opened();
    for (let n = 0; n < 4; n++) assert.equal(await slotOf(world), `web-slot-${n}`);
    assert.deepEqual(Object.values(await world.holdings()), [
      "10.20.0.70",
      "10.20.0.71",
      "10.20.0.72",
      "10.20.0.73",
    ]);
    const before = world.dump();
    assert.equal(
      await slotOf(world),
      "SET_EXHAUSTED: all 4 entries of the list are in use: 10.20.0.70 (web-slot-0) is bound to a pod that was admitted less than 120 s ago; 10.20.0.71 (web-slot-1) is bound to a pod that was admitted less than 120 s ago; 10.20.0.72 (web-slot-2) is bound to a pod that was admitted less than 120 s ago; 10.20.0.73 (web-slot-3) is bound to a pod that was admitted less than 120 s ago; add entries for replicas and maxSurge, or lower them",
    );
    assert.equal(world.dump(), before);
    await assertClean(world);
  });

  it("names the pod that has a slot", async () => {
    await using world = await opened();
    await start(
      world,
      "web-a",
      (await admit(world, entries("10.20.0.70"))) as { slot: string; token: string },
    );
    assert.equal(
      await slotOf(world, entries("10.20.0.70")),
      "SET_EXHAUSTED: the only entry of the list is in use: 10.20.0.70 (web-slot-0) is bound to pod web-a; add entries for replicas and maxSurge, or lower them",
    );
  });

  it("whose slots' names bare pods have names these pods, and not their addresses as entries", async () => {
    await using world = await opened();
    for (let n = 0; n < 2; n++) {
      const stranger = podAllocation(world, `web-slot-${n}`, entries(`10.20.0.17${n}`));
      granted(await reserve(world.context, stranger, "pod"));
    }
    await world.settle();
    const running = { name: "web-slot-1", uid: "u1", node: "node-a", token: "" };
    granted(await bind(world.context, "shop/web-slot-1", running, NO_PROOF));
    await world.settle();
    const makeWay = (n: number) => `give pod web-slot-${n} another name, or delete it`;
    const next = [
      `no pod was seen that has this claim; if Pod web-slot-0 is not there, the name is free 2 minutes after the last pod was admitted for it; if it is, ${makeWay(0)}`,
      `${makeWay(1)}; if it is gone, the claim is released when its pods are gone: try again in a moment`,
    ];
    const taken = (n: number) =>
      `the name of slot ${n} is taken by claim shop/web-slot-${n} of Pod web-slot-${n}, which holds 10.20.0.17${n}: ${next[n]}`;
    const list = entries("10.20.0.70;10.20.0.71");
    const refused = `SET_EXHAUSTED: none of the 2 entries of the list can be used: ${taken(0)}; ${taken(1)}`;
    assert.equal(await slotOf(world, list), refused);
    const would = await dryRunSlot(world.context, world.objects, slotsFor(world, list));
    assert.equal(refusalOf(would), refused);
    assert.equal(await slotOf(world, entries("10.20.0.70;10.20.0.71;10.20.0.72")), "web-slot-2");
    assert.equal(
      await slotOf(world, entries("10.20.0.70;10.20.0.71;10.20.0.72")),
      `SET_EXHAUSTED: none of the 3 entries of the list can be used: ${taken(0)}; ${taken(1)}; 10.20.0.72 (web-slot-2) is bound to a pod that was admitted less than 120 s ago; add entries for replicas and maxSurge, or lower them`,
    );
  });

  it("says how many more there are than it names", async () => {
    await using world = await opened();
    const list = entries("10.20.0.70;10.20.0.71;10.20.0.72;10.20.0.73;10.20.0.74;10.20.0.75");
    for (let n = 0; n < 6; n++) assert.equal(await slotOf(world, list), `web-slot-${n}`);
    assert.match(
      await slotOf(world, list),
      /^SET_EXHAUSTED: all 6 .* \(web-slot-3\) is bound to [^;]*; and 2 more; add entries for replicas/,
    );
  });

  it("allocates a slot again when its pod and its sandbox are gone, and not before", async () => {
    await using world = await opened();
    for (const name of ["web-a", "web-b", "web-c", "web-d"]) await boundTo(world, name);
    await world.objects.forget("Pod", "shop", "web-c");
    assert.match(await slotOf(world), /^SET_EXHAUSTED: .*\(web-slot-2\) is bound to pod web-c;/);
    await detach(world, "web-c", "web-slot-2");
    assert.equal(await slotOf(world), "web-slot-2");
    assert.match(await slotOf(world), /^SET_EXHAUSTED: /);
    await assertClean(world);
  });

  it("allocates a slot again when the pod that it was held for never came", async () => {
    await using world = await opened();
    const first = await admit(world, entries("10.20.0.70"));
    assert.ok(typeof first !== "string");
    world.clock.advance(119_999);
    assert.match(await slotOf(world, entries("10.20.0.70")), /^SET_EXHAUSTED: /);
    world.clock.advance(1);
    const second = await admit(world, entries("10.20.0.70"));
    assert.ok(typeof second !== "string");
    assert.deepEqual([second.slot, second.token === first.token], ["web-slot-0", false]);
    const late = { name: "web-late", uid: "u", node: "node-a", token: first.token };
    assert.match(refusalOf(await bind(world.context, "shop/web-slot-0", late, NO_PROOF)), /^CLAIM_BUSY: /);
  });

  it("allocates a slot again when the pod that it was held for was met, and is gone before it had a node", async () => {
    await using world = await opened();
    const list = entries("10.20.0.70");
    const first = await admit(world, list);
    assert.ok(typeof first !== "string");
    const met = { name: "web-a", uid: "u1", node: "", token: first.token };
    granted(await bind(world.context, "shop/web-slot-0", met, NO_PROOF));
    await world.settle();
    const host = world.objects;
    const seen = (pod: PodState | undefined): ClusterState => ({
      pod: async () => pod,
      admittedWith: async () => pod,
      workload: (ref) => host.workload(ref),
      namespace: (name) => host.namespace(name),
      fenced: (node) => host.fenced(node),
    });
    const asked = async (inventory: ClusterState) =>
      await allocateSlot(world.context, inventory, slotsFor(world, list));
    const there: PodState = {
      ...{ namespace: "shop", name: "web-a", uid: "u1", node: "" },
      ...{ labels: {}, annotations: {}, ended: false },
    };
    const busy = /^SET_EXHAUSTED: .* is bound to pod web-a;/;
    assert.match(refusalOf(await asked(seen(there))), busy);
    assert.match(refusalOf(await asked(host)), busy, "on one host it is named before it is kept");
    for (const gone of [undefined, { ...there, uid: "u2" }, { ...there, ended: true }]) {
      const would = await dryRunSlot(world.context, seen(gone), slotsFor(world, list));
      assert.equal(granted(would).claim, "web-slot-0");
    }
    const next = granted(await asked(seen(undefined)));
    assert.notEqual(next.claim.record.binding?.token, first.token);
    assert.match(
      refusalOf(await bind(world.context, "shop/web-slot-0", { ...met, node: "node-a" }, NO_PROOF)),
      /^CLAIM_BUSY: /,
    );
    await assertClean(world);
  });

  it("follows a list that was edited while a pod waits, and takes the slot again when that one never came", async () => {
    await using world = await opened();
    assert.equal(await slotOf(world, entries("10.20.0.70")), "web-slot-0");
    const edited = entries("10.20.0.80");
    const [allocation = assert.fail()] = slotsFor(world, edited);
    assert.equal(
      (await dryRun(world.context, allocation)).kind,
      "dry-run",
      "the workload may be edited meanwhile",
    );
    world.clock.advance(120_000);
    assert.equal(await slotOf(world, edited), "web-slot-0");
  });

  it("passes over an address that somebody else has", async () => {
    await using world = await opened();
    granted(await reserve(world.context, podAllocation(world, "other", entries("10.20.0.70")), "pod"));
    await world.settle();
    assert.equal(await slotOf(world), "web-slot-1");
  });

  it("stops at a refusal that no other slot would escape", async () => {
    await using world = await opened();
    assert.match(
      await slotOf(world, entries("10.99.0.1;10.20.0.70")),
      /^ADDRESS_OUTSIDE: address 10\.99\.0\.1 is in no pool/,
    );
  });

  it("follows a list that was edited where its pods are gone", async () => {
    await using world = await opened();
    const bound = await boundTo(world, "web-a");
    assert.equal(await slotOf(world, entries("10.20.0.80;10.20.0.71")), "web-slot-1");
    await world.objects.forget("Pod", "shop", "web-a");
    await detach(world, "web-a", bound.slot);
    const edited = entries("10.20.0.80;10.20.0.71");
    const next = await admit(world, edited);
    assert.ok(typeof next !== "string", String(next));
    assert.equal(next.slot, "web-slot-0");
    assert.equal((await world.holdings())["shop/web-slot-0"], "10.20.0.70", "until the pod is there");
    const addresses = addrs("10.20.0.80");
    const answer = { claim: next.slot, token: next.token, addresses, words: addresses };
    const [allocation] = slotsFor(world, edited);
    const hold = allocation?.hold && { ...allocation.hold, token: next.token };
    assert.ok(allocation && hold);
    granted((await settleAnswer(world.context, { ...allocation, hold }, answer)) ?? assert.fail("another's"));
    assert.equal((await world.holdings())["shop/web-slot-0"], "10.20.0.80");
    await assertClean(world);
  });

  it("is there again at once when its Deployment was deleted with Retain and comes back", async () => {
    await using world = await opened();
    const kept = { ...entries("10.20.0.70"), retention: { whenDeleted: "Retain" as const } };
    const bound = await admit(world, kept);
    assert.ok(typeof bound !== "string");
    await start(world, "web-a", bound);
    await world.objects.forget("Pod", "shop", "web-a");
    await detach(world, "web-a", bound.slot);
    await world.objects.forget("Deployment", "shop", "web");
    assert.equal((await world.collector().pass()).retained, 1);
    await world.settle();
    const back = await admit(world, kept);
    assert.ok(typeof back !== "string", String(back));
    assert.equal(back.slot, "web-slot-0");
    const retained = async () => (await world.realStore.get("claim", "shop/web-slot-0"))?.record.retained;
    assert.notEqual(await retained(), undefined, "a review alone takes nothing back");
    await start(world, "web-b", back);
    assert.equal(await retained(), undefined);
  });

  it("is shared out among pods that come together: none waits for another's turn at a slot", async () => {
    await using world = await opened();
    const calls = new Map<number, number>(); // pod -> calls of the store for it
    const list = entries(Array.from({ length: 24 }, (_, n) => `10.20.0.${70 + n}`).join(";"));
    const asks = Array.from({ length: 16 }, async (_, pod) => {
      const counted = async <T>(call: () => Promise<T>): Promise<T> => {
        calls.set(pod, (calls.get(pod) ?? 0) + 1);
        await nextTurn();
        return await call();
      };
      const { store } = world.context;
      const remote = overlay(store, {
        get: (kind, key) => counted(() => store.get(kind, key)),
        create: (kind, record) => counted(() => store.create(kind, record)),
        replace: (kind, seen, next) => counted(() => store.replace(kind, seen, next)),
      });
      const got = await allocateSlot(
        { ...world.context, store: remote },
        world.objects,
        slotsFor(world, list),
      );
      return granted(got).claim.record.name;
    });
    const slots = await Promise.all(asks);
    assert.deepEqual(slots.toSorted(), Array.from({ length: 16 }, (_, n) => `web-slot-${n}`).toSorted());
    // One alone costs 4. When each waited for the others, the last of 16 made 42.
    const most = Math.max(...calls.values());
    assert.ok(most <= 8, `a pod costs ${most} calls`);
    await world.settle();
    await assertClean(world);
  });

  it("allocates each slot once, however many ask at the same time", async () => {
    await using world = await opened();
    const answers = await Promise.all(
      Array.from({ length: 7 }, (_, n) => admit(world, FOUR, n % 2 === 0 ? world.context : world.another(n))),
    );
    const bound = answers.filter((answer) => typeof answer !== "string");
    assert.ok(bound.length <= 4 && bound.length >= 1);
    assert.equal(new Set(bound.map(({ slot }) => slot)).size, bound.length);
    assert.ok(answers.every((answer) => typeof answer !== "string" || answer.startsWith("SET_EXHAUSTED: ")));
    for (const { slot, token } of bound) {
      assert.equal((await world.realStore.get("claim", `shop/${slot}`))?.record.binding?.token, token);
    }
    await assertClean(world);
  });
});
