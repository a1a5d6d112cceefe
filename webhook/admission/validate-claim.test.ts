// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { assertClean } from "../../test/support/assert-audit.ts";
import { addrs, claimRecord, DB_POOL, poolRecord, reservationsOf } from "../../test/support/fixtures.ts";
import { claimObject, deniedAs, type Json, pod, review } from "../../test/support/objects.ts";
import { admitPod, createPod, send } from "../../test/support/reviewing.ts";
import { openWorld, type World } from "../../test/support/world.ts";
import { validateClaims } from "./validate-claim.ts";

const ROUTE = "/validate/claims";
const POOLS = [
  DB_POOL,
  poolRecord("vault", "10.50.0.0/29", { namespaceSelector: { matchLabels: { team: "bank" } } }),
];
const resolved = (addresses: readonly string[], more: Json = {}) =>
  claimObject("licence", { request: { addresses }, ...more });

async function said(world: World, object: Json, over = {}): Promise<string> {
  const response = await send(world, ROUTE, object, over);
  return response.allowed ? (response.warnings ?? []).join(" | ") : deniedAs(response);
}

async function stored(world: World, key = "shop/licence") {
  return (await world.realStore.get("claim", key))?.record;
}

describe("a claim made by hand", () => {
  it("is reserved there and then, and its author's", async () => {
    await using world = await openWorld({ pools: POOLS });
    assert.equal(
      await said(world, resolved(["10.20.0.70", "fd00:20::7"], { retention: { ttl: "48h" } })),
      "",
    );
    const claim = await stored(world);
    assert.deepEqual(
      [claim?.addresses, claim?.handMade, claim?.retention.ttlMs],
      [addrs("10.20.0.70", "fd00:20::7"), true, 172_800_000],
    );
    await assertClean(world);
    world.clock.advance(1e9);
    await world.collector().pass();
    assert.ok(await stored(world));
  });

  it("may be sent again without changing anything", async () => {
    await using world = await openWorld({ pools: POOLS });
    const object = resolved(["10.20.0.70"]);
    await said(world, object);
    const before = world.dump();
    assert.equal(await said(world, object), "");
    assert.equal(await said(world, object, { operation: "UPDATE" }), "");
    assert.equal(world.dump(), before);
  });

  it("may be changed by its author, who is believed in all of it", async () => {
    await using world = await openWorld({ pools: POOLS });
    await said(world, resolved(["10.20.0.70"], { interface: "net1" }));
    const identity = { kind: "VirtualMachineInstance", apiVersion: "kubevirt.io/v1", name: "licence" };
    const anew = resolved(["10.20.0.71"], { retention: { whenDeleted: "Retain" }, identity });
    assert.equal(await said(world, anew, { operation: "UPDATE" }), "");
    const claim = await stored(world);
    assert.deepEqual(claim?.addresses, addrs("10.20.0.71"));
    assert.deepEqual(claim?.request, { addresses: addrs("10.20.0.71") });
    assert.deepEqual(
      [claim?.retention.whenDeleted, claim?.identity, claim?.interface],
      ["Retain", identity, undefined],
    );
    await assertClean(world);
  });

  const refused: readonly (readonly [string, Json, string])[] = [
    [
      "for an address that is taken",
      resolved(["10.20.0.90"]),
      'ADDRESS_TAKEN: address 10.20.0.90 in pool "db" is held by shop/other (Pod other); free nearby: 10.20.0.89, 10.20.0.91, 10.20.0.88; or delete pod other, and if its claim stays: berthctl release shop/other',
    ],
    [
      "for an address outside",
      resolved(["192.0.2.1"]),
      'ADDRESS_OUTSIDE: address 192.0.2.1 is in no pool; name one of a pool: "db" 10.20.0.50-10.20.0.199',
    ],
    [
      "of a pool that is not open to it",
      resolved(["10.50.0.1"]),
      'POOL_FORBIDDEN: pool "vault" is not open to namespace shop; open to it: "db"',
    ],
    [
      "that nobody can read",
      resolved(["10.20.0.7/24"]),
      'REQUEST_INVALID: spec.request.addresses[0] "10.20.0.7/24" is not an IP address',
    ],
    [
      "with what is Berth's to write",
      resolved(["10.20.0.70"], { nonce: "mine" }),
      "REQUEST_INVALID: spec.nonce is written by Berth; leave it out",
    ],
    [
      "for a slot",
      resolved(["10.20.0.70"], {
        identity: { kind: "Deployment", apiVersion: "apps/v1", name: "web", slot: 0 },
      }),
      "REQUEST_INVALID: spec.identity.slot is given by Berth alone: a slot's claim cannot be made by hand; write the address into berth.dev/ips of the workload's template",
    ],
    [
      "under the name of a claim that Berth made",
      claimObject("other", { request: { addresses: ["10.20.0.90"] } }),
      "CLAIM_BUSY: claim shop/other exists already and holds 10.20.0.90; release it first, or choose another name",
    ],
    [
      "that is none",
      { ...resolved(["10.20.0.70"]), kind: "IPPool" },
      "OBJECT_INVALID: this webhook decides about IPClaim, and the object is of kind IPPool; install the webhook configurations from the chart",
    ],
  ];
  for (const [title, object, words] of refused) {
    it(`${title} is refused and does not stay, dry or not`, async () => {
      await using world = await openWorld({ pools: POOLS });
      await admitPod(world, pod("other", { annotations: { "berth.dev/ips": "10.20.0.90" } }));
      assert.equal(await said(world, object, { dryRun: true }), words);
      assert.equal(await said(world, object), words);
      assert.deepEqual(await world.holdings(), { "shop/other": "10.20.0.90" });
      await assertClean(world);
    });
  }

  it("for an ordinal whose pods are called otherwise is made with a warning", async () => {
    await using world = await openWorld({ pools: POOLS });
    const identity = { kind: "StatefulSet", apiVersion: "apps/v1", name: "s9", ordinal: 0 };
    const words =
      "claim shop/licence is for StatefulSet s9, ordinal 0, and does not serve it: only a claim that is called s9-0 does; make it under that name";
    const dry = await said(world, resolved(["10.20.0.70"], { identity }), { dryRun: true });
    assert.equal(dry, `${words} | claim shop/licence would get 10.20.0.70 from pool db`);
    assert.equal(await said(world, resolved(["10.20.0.70"], { identity })), words);
    const named = claimObject("s9-0", { identity, request: { addresses: ["10.20.0.71"] } });
    assert.equal(await said(world, named), "");
  });

  it("for a pod that is called otherwise is made with a warning, which is the only one", async () => {
    await using world = await openWorld({ pools: POOLS });
    const identity = { kind: "Pod", apiVersion: "v1", name: "scanner" };
    const object = resolved(["10.20.0.70"], { identity });
    const words =
      "claim shop/licence is for Pod scanner, and does not serve it: only a claim that is called scanner does; make it under that name";
    assert.deepEqual(await toldInCluster(world, object), [words]);
    assert.equal(await said(world, object), words);
    const index = { kind: "Job", apiVersion: "batch/v1", name: "sums", ordinal: 0 };
    const named = claimObject("sums-0", { identity: index, request: { addresses: ["10.20.0.71"] } });
    assert.deepEqual(await toldInCluster(world, named), [], "no pod is called so");
  });

  it("for a pod that is on a node already says that it comes too late for it", async () => {
    await using world = await openWorld({ pools: POOLS });
    const object = resolved(["10.20.0.70"]);
    const early = /^a pod licence that asks for nothing is bound to this claim, but may start before that/;
    assert.match((await toldInCluster(world, object)).join(" | "), early);
    await createPod(world, pod("licence"), "licence");
    assert.match((await toldInCluster(world, object)).join(" | "), early, "it waits for a node");
    await createPod(world, pod("other", { spec: { nodeName: "node-a" } }), "other");
    const late = claimObject("other", { request: { addresses: ["10.20.0.71"] } });
    assert.deepEqual(await toldInCluster(world, late), [
      "pod shop/other is on a node already: if it runs, it keeps the address that it has for as long as it lives, and 10.20.0.71 waits for the next pod of that name; delete the pod and create it again",
    ]);
  });

  it("goes on to take over where a hand-over was broken off, whether it says so again or not", async () => {
    for (const more of [{}, { takesOver: "old" }]) {
      await using world = await openWorld({ pools: POOLS });
      await brokenOff(world);
      const object = claimObject("licence", { request: { addresses: ["10.20.0.70"] }, ...more });
      assert.equal(await said(world, object, { operation: "UPDATE" }), "");
      assert.deepEqual((await stored(world))?.addresses, addrs("10.20.0.70"));
      await assertClean(world);
    }
  });

  it("takes nothing over while the other claim is there, or for another request", async () => {
    await using world = await openWorld({ pools: POOLS });
    const old = await brokenOff(world);
    assert.equal(await said(world, resolved(["10.20.0.71"]), { operation: "UPDATE" }), "");
    await using other = await openWorld({ pools: POOLS });
    await brokenOff(other);
    await other.realStore.create("claim", old);
    await other.settle();
    const told = await said(other, resolved(["10.20.0.70"]), { operation: "UPDATE" });
    assert.match(told, /10\.20\.0\.70 .*old/);
  });

  it("in a dry run says what it would get", async () => {
    await using world = await openWorld({ pools: POOLS });
    const before = world.dump();
    assert.equal(
      await said(world, resolved(["10.20.0.70"]), { dryRun: true }),
      "claim shop/licence would get 10.20.0.70 from pool db",
    );
    assert.equal(world.dump(), before);
  });

  it("may be of an interface that is called as a property of every object", async () => {
    await using world = await openWorld({ pools: [poolRecord("db", "10.20.0.0/24")] });
    const addresses = ["10.20.0.7"];
    for (const name of ["constructor", "toString"]) {
      const request = { addresses, interfaces: { [name]: addresses }, interfacePools: { eth0: ["db"] } };
      const response = await send(world, "/validate/claims", claimObject("scanner", { request }));
      assert.equal(response.allowed, true);
    }
  });
});

/** The old claim is gone, the new one has no addresses, and what the old one had is still reserved for it. */
async function brokenOff(world: World) {
  const old = claimRecord({ name: "old", identity: podNamed("old"), handMade: true });
  for (const one of reservationsOf(old)) await world.realStore.create("reservation", one);
  const waits = { addresses: [], nonce: "", takesOver: "old", identity: podNamed("licence") };
  await world.realStore.create("claim", { ...old, name: "licence", ...waits });
  await world.settle();
  return old;
}

function podNamed(name: string) {
  return { kind: "Pod", apiVersion: "v1", name };
}

/** As a replica in a cluster answers. */
async function toldInCluster(world: World, object: Json): Promise<readonly string[]> {
  const { embedded: _, ...admission } = world.admission;
  const response = await validateClaims(admission)(review(object), new AbortController().signal);
  assert.equal(deniedAs(response), "");
  return response.warnings ?? [];
}
