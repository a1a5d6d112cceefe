// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { parseCidr } from "../../allocator/ip/address.ts";
import type { Occupied } from "../../allocator/planning/occupied.ts";
import { assertClean } from "../../test/support/assert-audit.ts";
import { addr, addrs, claimRecord, reservationsOf } from "../../test/support/fixtures.ts";
import { deniedAs, type Json, pod, poolObject, review } from "../../test/support/objects.ts";
import { admitPod, send } from "../../test/support/reviewing.ts";
import { openWorld, type World } from "../../test/support/world.ts";
import type { AdmissionContext } from "./admission-context.ts";
import { createHandlers } from "./routes.ts";
import { validatePools } from "./validate-pool.ts";

const ROUTE = "/validate/pools";
const DB = poolObject("db", { ranges: [{ cidr: "10.20.0.0/24", gateway: "10.20.0.1" }], cooldown: "10s" });

async function said(world: World, object: Json, over = {}): Promise<string> {
  const response = await send(world, ROUTE, object, over);
  return response.allowed ? (response.warnings ?? []).join(" | ") : deniedAs(response);
}

async function opened(): Promise<World> {
  const world = await openWorld({});
  assert.equal(await said(world, DB), "");
  return world;
}

async function names(world: World): Promise<string[]> {
  return (await world.all("pool")).map(({ key }) => key);
}

const pin = (name: string, address: string) => pod(name, { annotations: { "berth.dev/ips": address } });

describe("a pool over addresses that others have", () => {
  const pool = (spec: Json = {}) => poolObject("lan", { ranges: [{ cidr: "10.9.0.0/28" }], ...spec });
  const OTHERS: readonly Occupied[] = [
    [addr("10.9.0.1"), { kind: "node", namespace: "", name: "node-a" }],
    [addr("10.9.0.5"), { kind: "pod", namespace: "kube-system", name: "coredns-1" }],
    [addr("10.9.0.6"), { kind: "pod", namespace: "shop", name: "web" }],
    [addr("10.9.1.1"), { kind: "pod", namespace: "shop", name: "elsewhere" }],
  ];
  const services = async () => ({
    networks: [parseCidr("10.9.0.0/16")].flatMap((one) => one ?? []),
    occupied: [[addr("10.9.0.10"), { kind: "service", namespace: "default", name: "kubernetes" }]] as const,
    isPart: false,
  });

  async function toldOf(spec: Json, facts: Partial<AdmissionContext>): Promise<readonly string[]> {
    await using world = await openWorld({});
    const handle = createHandlers({ ...world.admission, ...facts })[ROUTE];
    const response = await handle(review(pool(spec), "CREATE"), new AbortController().signal);
    assert.equal(response.allowed, true);
    return response.warnings ?? [];
  }

  it("is told which, and what to do, and stands", async () => {
    const told = await toldOf({}, { occupants: () => OTHERS, services });
    assert.deepEqual(told, [
      "pool lan has 4 addresses that are in use, and not from Berth: 10.9.0.1 (node node-a), 10.9.0.5 (pod kube-system/coredns-1), 10.9.0.6 (pod shop/web) and 1 more",
      "exclude them from spec.ranges; a pod's is Berth's to give once the pod has gone; see berthctl check",
      "pool lan has addresses of 10.9.0.0/16, from which the cluster's Services get theirs: what is sent to them may never reach a pod; take them out of spec.ranges",
    ]);
    assert.deepEqual(
      told.filter((one) => Buffer.byteLength(one) > 256),
      [],
      "the API server cuts longer ones",
    );
  });

  it("is told no more of whose they are than whoever makes it may read", async () => {
    const asked: string[] = [];
    const readAccess: AdmissionContext["readAccess"] = {
      mayRead: async ({ username }, { verb, resource, namespace }) => {
        asked.push(`${username} ${verb} ${resource} ${namespace}`);
        return namespace === "shop";
      },
    };
    const facts = { occupants: () => OTHERS.slice(1), services, readAccess };
    const [first] = await toldOf({}, facts);
    assert.equal(
      first,
      "pool lan has 3 addresses that are in use, and not from Berth: 10.9.0.5, 10.9.0.6 (pod shop/web), 10.9.0.10",
    );
    const [node] = await toldOf(
      { ranges: [{ cidr: "10.9.0.0/30" }] },
      { occupants: () => OTHERS, readAccess },
    );
    assert.match(node ?? "", /1 address that is in use, and not from Berth: 10\.9\.0\.1$/);
    const { username } = review(pool(), "CREATE").userInfo;
    assert.deepEqual(asked, [
      `${username} get pods kube-system`,
      `${username} get pods shop`,
      `${username} get services default`,
      `${username} list nodes `,
    ]);
  });

  it("hears nothing of what it excludes", async () => {
    const ranges = [{ cidr: "10.9.0.0/28", from: "10.9.0.2", exclude: ["10.9.0.5-10.9.0.6"] }];
    assert.deepEqual(await toldOf({ ranges }, { occupants: () => OTHERS }), []);
  });

  it("for other networks is told so beside", async () => {
    const [, , next] = await toldOf({ networks: ["vlan7"] }, { occupants: () => OTHERS.slice(1, 2) });
    assert.equal(
      next,
      "Berth gives it once the pod has gone; exclude it if another system goes on giving it, unless the pool's networks are others; see berthctl check",
    );
  });

  it("of this host alone is told to exclude it", async () => {
    const own = [[addr("10.9.0.1"), { kind: "host", namespace: "", name: "eth0" }]] as const;
    assert.deepEqual(await toldOf({}, { occupants: () => own }), [
      "pool lan has 1 address that is in use, and not from Berth: 10.9.0.1 (this host (eth0))",
      "exclude it from spec.ranges; see berthctl check",
    ]);
  });

  it("that is applied again as it is hears nothing", async () => {
    await using world = await openWorld({});
    const handle = createHandlers({ ...world.admission, occupants: () => OTHERS })[ROUTE];
    const again = review(pool(), "UPDATE", { oldObject: pool() });
    assert.equal((await handle(again, new AbortController().signal)).warnings, undefined);
  });
});

describe("a pool", () => {
  it("that becomes the default and has no blocks, or is not the only one, is told so", async () => {
    await using world = await openWorld({});
    const cut = (name: string, n: number, spec: Json) =>
      poolObject(name, { ranges: [{ cidr: `10.${n}.0.0/24` }], default: true, ...spec });
    assert.equal(await said(world, cut("plain", 1, { default: false })), "");
    assert.equal(
      await said(world, cut("plain", 1, {})),
      "pool plain serves no pod that asks for nothing, in spite of spec.default: it was made without that, and without spec.blockSize; make another pool for them",
    );
    const blockSize = { ipv4: 26 };
    assert.equal(await said(world, cut("rest", 2, { blockSize })), "", "the other has no blocks");
    assert.equal(
      await said(world, cut("more", 3, { blockSize })),
      "pool more is a default, as rest: of several that are open to a pod the one of the highest spec.priority serves it, then the first by name",
    );
    assert.equal(await said(world, cut("more", 3, { blockSize, cooldown: "1m" })), "", "it is told once");
    const zone = (name: string) => ({ matchLabels: { zone: name } });
    const inZone = (name: string, n: number) => cut(name, n, { blockSize, nodeSelector: zone(name) });
    assert.match(await said(world, inZone("east", 4)), /^pool east is a default, as more, rest: /);
    assert.match(await said(world, inZone("west", 5)), /^pool west is a default, as more, rest: /);
  });

  it("that is made the default without a size has single addresses for blocks, on one host too, and keeps them", async () => {
    await using world = await openWorld({});
    const spec = { ranges: [{ cidr: "10.1.0.0/24" }], default: true };
    const sizeNow = async () => (await world.all("pool")).map(({ record }) => record.spec.blockSize);
    assert.match(
      await said(world, poolObject("any", spec)),
      /^pool any has no spec.blockSize, and gets \{ipv4: 32\}: nodes get single addresses/,
    );
    assert.deepEqual(await sizeNow(), [{ ipv4: 32 }]);
    assert.equal(await said(world, poolObject("any", { ...spec, cooldown: "1m" })), "");
    assert.equal(await said(world, poolObject("any", { ...spec, default: false })), "");
    assert.deepEqual(await sizeNow(), [{ ipv4: 32 }]);
    assert.match(
      await said(world, poolObject("any", { ...spec, blockSize: { ipv4: 30 } })),
      /^POOL_INVALID: spec.blockSize never changes, also from none/,
    );
  });

  it("that passes can be used at once", async () => {
    await using world = await opened();
    assert.equal(await admitPod(world, pin("a", "10.20.0.70")), "10.20.0.70");
    await assertClean(world);
  });

  it("that has addresses from before that no pod can have may still be disabled", async () => {
    const ranges = [{ cidr: "169.254.7.0/24" }];
    await using world = await openWorld({ pools: [{ name: "old", spec: { ranges } }] });
    assert.equal(await said(world, poolObject("old", { ranges, disabled: true })), "");
  });

  const wrong: readonly (readonly [string, Json, string])[] = [
    ["without ranges", poolObject("p", {}), "POOL_INVALID: spec.ranges is missing"],
    [
      "of loopback addresses",
      poolObject("p", { ranges: [{ cidr: "127.1.0.0/24" }] }),
      "POOL_INVALID: spec.ranges[0] has addresses that no pod can have: 127.1.0.1-127.1.0.254 (loopback); take them out",
    ],
    [
      "of host bits",
      poolObject("p", { ranges: [{ cidr: "10.9.0.7/24" }] }),
      "POOL_INVALID: spec.ranges[0].cidr 10.9.0.7/24 has host bits; write 10.9.0.0/24",
    ],
    [
      "with a misspelt field",
      poolObject("p", { ranges: [{ cidr: "10.9.0.0/24" }], cooldwn: "5s" }),
      'POOL_INVALID: spec has an unknown field "cooldwn"; did you mean cooldown?',
    ],
    [
      "without a name",
      poolObject("", { ranges: [{ cidr: "10.9.0.0/24" }] }),
      'POOL_INVALID: metadata.name "" is not a DNS subdomain: lower-case letters, digits, - and .',
    ],
    [
      "that overlaps another",
      poolObject("p", { ranges: [{ cidr: "10.0.0.0/8", from: "10.20.0.250", to: "10.21.0.7" }] }),
      "POOL_OVERLAPS: pools p and db both contain 10.20.0.250-10.20.0.254; change from, to or cidr of one of them",
    ],
    [
      "that shares one address with another",
      poolObject("p", { ranges: [{ cidr: "10.20.0.0/24", from: "10.20.0.9", to: "10.20.0.9" }] }),
      "POOL_OVERLAPS: pools p and db both contain 10.20.0.9; change from, to or cidr of one of them",
    ],
    [
      "whose gateway another pool could give out",
      poolObject("p", {
        ranges: [{ cidr: "10.20.0.0/16", from: "10.20.5.0", to: "10.20.5.9", gateway: "10.20.0.77" }],
      }),
      "POOL_OVERLAPS: the gateway 10.20.0.77 of pool p could be given out by pool db; exclude it there",
    ],
    [
      "that is none",
      { ...DB, kind: "IPBlock" },
      "OBJECT_INVALID: this webhook decides about IPPool, and the object is of kind IPBlock; install the webhook configurations from the chart",
    ],
  ];
  for (const [title, object, words] of wrong) {
    it(`${title} is refused, dry or not`, async () => {
      await using world = await opened();
      assert.equal(await said(world, object), words);
      assert.equal(await said(world, object, { dryRun: true }), words);
      assert.deepEqual(await names(world), ["db"]);
    });
  }

  it("whose addresses hold another pool's gateway is refused", async () => {
    await using world = await openWorld({});
    await said(
      world,
      poolObject("edge", {
        ranges: [{ cidr: "10.20.0.0/16", from: "10.20.9.1", to: "10.20.9.9", gateway: "10.20.0.50" }],
      }),
    );
    assert.equal(
      await said(world, DB),
      "POOL_OVERLAPS: the gateway 10.20.0.50 of pool edge could be given out by pool db; exclude it there",
    );
    const aware = poolObject("db", { ranges: [{ cidr: "10.20.0.0/24", exclude: ["10.20.0.50"] }] });
    assert.equal(await said(world, aware), "");
  });

  it("beside another of the same network is no overlap", async () => {
    await using world = await opened();
    assert.equal(
      await said(
        world,
        poolObject("p", { ranges: [{ cidr: "10.20.0.0/16", from: "10.20.1.0", to: "10.20.1.9" }] }),
      ),
      "",
    );
    assert.equal(await said(world, DB, { operation: "UPDATE" }), "");
  });

  it("of two that overlap and come at the same moment is one too many", async () => {
    await using world = await openWorld({});
    const pools = Array.from({ length: 5 }, (_, n) =>
      poolObject(`p${n}`, { ranges: [{ cidr: "10.20.0.0/24" }] }),
    );
    const answers = await Promise.all(pools.map((object) => said(world, object)));
    assert.equal(answers.filter((answer) => answer === "").length, 1, answers.join("\n"));
    assert.equal((await names(world)).length, 1);
  });
});

describe("a pool in use", () => {
  it("keeps the addresses that are reserved", async () => {
    await using world = await opened();
    for (let n = 0; n < 7; n++) await admitPod(world, pin(`pod-${n}`, `10.20.0.7${n}`));
    const shrunk = (over: Json) => poolObject("db", { ranges: [{ cidr: "10.20.0.0/24", ...over }] });
    const before = world.dump();
    const inUse = (which: string) =>
      `POOL_IN_USE: pool db is in use: the change would leave out ${which}; release them first, or list them in spec.reserved, so that only who names one gets it, and leave them out once they are free`;
    assert.equal(
      await said(world, shrunk({ from: "10.20.0.72" }), { operation: "UPDATE" }),
      inUse("10.20.0.70 (shop/pod-0), 10.20.0.71 (shop/pod-1)"),
    );
    assert.equal(
      await said(world, shrunk({ exclude: ["10.20.0.75"] }), { operation: "UPDATE" }),
      inUse("10.20.0.75 (shop/pod-5)"),
    );
    assert.equal(
      await said(world, shrunk({ gateway: "10.20.0.76" }), { operation: "UPDATE" }),
      inUse("10.20.0.76 (shop/pod-6)"),
    );
    assert.equal(
      await said(world, shrunk({ to: "10.20.0.9" }), { operation: "UPDATE" }),
      inUse(
        "10.20.0.70 (shop/pod-0), 10.20.0.71 (shop/pod-1), 10.20.0.72 (shop/pod-2), 10.20.0.73 (shop/pod-3), 10.20.0.74 (shop/pod-4) and 2 more",
      ),
    );
    assert.equal(world.dump(), before);
    assert.equal(
      await said(world, shrunk({ from: "10.20.0.70", to: "10.20.0.76" }), { operation: "UPDATE" }),
      "",
    );
    assert.equal(
      await said(world, poolObject("db", { ranges: [{ cidr: "10.20.0.0/24" }], reserved: ["10.20.0.70"] }), {
        operation: "UPDATE",
      }),
      "",
    );
    await assertClean(world);
  });

  it("says until when a retained claim keeps an address", async () => {
    await using world = await opened();
    const retained = { because: "scaled", since: world.clock.now() } as const;
    const kept = async (name: string, address: string, ttlMs: number | null) => {
      const retention = { whenDeleted: "Retain", whenScaled: "Retain", ttlMs } as const;
      const claim = claimRecord({ name, nonce: name, addresses: addrs(address), retained, retention });
      await world.authority.create("claim", claim);
      for (const one of reservationsOf(claim)) await world.authority.create("reservation", one);
    };
    await kept("a", "10.20.0.70", 3_600_000);
    await world.settle();
    const until = new Date(world.clock.now() + 3_600_000).toISOString().replace(".000Z", "Z");
    assert.equal(
      await said(world, DB, { operation: "DELETE" }),
      `POOL_IN_USE: pool db is in use: it still holds 10.20.0.70 (shop/a, kept until ${until}); release them first, or set disabled: true and wait`,
    );
  });

  it("may leave out an address that cools, which nobody relies on", async () => {
    await using world = await opened();
    const claim = claimRecord({ name: "a", addresses: addrs("10.20.0.70") });
    for (const one of reservationsOf(claim))
      await world.authority.create("reservation", { ...one, releasedAt: world.clock.now() });
    await world.settle();
    const without = poolObject("db", { ranges: [{ cidr: "10.20.0.0/24", exclude: ["10.20.0.70"] }] });
    assert.equal(await said(world, without, { operation: "UPDATE" }), "");
    assert.equal(await said(world, DB, { operation: "DELETE" }), "");
    assert.equal(await said(world, without), "");
    await assertClean(world);
  });

  it("is not deleted until nothing is held", async () => {
    await using world = await opened();
    await admitPod(world, pin("a", "10.20.0.70"));
    assert.equal(
      await said(world, DB, { operation: "DELETE" }),
      "POOL_IN_USE: pool db is in use: it still holds 10.20.0.70 (shop/a); release them first, or set disabled: true and wait",
    );
    world.clock.advance(120_000);
    const collector = world.collector();
    await collector.pass();
    await world.settle();
    assert.equal(await said(world, DB, { operation: "DELETE", dryRun: true }), "");
    assert.deepEqual(await names(world), ["db"]);
    assert.equal(await said(world, DB, { operation: "DELETE" }), "");
    assert.deepEqual(await names(world), []);
    await assertClean(world);
    await collector.pass();
    assert.equal((await world.all("reservation")).length, 1, "it cools, whoever makes a pool of it next");
    world.clock.advance(30_000);
    await collector.pass();
    assert.deepEqual(await world.all("reservation"), []);
    assert.equal(await said(world, DB, { operation: "DELETE" }), "");
  });

  it("that is disabled gives nothing new and keeps what it gave", async () => {
    await using world = await opened();
    await admitPod(world, pin("a", "10.20.0.70"));
    const spec = DB["spec"] as Json;
    assert.equal(
      await said(world, poolObject("db", { ...spec, disabled: true }), { operation: "UPDATE" }),
      "",
    );
    assert.equal(
      await admitPod(world, pin("b", "10.20.0.71")),
      'POOL_DISABLED: pool "db" takes no new reservations; name another pool',
    );
    assert.equal(await admitPod(world, pin("a", "10.20.0.70")), "10.20.0.70");
  });
});

describe("a review of a pool", () => {
  it("of its status is none of ours, and in a cluster nothing is written", async () => {
    await using world = await opened();
    assert.equal(await said(world, poolObject("db", {}), { subResource: "status" }), "");
    const { embedded: _, ...admission } = world.admission;
    const handler = validatePools(admission);
    const live = new AbortController().signal;
    const before = world.dump();
    const other = poolObject("other", { ranges: [{ cidr: "10.21.0.0/24" }] });
    assert.equal((await handler(review(other), live)).allowed, true);
    assert.equal((await handler(review(DB, "DELETE"), live)).allowed, true);
    assert.match(
      deniedAs(await handler(review(poolObject("other", { ranges: [{ cidr: "10.20.0.0/24" }] })), live)),
      /^POOL_OVERLAPS: /,
    );
    assert.equal(world.dump(), before);
  });
});
