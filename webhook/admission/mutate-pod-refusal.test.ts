// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  bindingTo,
  claimRecord,
  DB_POOL,
  poolRecord,
  reservationRecord,
} from "../../test/support/fixtures.ts";
import { deniedAs, deploymentPod, type Json, pod, review, statefulPod } from "../../test/support/objects.ts";
import { admitPod, send } from "../../test/support/reviewing.ts";
import { openWorld, type World } from "../../test/support/world.ts";
import { mutatePods } from "./mutate-pod.ts";

const POOLS = [
  DB_POOL,
  poolRecord("web", "10.30.0.0/30", { limits: { perNamespace: 1 } }),
  poolRecord("old", "10.40.0.0/29", { disabled: true }),
  poolRecord("vault", "10.50.0.0/29", { namespaceSelector: { matchLabels: { team: "bank" } } }),
  poolRecord("gpu", "10.60.0.0/29", { podSelector: { matchLabels: { gpu: "yes" } } }),
  poolRecord("acl", "10.70.0.0/29", { authorization: "ServiceAccount" }),
  poolRecord("tiny", "10.80.0.0/32"),
];

function wanting(annotations: Readonly<Record<string, string>>): Json {
  return pod("a", { annotations });
}

/** Somebody has 10.20.0.70, 10.30.0.1 and the only address of pool tiny. */
async function inhabited(): Promise<World> {
  const world = await openWorld({ pools: POOLS });
  for (const [name, address] of [
    ["first", "10.20.0.70"],
    ["second", "10.30.0.1"],
    ["third", "10.80.0.0"],
  ] as const) {
    assert.equal(await admitPod(world, pod(name, { annotations: { "berth.dev/ips": address } })), address);
  }
  return world;
}

const CASES: readonly (readonly [string, Json, string])[] = [
  [
    "an annotation that cannot be read",
    wanting({ "berth.dev/ips": "10.20.0.70/24" }),
    'REQUEST_INVALID: annotation berth.dev/ips: entry 1, "10.20.0.70/24", has a prefix; write "10.20.0.70", for the pool says the prefix',
  ],
  [
    "two annotations that disagree",
    wanting({ "berth.dev/ips": "10.20.0.71", "cni.projectcalico.org/ipAddrs": '["10.20.0.72"]' }),
    "REQUEST_INVALID: annotation cni.projectcalico.org/ipAddrs: it disagrees with berth.dev/ips; keep one of the two",
  ],
  [
    "a list for a pod without an ordinal",
    wanting({ "berth.dev/ips": "10.20.0.71;10.20.0.72" }),
    "REQUEST_INVALID: the request lists addresses for 2 pods, and this pod has no ordinal to choose by; give it one entry, or ask by berth.dev/pools where such pods are several",
  ],
  [
    "a list that is too short",
    statefulPod("mysql", 2, { annotations: { "berth.dev/ips": "10.20.0.71;10.20.0.72" } }),
    "LIST_TOO_SHORT: the list has 2 entries, for ordinals 0 to 1, and none for ordinal 2; add an entry or lower replicas",
  ],
  [
    "an address that somebody has",
    wanting({ "berth.dev/ips": "10.20.0.70" }),
    'ADDRESS_TAKEN: address 10.20.0.70 in pool "db" is held by shop/first (Pod first); free nearby: 10.20.0.71, 10.20.0.72, 10.20.0.73; or delete pod first, and if its claim stays: berthctl release shop/first',
  ],
  [
    "an address in no pool",
    wanting({ "berth.dev/ips": "192.0.2.1" }),
    'ADDRESS_OUTSIDE: address 192.0.2.1 is in no pool; name one of a pool: "db" 10.20.0.50-10.20.0.199, "tiny" 10.80.0.0-10.80.0.0, "web" 10.30.0.1-10.30.0.2',
  ],
  [
    "an address of another pool than the named one",
    wanting({ "berth.dev/ips": "10.20.0.71", "berth.dev/pools": "web" }),
    'ADDRESS_OUTSIDE: address 10.20.0.71 belongs to pool "db", and the request names "web"; name one or the other',
  ],
  [
    "the gateway",
    wanting({ "berth.dev/ips": "10.20.0.100" }),
    'ADDRESS_EXCLUDED: address 10.20.0.100 is the gateway of pool "db"; free nearby: 10.20.0.99, 10.20.0.101, 10.20.0.98',
  ],
  [
    "an excluded address",
    wanting({ "berth.dev/ips": "10.20.0.65" }),
    'ADDRESS_EXCLUDED: address 10.20.0.65 is excluded from pool "db"; free nearby: 10.20.0.71, 10.20.0.72, 10.20.0.73',
  ],
  [
    "a pool that is not there",
    wanting({ "berth.dev/pools": "dbs" }),
    'POOL_UNKNOWN: there is no pool "dbs"; name one of "db", "tiny", "web"',
  ],
  [
    "a disabled pool",
    wanting({ "berth.dev/pools": "old" }),
    'POOL_DISABLED: pool "old" takes no new reservations; name another pool',
  ],
  [
    "a pool for another namespace",
    wanting({ "berth.dev/pools": "vault" }),
    'POOL_FORBIDDEN: pool "vault" is not open to namespace shop; open to it: "acl", "db", "gpu", "tiny", "web"',
  ],
  [
    "a pool for other pods",
    wanting({ "berth.dev/pools": "gpu" }),
    `POOL_FORBIDDEN: pool "gpu" takes only pods with other labels than this one's (its podSelector)`,
  ],
  [
    "a pool for other service accounts",
    wanting({ "berth.dev/pools": "acl" }),
    'POOL_FORBIDDEN: pool "acl" is only for service accounts with the verb "use" on it; ask its administrator for a role',
  ],
  [
    "a pool without a free address",
    wanting({ "berth.dev/pools": "tiny" }),
    'POOL_EXHAUSTED: no free IPv4 address in pool "tiny": 1 is held or cooling; add a range, or release claims that are not needed',
  ],
  [
    "a family that the pool does not have",
    wanting({ "berth.dev/pools": "tiny", "berth.dev/families": "IPv6" }),
    'FAMILY_UNAVAILABLE: no IPv6 range in pool "tiny"; ask for another family or add a pool that has it',
  ],
  [
    "more than the namespace may have",
    wanting({ "berth.dev/ips": "10.30.0.2" }),
    'LIMIT_REACHED: namespace shop holds 1 of the 1 address that pool "web" allows one namespace; release one, or ask for a higher limits.perNamespace',
  ],
  [
    "a set that is used up",
    deploymentPod("web", { annotations: { "berth.dev/ips": "10.20.0.70" } }),
    'SET_EXHAUSTED: the only entry of the list is in use: address 10.20.0.70 in pool "db" is held by shop/first (Pod first); free nearby: 10.20.0.71, 10.20.0.72, 10.20.0.73; or delete pod first, and if its claim stays: berthctl release shop/first; add entries for replicas and maxSurge, or lower them',
  ],
];

describe("/mutate/pods refuses", () => {
  for (const [title, object, words] of CASES) {
    it(`${title}, and writes nothing`, async () => {
      await using world = await inhabited();
      const before = await world.all("reservation");
      assert.equal(await admitPod(world, object), words);
      assert.deepEqual(await world.all("reservation"), before);
      const response = await send(world, "/mutate/pods", object, { dryRun: true });
      assert.equal(deniedAs(response), words);
      assert.deepEqual([response.status?.code, response.status?.reason], [403, "Forbidden"]);
    });
  }

  it("a change of address while the pod before still runs", async () => {
    await using world = await openWorld({ pools: POOLS });
    const binding = bindingTo("mysql-0", "node-a");
    await world.realStore.create("claim", claimRecord({ binding }));
    await world.realStore.create("reservation", reservationRecord("10.20.0.70"));
    await world.settle();
    const moved = statefulPod("mysql", 0, { annotations: { "berth.dev/ips": "10.20.0.71" } });
    const words =
      "CLAIM_CHANGED: claim shop/mysql-0 holds 10.20.0.70 and is in use by pod mysql-0, but the request is now for 10.20.0.71; it changes when that pod is deleted and created again";
    assert.equal(await admitPod(world, moved), words);
    assert.equal(deniedAs(await send(world, "/mutate/pods", moved, { dryRun: true })), words);
  });

  it("what is no pod, or has no name that a claim could have", async () => {
    await using world = await openWorld({ pools: POOLS });
    const handler = mutatePods(world.admission);
    const answer = async (object: unknown) => {
      const response = await handler(
        { ...review(pod("a")), object, name: "", namespace: "" },
        new AbortController().signal,
      );
      return deniedAs(response);
    };
    assert.equal(await answer(null), "OBJECT_INVALID: the object has no kind");
    assert.equal(
      await answer({ kind: "ConfigMap" }),
      "OBJECT_INVALID: this webhook decides about Pod, and the object is of kind ConfigMap; install the webhook configurations from the chart",
    );
    const annotations = { "berth.dev/pools": "db" };
    for (const metadata of [
      { name: "a/b", namespace: "shop" },
      { name: "Ä", namespace: "shop" },
      { name: "a", namespace: "../x" },
    ]) {
      assert.equal(
        await answer({ kind: "Pod", metadata: { ...metadata, annotations } }),
        "OBJECT_INVALID: metadata.name and metadata.namespace are made of lower-case letters, digits, - and .",
      );
    }
    assert.equal(
      await answer({ kind: "Pod", metadata: { name: "a", annotations } }),
      "OBJECT_INVALID: the object has no namespace",
    );
    const endless = pod("", { annotations: { "berth.dev/pools": "db" } });
    const metadata = { ...(endless["metadata"] as Json), generateName: "a".repeat(254) };
    assert.equal(
      await answer({ ...endless, metadata }),
      "OBJECT_INVALID: metadata.generateName has at most 253 characters",
    );
    assert.deepEqual(await world.all("claim"), []);
  });
});

describe("a dry run", () => {
  it("says what would happen, changes nothing and patches nothing", async () => {
    await using world = await inhabited();
    const cases: readonly (readonly [Json, string])[] = [
      [
        wanting({ "berth.dev/ips": "fd00:20::7,10.20.0.71" }),
        "this pod would get fd00:20::7 from pool db and 10.20.0.71 from pool db",
      ],
      [
        pod("first", { annotations: { "berth.dev/ips": "10.20.0.70" } }),
        "this pod would get 10.20.0.70 (its own)",
      ],
      [
        deploymentPod("web", { annotations: { "berth.dev/ips": "10.20.0.70;10.20.0.71" } }),
        "this pod would get 10.20.0.71 from pool db",
      ],
    ];
    const before = world.dump();
    for (const [object, words] of cases) {
      const response = await send(world, "/mutate/pods", object, { dryRun: true });
      assert.deepEqual(response, { uid: "review-1", allowed: true, warnings: [words] });
    }
    assert.equal(world.dump(), before);
  });
});
