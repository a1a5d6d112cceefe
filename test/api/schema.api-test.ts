// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import fc from "fast-check";
import { Fields } from "../../allocator/manifest/kubernetes-object.ts";
import type { Claim } from "../../allocator/model/claim.ts";
import type { PoolSpec } from "../../allocator/pool/pool.ts";
import {
  addr,
  bareClaim,
  blockOf,
  fullClaim,
  poolOf,
  reservationOf,
  SAMPLE_NAMESPACES,
} from "../../allocator/store/contract/samples.ts";
import { placeOf, resourceOf, specOf, storedOf } from "../../allocator/store/kubernetes/objects.ts";
import type { Kind, Store } from "../../allocator/store/store.ts";
import { Client } from "../../kube/api/client.ts";
import { RESERVATIONS, type Resource } from "../../kube/api/resource.ts";
import { attachmentOf } from "../support/fixtures.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { clear, installDefinitions, makeNamespaces } from "./crds.ts";
import { refuses } from "./dry-create.ts";
import { FULL_POOL, KINDS } from "./full-records.ts";
import { listItems } from "./list-items.ts";
import { openStore } from "./open-store.ts";
import type { ControlPlane } from "./plane.ts";
import { anyAddress, anyIPv6 } from "./records.ts";
import { agreementCases } from "./schema-agreement.ts";
import { openControlPlane } from "./shared-plane.ts";

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
      store = openStore(connection);
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
        (await listItems(clientOf(resourceOf(kind)), { fieldSelector })).length;
      assert.equal(await found("claim", "spec.binding.node=node-a"), 1);
      assert.equal(await found("claim", "spec.binding.node=node-b"), 0);
      assert.equal(await found("claim", "status.attachment.node=node-a"), 1);
      assert.equal(await found("reservation", "spec.pool=db"), 1);
      assert.equal(await found("reservation", "spec.claim.namespace=shop,spec.claim.name=mysql-1"), 0);
    });
  });
}
