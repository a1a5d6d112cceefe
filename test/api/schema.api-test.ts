// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import fc from "fast-check";
import { noopLogger } from "../../allocator/base/ports.ts";
import { Fields } from "../../allocator/manifest/kubernetes-object.ts";
import type { Claim } from "../../allocator/model/claim.ts";
import type { PoolSpec } from "../../allocator/pool/pool.ts";
import { keyOf } from "../../allocator/store/codec.ts";
import {
  addr,
  bareClaim,
  blockOf,
  fullBlock,
  fullClaim,
  poolOf,
  reservationOf,
  SAMPLE_NAMESPACES,
} from "../../allocator/store/contract/samples.ts";
import {
  blockStatusPatch,
  placeOf,
  resourceOf,
  specOf,
  statusPatch,
  storedOf,
} from "../../allocator/store/kubernetes/objects.ts";
import { openKubernetesStore } from "../../allocator/store/kubernetes/store.ts";
import type { Kind, Records, Store } from "../../allocator/store/store.ts";
import { type Body, Client } from "../../kube/api/client.ts";
import {
  apiVersionOf,
  asItem,
  collectionPath,
  type KubeItem,
  type ObjectName,
  RESERVATIONS,
  type Resource,
} from "../../kube/api/resource.ts";
import { statusOf } from "../../kube/api/status.ts";
import { createClock } from "../../system/clock.ts";
import { createRandom } from "../../system/random.ts";
import { attachmentOf } from "../support/fixtures.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { clear, definitions, installDefinitions, makeNamespaces, wipe } from "./crds.ts";
import type { ControlPlane } from "./plane.ts";
import { anyAddress, anyBlock, anyClaim, anyIPv6, anyPool, anyReservation } from "./records.ts";
import { assertSameFields, type Schema, spoiled } from "./schema.ts";
import { openControlPlane } from "./shared-plane.ts";

type Whole<T> = T extends readonly (infer I)[]
  ? readonly Whole<I>[]
  : T extends string | number | boolean | null
    ? T
    : { readonly [K in keyof T]-?: Whole<Exclude<T[K], undefined>> };

const SELECTOR = {
  matchLabels: { zone: "a" },
  matchExpressions: [{ key: "zone", operator: "In", values: ["a"] }],
} as const;

/** With every field that a PoolSpec has: a field that is added there and not here does not compile. */
const FULL_POOL: Whole<PoolSpec> = {
  ranges: [
    {
      cidr: "10.20.0.0/24",
      from: "10.20.0.50",
      to: "10.20.0.199",
      gateway: "10.20.0.254",
      exclude: ["10.20.0.60-10.20.0.69"],
    },
  ],
  reserved: ["10.20.0.50"],
  routes: [{ dst: "0.0.0.0/0", gw: "10.20.0.254", mtu: 1500, advmss: 1400, priority: 1, table: 2, scope: 0 }],
  dns: { nameservers: ["10.20.0.2"], domain: "example.org", search: ["example.org"], options: ["ndots:5"] },
  blockSize: { ipv4: 26, ipv6: 122, ahead: 1 },
  nodeCIDRs: { use: "PodCIDR", blockSize: { ipv4: 24, ipv6: 64 } },
  cilium: { pool: "default", growBelow: 8, shrinkAbove: 16 },
  nodeSelector: SELECTOR,
  namespaceSelector: SELECTOR,
  podSelector: SELECTOR,
  networks: ["macvlan-conf", "shop/net-b"],
  priority: 1,
  default: true,
  limits: { perNamespace: 50, retention: { perNamespace: 20, ttl: "720h" } },
  authorization: "Namespace",
  cooldown: "30s",
  disabled: true,
};

const FULL: { readonly [K in Kind]: Records[K] } = {
  pool: { name: "db", spec: FULL_POOL },
  claim: fullClaim("mysql-0"),
  reservation: reservationOf(addr("fd00:20::51"), { marked: true, releasedAt: 1 }),
  block: fullBlock("10.20.0.64/26"),
};
const ANY: { readonly [K in Kind]: fc.Arbitrary<Records[K]> } = {
  pool: anyPool,
  claim: anyClaim,
  reservation: anyReservation,
  block: anyBlock,
};
const KINDS: readonly Kind[] = ["pool", "claim", "reservation", "block"];

/** The schema of the version that is served, of `spec` or `status`. */
function schemaOf(plural: string, part: "spec" | "status"): Schema {
  const found = definitions().find(({ metadata }) => metadata.name === `${plural}.berth.dev`);
  const whole = found?.spec.versions[0]?.schema.openAPIV3Schema as Schema | undefined;
  const schema = whole?.properties?.[part];
  assert.ok(schema, `${plural} has no ${part}`);
  return schema;
}

describe("the fields of the definitions", () => {
  for (const kind of KINDS) {
    it(`are those of a ${kind}`, () => {
      assertSameFields(schemaOf(resourceOf(kind).plural, "spec"), specOf(kind, FULL[kind]), "spec");
    });
  }

  it("are those of a claim's status, and what only Kubernetes has", () => {
    const schema = schemaOf("ipclaims", "status");
    const { conditions, repeat, phase, ...own } = schema.properties ?? {};
    assert.ok(conditions && repeat && phase);
    const { phase: former, ...written } = statusPatch(fullClaim("mysql-0").status);
    assert.equal(former, null, "what earlier versions wrote is taken away");
    assertSameFields({ ...schema, properties: own }, written, "status");
  });

  it("are those of a block's status, and what only Kubernetes has", () => {
    const schema = schemaOf("ipblocks", "status");
    const { repeat, ...own } = schema.properties ?? {};
    assert.ok(repeat);
    const status = blockStatusPatch({
      node: "node-a",
      used: 1,
      returnedAt: 1,
      returnedAddresses: [addr("10.20.0.65")],
    });
    assertSameFields({ ...schema, properties: own }, status, "status");
  });
});

if (havePartsOrSkip(["etcd", "kube-apiserver", "kubectl"])) {
  describe("the definitions on a real API server", () => {
    let plane: ControlPlane;
    let store: Store;
    const clientOf = (resource: Resource) => new Client(plane.connect(), resource);

    before(async () => {
      plane = await openControlPlane();
      const connection = plane.connect();
      await installDefinitions(connection);
      await makeNamespaces(connection, SAMPLE_NAMESPACES);
      store = openKubernetesStore({
        connection,
        clock: createClock(),
        random: createRandom(),
        log: noopLogger,
      });
    });
    after(() => plane?.close());

    for (const kind of KINDS)
      agreementCases(kind, { store: () => store, client: () => clientOf(resourceOf(kind)) });

    it("give an address one name", async () => {
      const client = clientOf(RESERVATIONS);
      const refused = async (name: string, address: string) => {
        const spec = specOf("reservation", reservationOf(addr(address)));
        await refuses(client, { name }, { spec }, /metadata.name must be the address/);
      };
      await refused("10.20.0.51", "10.20.0.52");
      await refused("0064-ff9b-0000-0000-0000-0000-192.0.2.3", "64:ff9b::c000:203");
      await refused("fd00-20--51", "fd00:20::51");
      await refused("fd00-0020-0000-0000-0000-0000-0000-0051", "fd00:20::52");
      await fc.assert(
        fc.asyncProperty(anyIPv6, anyAddress, async (address, other) => {
          fc.pre(address !== other);
          const place = placeOf("reservation", other);
          assert.ok(place);
          await refused(place.name, address);
        }),
        { numRuns: 20 },
      );
    });

    it("keep what may not change", async () => {
      const address = addr("10.20.0.51");
      const made = await store.create("reservation", reservationOf(address));
      const { uid, revision } = made.stored;
      const metadata = { uid, resourceVersion: revision };
      for (const [spec, words] of [
        [{ address: "10.20.0.52" }, /spec.address: Invalid value: "10.20.0.52": is immutable/],
        [{ claim: { name: "other" } }, /spec.claim: Invalid value: .*is immutable/],
        [{ claim: { name: "other" }, nonce: "n2" }, /spec.claim: Invalid value: .*is immutable/],
      ] as const) {
        const patch = { type: "merge", body: { metadata, spec } } as const;
        await assert.rejects(clientOf(RESERVATIONS).patch({ name: address }, patch), words);
      }
      assert.deepEqual(await store.get("reservation", address), made.stored);
    });

    it("keep the size of a pool's blocks, and that it has some or none", async () => {
      const client = clientOf(resourceOf("pool"));
      const sizes: readonly (PoolSpec["blockSize"] | null)[] = [
        null,
        {},
        { ipv4: 26 },
        { ipv4: 26, ipv6: 122 },
      ];
      const ranges = [{ cidr: "10.50.0.0/24" }, { cidr: "fd00:50::/64" }];
      for (const [i, before] of sizes.entries()) {
        const place = { name: `cut-${i}` };
        await client.create(place, { spec: { ranges, ...(before && { blockSize: before }) } });
        for (const after of [...sizes, { ipv4: 27, ipv6: 122 }, { ipv6: 122 }]) {
          const spec = { priority: 1, blockSize: after && { ipv4: null, ipv6: null, ...after } };
          const change = client.patch(place, { type: "merge", body: { spec } });
          if (after === before) assert.ok(await change);
          else
            await assert.rejects(
              change,
              /spec.blockSize: Invalid value: .*never changes/,
              JSON.stringify([before, after]),
            );
        }
        await client.patch(place, { type: "merge", body: { metadata: { labels: { a: "b" } } } });
      }
    });

    it("keep the word that a block was given back", async () => {
      const made = await store.create("block", blockOf("10.20.8.0/26", { granted: true }));
      const returned = { node: "node-a", used: 0, returnedAt: 1_700_000_000_000 };
      const given = await store.reportBlock(made.stored, returned);
      assert.ok(given.kind === "replaced");
      const { returnedAt: _, ...taken } = returned;
      for (const status of [taken, { ...returned, returnedAt: 1_700_000_000_001 }])
        await assert.rejects(store.reportBlock(given.stored, status), /status.returnedAt stays/);
      assert.deepEqual(await store.get("block", "10.20.8.0/26"), given.stored);
      assert.deepEqual(await store.remove("block", given.stored), { kind: "removed" });
      const again = await store.create("block", blockOf("10.20.8.0/26"));
      assert.deepEqual([again.kind, again.stored.record.status], ["created", undefined]);
      await store.remove("block", again.stored);
    });

    it("keep the addresses of a block that were given back one by one", async () => {
      const made = await store.create("block", blockOf("10.20.8.0/26", { granted: true }));
      const returned = { node: "node-a", used: 0, returnedAddresses: [addr("10.20.8.5"), addr("10.20.8.1")] };
      const given = await store.reportBlock(made.stored, returned);
      assert.ok(given.kind === "replaced");
      const fewer = { ...returned, returnedAddresses: [addr("10.20.8.5"), addr("10.20.8.2")] };
      await assert.rejects(store.reportBlock(given.stored, fewer), /status.returnedAddresses only grows/);
      // what a version says that knows of none leaves them as they are
      const older = await store.reportBlock(given.stored, { node: "node-a", used: 3 });
      assert.deepEqual(older.kind === "replaced" && older.stored.record.status, { ...returned, used: 3 });
      const more = [...returned.returnedAddresses, addr("10.20.8.2")];
      const seen = (await store.get("block", "10.20.8.0/26")) ?? assert.fail();
      const grown = await store.reportBlock(seen, { ...returned, returnedAddresses: more });
      assert.ok(grown.kind === "replaced");
      assert.deepEqual((await store.get("block", "10.20.8.0/26"))?.record.status?.returnedAddresses, more);
      await store.remove("block", grown.stored);
    });

    it("say in words what is wrong with a pool", async () => {
      const client = clientOf(resourceOf("pool"));
      const refusals: readonly (readonly [Partial<PoolSpec>, RegExp])[] = [
        [
          { ranges: [{ cidr: "10.20.0.7/24" }] },
          /ranges\[0\].cidr: .*must be a CIDR in canonical form, without host bits/,
        ],
        [{ ranges: [{ cidr: "FD00:20::/64" }] }, /ranges\[0\].cidr: .*must be a CIDR in canonical form/],
        [
          { ranges: [{ cidr: "10.20.0.0/24", from: "10.21.0.1" }] },
          /ranges\[0\].from: .*from must be an address of cidr/,
        ],
        [
          { ranges: [{ cidr: "10.20.0.0/24", gateway: "fd00::1" }] },
          /ranges\[0\].gateway: .*must be an address of cidr/,
        ],
        [
          { ranges: [{ cidr: "fd00::/64", to: "fd00::00ff" }] },
          /ranges\[0\].to: .*must be an IP address in canonical form/,
        ],
        [{ cooldown: "1d" }, /cooldown: .*must be a Go duration such as 30s/],
        [
          { namespaceSelector: { matchLabels: { "a b": "c" } } },
          /matchLabels: .*has a key that is not a label key/,
        ],
        [{ ranges: [] }, /spec.ranges: Invalid value: 0/],
      ];
      for (const [spec, words] of refusals) {
        const body = { spec: { ...poolOf("x").spec, ...spec } };
        await refuses(client, { name: "x" }, body, words);
      }
    });

    it("take a claim that a person writes, and read what he left out", async () => {
      const spec = { request: { pools: ["db"] } };
      const claim = await clientOf(resourceOf("claim")).create(
        { namespace: "shop", name: "scanner" },
        { spec },
      );
      assert.ok(claim);
      const read: Claim = storedOf("claim", claim).record;
      assert.deepEqual(read, {
        namespace: "shop",
        name: "scanner",
        identity: { kind: "Pod", apiVersion: "v1", name: "scanner" },
        request: { pools: ["db"] },
        retention: { whenDeleted: "Release", whenScaled: "Retain", ttlMs: null },
        addresses: [],
        nonce: "",
        handMade: true,
        status: {},
      });
    });

    it("refuse a claim by hand that asks for nothing or writes what is Berth's", async () => {
      const client = clientOf(resourceOf("claim"));
      const refused = (spec: object, words: RegExp) =>
        refuses(client, { namespace: "shop", name: "x" }, { spec }, words);
      await refused({}, /request names neither addresses nor pools; give it one of the two/);
      await refused(
        { request: { pools: ["db"] }, addresses: ["10.20.0.51"] },
        /addresses, binding, retained and releasing are written by Berth; leave them out/,
      );
      await refused(
        { request: { addresses: ["10.20.0.51", "10.20.0.52"] } },
        /request: .*has two addresses of one family; a claim has one of each/,
      );
    });

    it("let a process of an earlier version, which writes a phase, report of a sandbox", async () => {
      const made = await store.create("claim", bareClaim("former-0"));
      assert.ok(made.kind === "created");
      const attachment = { ...attachmentOf("former-0", { detached: true }), since: "2026-01-01T00:00:00Z" };
      const body = { status: { phase: "Detached", attachment, message: null } };
      const place = { namespace: "shop", name: "former-0" };
      assert.ok(await clientOf(resourceOf("claim")).patch(place, { type: "merge", body }, "status"));
      const seen = (await store.get("claim", "shop/former-0")) ?? assert.fail();
      assert.equal(seen.record.status.attachment?.detached, true);
      assert.equal((await store.report(seen, { message: "it waits" })).kind, "replaced");
      const item = await clientOf(resourceOf("claim")).get(place);
      assert.equal(new Fields(item ?? {}).at("status").get("phase"), undefined, "nobody keeps it up");
    });

    it("show with kubectl what one looks for", async () => {
      await clear(plane);
      await store.create("pool", { name: "db", spec: FULL_POOL });
      await store.create("reservation", reservationOf(addr("fd00:20::51")));
      await store.create("claim", fullClaim("mysql-0"));
      const get = async (...args: string[]) => {
        const { rc, stdout, stderr } = await plane.kubectl(["get", ...args]);
        assert.equal(rc, 0, stderr);
        return stdout
          .trimEnd()
          .split("\n")
          .map((line) => line.trim().split(/ {2,}/).slice(0, -1)); // without the age
      };
      const name = "fd00-0020-0000-0000-0000-0000-0000-0051";
      assert.deepEqual(await get("ipr"), [
        ["NAME", "ADDRESS", "POOL", "NAMESPACE", "CLAIM", "RELEASED"],
        [name, "fd00:20::51", "db", "shop", "mysql-0"],
      ]);
      const [head, row = [], ...more] = await get("ipclaim", "-A");
      assert.match(row.pop() ?? "", /^\d+y/, "retained since 2023");
      assert.deepEqual(
        [head, row, ...more],
        [
          ["NAMESPACE", "NAME", "ADDRESSES", "POD", "NODE", "RETAINED"],
          ["shop", "mysql-0", '["10.20.0.51","fd00:20::51"]', "mysql-0", "node-a"],
        ],
      );
      assert.deepEqual(await get("ippool"), [
        [
          "NAME",
          "CIDR",
          "FREE IPV4",
          "FREE IPV6",
          "RESERVED",
          "BOUND",
          "IN BLOCKS",
          "USED IN BLOCKS",
          "READY",
          "STATE",
          "DISABLED",
        ],
        ["db", "10.20.0.0/24", "true"],
      ]);
      const all = await plane.kubectl(["get", "berth", "-A", "-o", "name"]);
      assert.deepEqual(all.stdout.trim().split("\n").sort(), [
        "ipclaim.berth.dev/mysql-0",
        "ippool.berth.dev/db",
        `ipreservation.berth.dev/${name}`,
      ]);
    });

    it("let an agent watch the claims of its node, and people what is of a pool", async () => {
      const found = async (kind: Kind, fieldSelector: string) =>
        (await clientOf(resourceOf(kind)).page({ fieldSelector }, { limit: 10, next: "" })).items.length;
      assert.equal(await found("claim", "spec.binding.node=node-a"), 1);
      assert.equal(await found("claim", "spec.binding.node=node-b"), 0);
      assert.equal(await found("claim", "status.attachment.node=node-a"), 1);
      assert.equal(await found("reservation", "spec.pool=db"), 1);
      assert.equal(await found("reservation", "spec.claim.namespace=shop,spec.claim.name=mysql-1"), 0);
    });
  });
}

function agreementCases(kind: Kind, on: { store: () => Store; client: () => Client }): void {
  it(`take every ${kind} that Berth can write, and give it back`, async () => {
    await fc.assert(
      fc.asyncProperty(ANY[kind], async (record) => {
        const { kind: outcome, stored } = await on.store().create(kind, record);
        assert.equal(outcome, "created");
        assert.deepEqual(stored.record, record);
        assert.deepEqual(await on.store().get(kind, stored.key), stored);
        const place = placeOf(kind, stored.key);
        const item = place && (await on.client().get(place));
        assert.ok(item);
        await wipe(on.client(), item);
      }),
      { numRuns: 60 },
    );
  });

  it(`take no ${kind} that Berth cannot read`, async () => {
    const client = on.client();
    let refused = 0;
    const spoiling = ANY[kind].chain((record) =>
      fc.tuple(fc.constant(record), spoiled({ spec: specOf(kind, record) })),
    );
    await fc.assert(
      fc.asyncProperty(spoiling, async ([record, object]) => {
        const place = placeOf(kind, keyOf(kind, record));
        assert.ok(place);
        const item = await dryCreate(client, place, object);
        if (typeof item === "string") refused++;
        else assert.equal(storedOf(kind, item).key, keyOf(kind, record));
      }),
      { numRuns: 300 },
    );
    assert.ok(refused > 100, `${refused} of 300 were refused`);
  });
}

/** What would be made of the object, or why it is refused for what it is. */
async function dryCreate(client: Client, place: ObjectName, body: Body): Promise<KubeItem | string> {
  const { resource, connection } = client;
  const answer = await connection.call({
    method: "POST",
    path: collectionPath(resource, place.namespace),
    query: { dryRun: "All", fieldValidation: "Strict" },
    body: { ...body, apiVersion: apiVersionOf(resource), kind: resource.kind, metadata: place },
  });
  if (answer.status === 400 || answer.status === 422) return statusOf(answer.body, answer.status).message;
  assert.equal(answer.status, 201, JSON.stringify(answer.body));
  const object = answer.body as { metadata: object };
  return asItem({ ...object, metadata: { ...object.metadata, resourceVersion: "" } }); // it was never written
}

async function refuses(client: Client, place: ObjectName, body: Body, words: RegExp): Promise<void> {
  const said = await dryCreate(client, place, body);
  assert.ok(typeof said === "string", `${JSON.stringify(place)} is taken`);
  assert.match(said, words);
}
