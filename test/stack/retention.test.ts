// SPDX-License-Identifier: Apache-2.0
// When addresses are let go, and when not. The stack runs in this process on a clock that leaps; reviews go over TLS and
// ADDs through build/berth all the same.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { describe, it } from "node:test";
import { deployment, namespace, pod, podOf, pool, replicaOf, statefulSet } from "../support/manifests.ts";
import { PlainStack } from "../support/plain-stack.ts";
import type { Manifest } from "../support/review.ts";
import { failureOf, sandboxOf } from "../support/runtime.ts";
import { TimedStack } from "../support/timed-stack.ts";

const FEW = pool("few", ["10.40.0.0/24"], { limits: { retention: { perNamespace: 2, ttl: "1h" } } });
const MANIFESTS = [namespace("shop"), pool("db", ["10.20.0.0/24"]), pool("pins", ["10.30.0.0/24"]), FEW];
/** Invariant 6: of what nobody needs any more, on a node that lives. */
const FREE_WITHIN_MS = 60_000;
/** Invariant 6: of a reservation whose pod never came. */
const NEVER_CAME_WITHIN_MS = 120_000;
const COOLDOWN_MS = 30_000;
const HOUR_MS = 3_600_000;

describe("retention", () => {
  const site = new PlainStack(() => TimedStack.start({ manifests: MANIFESTS }));

  async function claims(prefix: string): Promise<string> {
    const names = Object.keys(await site.stack.claims("shop"));
    return names.filter((name) => name.startsWith(prefix)).join(" ");
  }

  /** Time passes until those claims are left, which must be soon enough. */
  async function untilLeft(prefix: string, names: string, withinMs = FREE_WITHIN_MS): Promise<void> {
    await site.stack.passTime(`claims ${names} are left`, withinMs, async () =>
      (await claims(prefix)) === names ? true : undefined,
    );
  }

  function sized(name: string, replicas: number, more: Readonly<Record<string, string>> = {}): Manifest {
    return statefulSet("shop", name, { replicas }, { "berth.dev/pools": "db", ...more });
  }

  it("E0130 scaling down keeps the addresses, until the StatefulSet is scaled up again", async () => {
    const set = await site.api.create(sized("kept", 3));
    const before = await site.stack.claims("shop");
    const last = await site.run(podOf(set, 2));
    await site.api.create(sized("kept", 1));
    await site.end(last);
    await site.stack.clock.leap(HOUR_MS, HOUR_MS / 10);
    assert.deepEqual(await site.stack.claims("shop"), before);
    assert.equal((await site.stack.claim("shop/kept-2"))?.retained?.because, "scaled");
    const again = await site.api.create(sized("kept", 3));
    assert.deepEqual((await site.run(podOf(again, 2))).addresses, last.addresses);
  });

  it("E0131 with when-scaled: Release scaling down lets go, once the pods are gone", async () => {
    const released = { "berth.dev/when-scaled": "Release" };
    const set = await site.api.create(sized("scaled", 3, released));
    const last = await site.run(podOf(set, 2));
    await site.api.create(sized("scaled", 1, released));
    // ordinal 1 never had a pod; ordinal 2 has one that runs
    await untilLeft("scaled", "scaled-0 scaled-2");
    await site.stack.clock.leap(HOUR_MS, HOUR_MS / 10);
    assert.equal(await claims("scaled"), "scaled-0 scaled-2");
    await site.end(last);
    await untilLeft("scaled", "scaled-0");
  });

  it("a pod of a StatefulSet that nobody applied leaves its address to the next one, for as long as its pool keeps it", async () => {
    const asks = { "berth.dev/pools": "few" };
    const never = { ...statefulSet("shop", "never", { replicas: 2 }, asks), uid: "uid-of-never" };
    const reviewed = { route: "/validate/workloads", operation: "CREATE", oldObject: null } as const;
    await site.api.ask({ ...reviewed, object: never, dryRun: true });
    const first = await site.run(podOf(never, 0));
    await site.end(first);
    await site.stack.clock.leap(HOUR_MS / 2, HOUR_MS / 10);
    const second = await site.run(podOf(never, 0));
    assert.deepEqual(second.addresses, first.addresses);
    await site.end(second);
    await untilLeft("never", "", HOUR_MS + FREE_WITHIN_MS);
  });

  it("E0132 deleting a StatefulSet lets go by default, and of nothing that a sandbox uses", async () => {
    const set = await site.api.create(sized("gone", 2));
    const running = await site.run(podOf(set, 0));
    await site.api.delete(set);
    await untilLeft("gone", "gone-0");
    // Force-deleted: the object is gone, the sandbox is not.
    await site.api.delete(running.kept);
    await site.stack.clock.leap(10 * FREE_WITHIN_MS);
    assert.equal(await claims("gone"), "gone-0");
    await site.runtime.detach(running.sandbox);
    await untilLeft("gone", "");
  });

  it("E0133 with when-deleted: Retain they stay, and a StatefulSet of the same name has them again", async () => {
    const retained = { "berth.dev/when-deleted": "Retain" };
    const set = await site.api.create(sized("stays", 2, retained));
    const before = await site.stack.claims("shop");
    for (const ordinal of [0, 1]) await site.end(await site.run(podOf(set, ordinal)));
    await site.api.delete(set);
    await site.stack.clock.leap(HOUR_MS, HOUR_MS / 10);
    assert.equal(await claims("stays"), "stays-0 stays-1");
    const again = await site.api.create(sized("stays", 2, retained));
    assert.notEqual(again.metadata.uid, set.metadata.uid);
    const running = await site.run(podOf(again, 1));
    assert.deepEqual(running.addresses, [`${before["stays-1"]}/24`]);
    assert.equal((await site.stack.claim("shop/stays-1"))?.retained, undefined);
  });

  it("E0134 retained addresses are let go after their ttl", async () => {
    const brief = { "berth.dev/when-deleted": "Retain", "berth.dev/ttl": "30m" };
    const set = await site.api.create(sized("brief", 1, brief));
    await site.end(await site.run(podOf(set, 0)));
    await site.api.delete(set);
    await site.stack.clock.leap(HOUR_MS / 2 - FREE_WITHIN_MS, HOUR_MS / 20);
    assert.equal(await claims("brief"), "brief-0");
    await untilLeft("brief", "", 2 * FREE_WITHIN_MS);
  });

  it("E0141 a StatefulSet that never had a pod keeps nothing when it is deleted, whatever it asks for", async () => {
    const set = await site.api.create(sized("squat", 100, { "berth.dev/when-deleted": "Retain" }));
    assert.equal((await claims("squat")).split(" ").length, 100);
    await site.api.delete(set);
    await untilLeft("squat", "");
  });

  it("E0142 a namespace keeps no more retained claims than the pool's limit, and none beyond its ttl", async () => {
    const retained = { "berth.dev/when-deleted": "Retain", "berth.dev/pools": "few" };
    const set = await site.api.create(sized("few", 4, retained));
    const running = await Promise.all([0, 1, 2, 3].map((ordinal) => site.run(podOf(set, ordinal))));
    for (const each of running) await site.end(each);
    await site.api.delete(set);
    await site.stack.passTime("two are kept", FREE_WITHIN_MS, async () =>
      (await claims("few")).split(" ").length === 2 ? true : undefined,
    );
    await site.stack.clock.leap(HOUR_MS - 2 * FREE_WITHIN_MS, HOUR_MS / 10);
    assert.equal((await claims("few")).split(" ").length, 2);
    await untilLeft("few", "", 3 * FREE_WITHIN_MS);
  });

  it("E0143 ttl, when-deleted and when-scaled of a namespace hold for its StatefulSets that ask for nothing", async () => {
    const annotations = {
      "berth.dev/pools": "db",
      "berth.dev/when-scaled": "Release",
      "berth.dev/when-deleted": "Retain",
      "berth.dev/ttl": "30m",
    };
    await site.api.create(namespace("brief", { annotations, labels: { "berth.dev/admission": "enabled" } }));
    const left = async () => Object.keys(await site.stack.claims("brief")).join(" ");
    const until = (names: string, withinMs: number) =>
      site.stack.passTime(`claims "${names}" are left`, withinMs, async () =>
        (await left()) === names ? true : undefined,
      );
    const set = await site.api.create(statefulSet("brief", "db", { replicas: 2 }, {}));
    const [first, second] = [await site.run(podOf(set, 0)), await site.run(podOf(set, 1))];
    await site.api.create(statefulSet("brief", "db", { replicas: 1 }, {}));
    await site.end(second);
    await until("db-0", FREE_WITHIN_MS);
    await site.end(first);
    await site.api.delete(set);
    await site.stack.clock.leap(HOUR_MS / 2 - FREE_WITHIN_MS, HOUR_MS / 20);
    assert.equal(await left(), "db-0", "a default of Berth would have let it go with the StatefulSet");
    await until("", 2 * FREE_WITHIN_MS);
  });

  it("E0135 an address whose pod never came is free again", async () => {
    await site.api.ask({
      route: "/mutate/pods",
      operation: "CREATE",
      object: pod("shop", "refused-later", { "berth.dev/ips": "10.30.0.35" }),
      oldObject: null,
      dryRun: false,
    });
    assert.equal((await site.stack.holders())["10.30.0.35"], "shop/refused-later");
    await site.stack.clock.leap(NEVER_CAME_WITHIN_MS / 2);
    assert.equal(await claims("refused"), "refused-later", "a pod may be slow");
    await untilLeft("refused", "", NEVER_CAME_WITHIN_MS / 2 + 10_000);
  });

  it("E0136 a released address cools down, except for the identity that had it", async () => {
    const pinned = (name: string) => pod("shop", name, { "berth.dev/ips": "10.30.0.46" });
    const first = await site.run(pinned("first"));
    await site.end(first);
    await untilLeft("first", "");
    const { reason, message } = await site.api.refusal(pinned("second"));
    assert.equal(reason, "ADDRESS_TAKEN");
    assert.match(
      message,
      /^address 10\.30\.0\.46 in pool "pins" was given back by shop\/first and is cooling down; free nearby: 10\.30\.0\.45, 10\.30\.0\.47, 10\.30\.0\.44; or this one after \d\d:\d\d:\d\d UTC$/,
    );
    const again = await site.run(pinned("first"));
    await site.end(again);
    await untilLeft("first", "");
    await site.stack.clock.leap(COOLDOWN_MS);
    assert.deepEqual((await site.run(pinned("second"))).addresses, ["10.30.0.46/24"]);
  });

  it("E0137 a sandbox that goes without a DEL is found, and its pod's address let go", async () => {
    const netns = join(site.stack.folder, "netns");
    writeFileSync(netns, "");
    const kept = await site.api.create(pod("shop", "lost", { "berth.dev/ips": "10.30.0.37" }));
    const sandbox = sandboxOf(kept, { netns });
    await site.runtime.attach(sandbox);
    await site.api.delete(kept);
    await site.stack.clock.leap(10 * FREE_WITHIN_MS);
    assert.deepEqual(await site.stack.attachedContainers(), [sandbox.containerID]);
    await rm(netns);
    await site.stack.passTime("it is detached", FREE_WITHIN_MS, async () =>
      (await site.stack.attachedContainers()).length === 0 ? true : undefined,
    );
    await untilLeft("lost", "");
  });

  it("E0138 a new pod is told to try again while the sandbox of the old one may be up", async () => {
    const netns = join(site.stack.folder, "netns-busy");
    writeFileSync(netns, "");
    const busy = pod("shop", "busy", { "berth.dev/ips": "10.30.0.38" });
    const old = await site.api.create(busy);
    const before = sandboxOf(old, { netns });
    await site.runtime.attach(before);
    await site.api.delete(old);
    const next = sandboxOf(await site.api.create(busy));
    const adding = site.runtime.add(next);
    await site.stack.passWhile(adding);
    assert.deepEqual(failureOf(await adding), {
      code: 11,
      msg: `claim shop/busy: container ${before.containerID} of another pod still uses it; it is free after that one's DEL`,
    });
    await site.runtime.detach(before);
    assert.deepEqual(await site.runtime.attach(next), ["10.30.0.38/24"]);
    await rm(netns);
  });

  it("E0139 a slot that was held for a pod that never came goes to another", async () => {
    const annotations = { "berth.dev/ips": "10.30.0.139" };
    const gate = await site.api.create(deployment("shop", "gate", { replicas: 1 }, annotations));
    await site.api.ask({
      route: "/mutate/pods",
      operation: "CREATE",
      object: replicaOf(gate),
      oldObject: null,
      dryRun: false,
    });
    const { reason, message } = await site.api.refusal(replicaOf(gate));
    assert.equal(reason, "SET_EXHAUSTED");
    assert.match(
      message,
      /10\.30\.0\.139 \(gate-slot-0\) is bound to a pod that was admitted less than 120 s ago/,
    );
    await site.stack.clock.leap(NEVER_CAME_WITHIN_MS);
    assert.deepEqual((await site.run(replicaOf(gate))).addresses, ["10.30.0.139/24"]);
  });

  it("E0140 deleting a Deployment lets its slots go, and no sooner than its sandboxes", async () => {
    const annotations = { "berth.dev/ips": "10.30.0.141-10.30.0.142" };
    const pair = await site.api.create(deployment("shop", "pair", { replicas: 2 }, annotations));
    const [a, b] = [await site.run(replicaOf(pair)), await site.run(replicaOf(pair))];
    await site.api.delete(pair);
    await site.end(a);
    await untilLeft("pair", "pair-slot-1");
    await site.end(b);
    await untilLeft("pair", "");
  });
});
