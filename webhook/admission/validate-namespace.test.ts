// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { OWN_OF_EACH } from "../../allocator/model/dialect.ts";
import { DB_POOL, poolRecord } from "../../test/support/fixtures.ts";
import { deniedAs, namespaceObject, pod, review } from "../../test/support/objects.ts";
import { send } from "../../test/support/reviewing.ts";
import { openWorld } from "../../test/support/world.ts";
import type { AdmissionContext } from "./admission-context.ts";
import { validateNamespaces } from "./validate-namespace.ts";

const ROUTE = "/validate/namespaces";

describe("a namespace", () => {
  it("is kept with its labels and defaults, under its name alone", async () => {
    await using world = await openWorld();
    const shop = namespaceObject("shop", { "berth.dev/pools": "db" }, { team: "shop" });
    assert.equal((await send(world, ROUTE, shop, { namespace: "shop" })).allowed, true);
    assert.deepEqual(await world.objects.namespace("shop"), {
      name: "shop",
      labels: { team: "shop", "kubernetes.io/metadata.name": "shop" },
      annotations: { "berth.dev/pools": "db" },
    });
    const changed = namespaceObject("shop", {}, { team: "bank" });
    await send(world, ROUTE, changed, { operation: "UPDATE", namespace: "shop" });
    assert.deepEqual((await world.objects.namespace("shop"))?.annotations, {});
  });

  it("that names a pool which is not there, or misspells a label, is kept and told so", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const shop = namespaceObject(
      "shop",
      { "berth.dev/pools": "nix,db" },
      { "berth.dev/admision": "enabled" },
    );
    assert.deepEqual((await send(world, ROUTE, shop)).warnings, [
      "berth knows no label berth.dev/admision; did you mean berth.dev/admission?",
      'annotation berth.dev/pools: there is no pool "nix"; name one of "db"; until then its pods are refused',
    ]);
  });

  it("that names a pool which serves none of its pods is kept and told so", async () => {
    const closed = { namespaceSelector: { matchLabels: { team: "bank" } } };
    const apps = { podSelector: { matchLabels: { app: "x" } }, authorization: "ServiceAccount" as const };
    await using world = await openWorld({
      pools: [
        DB_POOL,
        poolRecord("vault", "10.50.0.0/29", closed),
        poolRecord("old", "10.51.0.0/29", { disabled: true }),
        poolRecord("apps", "10.52.0.0/29", apps),
        poolRecord("four", "10.53.0.0/29"),
      ],
    });
    const vault = 'pool "vault" is not open to namespace shop; open to it: "apps", "db", "four"';
    const noIPv6 = 'no IPv6 range in pool "four"; ask for another family or add a pool that has it';
    for (const [pools, families, reported] of [
      ["vault", undefined, vault],
      ["vault/IPv6", undefined, vault],
      ["10.50.0.0/29", undefined, vault],
      ["old", undefined, 'pool "old" takes no new reservations; name another pool'],
      ["four/IPv6", undefined, noIPv6],
      ["four", "IPv6", noIPv6],
      // by what only its pods say
      ["apps", undefined, undefined],
      ["four,db", "IPv4", undefined],
    ] as const) {
      const asked = families === undefined ? {} : { "berth.dev/families": families };
      const shop = namespaceObject("shop", { "berth.dev/pools": pools, ...asked });
      const { allowed, warnings } = await send(world, ROUTE, shop);
      const words = `annotation berth.dev/pools: ${reported}; until then its pods are refused`;
      assert.deepEqual([allowed, warnings], [true, reported === undefined ? undefined : [words]], pools);
    }
    const bank = namespaceObject("bank", { "berth.dev/pools": "vault" }, { team: "bank" });
    assert.equal((await send(world, ROUTE, bank)).warnings, undefined);
  });

  it("does not tell who may not list pools which there are", async () => {
    const closed = { namespaceSelector: { matchLabels: { team: "bank" } } };
    await using world = await openWorld({ pools: [DB_POOL, poolRecord("vault", "10.50.0.0/29", closed)] });
    const admission = {
      ...world.admission,
      readAccess: { mayRead: async () => await Promise.resolve(false) },
    };
    const reported = async (pools: string) => {
      const asked = review(namespaceObject("shop", { "berth.dev/pools": pools }));
      return (await validateNamespaces(admission)(asked, new AbortController().signal)).warnings;
    };
    const words = await reported("vault");
    assert.match(
      words?.join() ?? "",
      /^annotation berth.dev\/pools: what is asked for is in no pool that is open/,
    );
    assert.deepEqual(await reported("nosuch"), words);
  });

  it("cannot pretend to be another one", async () => {
    await using world = await openWorld();
    await send(world, ROUTE, namespaceObject("shop", {}, { "kubernetes.io/metadata.name": "bank" }));
    assert.equal((await world.objects.namespace("shop"))?.labels["kubernetes.io/metadata.name"], "shop");
  });

  it("that is deleted has no defaults any more", async () => {
    await using world = await openWorld();
    const shop = namespaceObject("shop", { "berth.dev/pools": "db" });
    await send(world, ROUTE, shop);
    await send(world, ROUTE, shop, { operation: "DELETE", namespace: "shop" });
    assert.deepEqual((await world.objects.namespace("shop"))?.annotations, {});
  });

  it("may be deleted though nobody can read its defaults", async () => {
    await using world = await openWorld();
    const broken = namespaceObject("shop", { "berth.dev/ttl": "soon" });
    assert.equal(
      deniedAs(await send(world, ROUTE, broken)),
      'REQUEST_INVALID: annotation berth.dev/ttl: "soon" is not a duration; write 30s, 5m or 48h',
    );
    assert.equal((await send(world, ROUTE, broken, { operation: "DELETE" })).allowed, true);
  });

  it("that asks berth in another system's words without its label is told so", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const { embedded: _, ...admission } = world.admission;
    const reported = async (
      annotations: Record<string, string>,
      labels = {},
      dialects: AdmissionContext["dialects"] = OWN_OF_EACH,
    ) => {
      const request = review(namespaceObject("shop", annotations, labels));
      const handle = validateNamespaces({ ...admission, dialects });
      return (await handle(request, new AbortController().signal)).warnings ?? [];
    };
    for (const [key, value, theirs] of [
      ["cni.projectcalico.org/ipv4pools", '["db"]', '["theirs"]'],
      ["ipam.antrea.io/ippools", "db", "theirs"],
      ["ipam.spidernet.io/default-ipv4-ippool", '["db"]', '["theirs"]'],
      ["ipam.cilium.io/ip-pool", "db", "theirs"],
    ] as const) {
      const words = `annotation ${key} asks berth, and berth gives nothing for it to pods without annotations of their own until the namespace has the label berth.dev/admission=enabled`;
      assert.deepEqual(await reported({ [key]: value }), [words]);
      assert.deepEqual(await reported({ [key]: value }, { "berth.dev/admission": "enabled" }), []);
      assert.match(
        String(await reported({ [key]: theirs })),
        /^annotation [^ ]+ asks for theirs, and berth has no such pool: [^,]*, [^,]*$/,
      );
      assert.deepEqual(await reported({ [key]: theirs }, {}, {}), [words]);
      assert.deepEqual(await reported({ [key]: "" }), []);
    }
  });

  it("in a dry run, or in a cluster, is looked at and not kept", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const before = world.dump();
    const shop = namespaceObject("shop", { "berth.dev/pools": "db" });
    assert.deepEqual(await send(world, ROUTE, shop, { dryRun: true }), { uid: "review-1", allowed: true });
    const { embedded: _, ...admission } = world.admission;
    await validateNamespaces(admission)(review(shop), new AbortController().signal);
    assert.equal(world.dump(), before);
    assert.equal(
      deniedAs(await send(world, ROUTE, pod("a"))),
      "OBJECT_INVALID: this webhook decides about Namespace, and the object is of kind Pod; install the webhook configurations from the chart",
    );
  });
});
