// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { BerthError } from "../../allocator/base/errors.ts";
import { readObject } from "../../allocator/manifest/kubernetes-object.ts";
import type { Claim } from "../../allocator/model/claim.ts";
import type { Reservation } from "../../allocator/model/reservation.ts";
import type { PoolSpec } from "../../allocator/pool/pool-spec.ts";
import {
  addrs,
  bindingTo,
  claimRecord,
  DB_POOL,
  granted,
  parsed,
  poolRecord,
  reservationsOf,
  storedAs,
} from "../../test/support/fixtures.ts";
import type { Backend } from "../backend/backend.ts";
import { Folder } from "../testing/folder.ts";
import { poolsForNobody } from "./pools-for-nobody.ts";

const SHOP = { matchLabels: { team: "shop" } };
const RACK = { matchLabels: { rack: "9" } };

/** A cluster with one node, and these namespaces; or one that lets nobody list them. */
function clusterOf(rack: string, namespaces: Readonly<Record<string, string>> | "hidden") {
  const objects = {
    Node: [{ name: "node-a", labels: { rack } }],
    Namespace:
      namespaces === "hidden"
        ? []
        : Object.entries(namespaces).map(([name, team]) => ({ name, labels: { team } })),
  };
  const each = async function* (kind: "Node" | "Namespace") {
    if (namespaces === "hidden") throw new BerthError("STORE_READ_ONLY", "no");
    for (const metadata of objects[kind])
      yield granted(readObject({ apiVersion: "v1", kind, metadata, spec: {} }));
  };
  return { place: "cluster", world: { each } } as unknown as Pick<Backend, "place" | "world">;
}

const claims = ["a", "b", "c", "d"].map((name, n) =>
  claimRecord({ namespace: "bank", name, nonce: name, addresses: addrs(`10.20.0.${70 + n}`) }),
);
const held = claims.flatMap((claim) => reservationsOf(claim));

interface Held {
  readonly claims?: readonly Claim[];
  readonly reservations?: readonly Reservation[];
}

async function foundOf(
  spec: Partial<PoolSpec>,
  backend: Pick<Backend, "place" | "world">,
  { claims: some = claims, reservations = held }: Held = {},
) {
  const pools = [parsed(poolRecord("db", "10.20.0.0/24", spec))];
  const stored = reservations.map((record) => storedAs("reservation", record));
  const records = { pools, claims: some.map((one) => storedAs("claim", one)), reservations: stored };
  const { findings, isPart } = await poolsForNobody(records, backend);
  return {
    isPart,
    findings: findings.map(({ kind, subject, message }) => [kind, subject, message] as const),
  };
}

const NONE: Held = { claims: [], reservations: [] };

describe("pools that nobody can use", () => {
  it("are those that no node is of, while claims have addresses of them", async () => {
    assert.deepEqual(await foundOf({ nodeSelector: RACK }, clusterOf("1", {})), {
      isPart: false,
      findings: [
        [
          "no-node",
          "db",
          'pool "db" is for nodes with rack=9, and no node has that now: a pod with an address of it stays Pending until one has',
        ],
      ],
    });
    for (const [spec, rack] of [
      [{ nodeSelector: RACK }, "9"],
      [{}, "1"],
      [{ nodeSelector: RACK, disabled: true }, "1"],
    ] as const)
      assert.deepEqual((await foundOf(spec, clusterOf(rack, {}))).findings, []);
  });

  it("are not those that wait for nodes or namespaces which come later", async () => {
    const space = clusterOf("1", { bank: "bank" });
    const nodeCIDRs = { use: "PodCIDR", blockSize: { ipv4: 26 } } as const;
    for (const spec of [
      { nodeSelector: RACK },
      { nodeSelector: RACK, nodeCIDRs },
      { namespaceSelector: SHOP },
    ] as const)
      assert.deepEqual(await foundOf(spec, space, NONE), { findings: [], isPart: false });
    const retained = claims.map((one) => ({ ...one, retained: { since: 1, because: "scaled" } }) as const);
    const byHand = claims.map((one) => ({ ...one, handMade: true }));
    for (const some of [retained, byHand])
      assert.deepEqual((await foundOf({ nodeSelector: RACK }, space, { claims: some })).findings, []);
    const [first, ...rest] = byHand;
    const bound = first && { ...first, binding: bindingTo("a", "node-a") };
    const found = await foundOf({ nodeSelector: RACK }, space, { claims: bound ? [bound, ...rest] : [] });
    assert.equal(found.findings.length, 1);
  });

  it("are those that are closed to who has addresses of them", async () => {
    const namespaces = { shop: "shop", bank: "bank" };
    const { findings } = await foundOf({ namespaceSelector: SHOP }, clusterOf("1", namespaces));
    assert.equal(findings.length, 1);
    assert.match(
      findings[0]?.[2] ?? "",
      /^pool db is not open to the namespaces of 4 claims that have addresses of it \(bank\/a, bank\/b, bank\/c and 1 more\): each is kept while its pod runs, /,
    );
    const gone = await foundOf({ namespaceSelector: SHOP }, clusterOf("1", { shop: "shop" }));
    assert.deepEqual(gone.findings, [], "a namespace that is gone takes its claims along");
    const cooling = held.map((one) => ({ ...one, releasedAt: 1 }));
    const left = await foundOf({ namespaceSelector: SHOP }, clusterOf("1", namespaces), {
      reservations: cooling,
    });
    assert.deepEqual(left.findings, []);
  });

  it("are not known to who may not list nodes and namespaces", async () => {
    const hidden = clusterOf("1", "hidden");
    for (const spec of [{ nodeSelector: RACK }, { namespaceSelector: SHOP }])
      assert.deepEqual(await foundOf(spec, hidden), { findings: [], isPart: true });
    for (const [spec, some] of [
      [{}, {}],
      [{ nodeSelector: RACK, namespaceSelector: SHOP }, NONE],
    ] as const)
      assert.equal((await foundOf(spec, hidden, some)).isPart, false, "nothing had to be looked at");
  });

  it("are told by check, on one host too", async (t: TestContext) => {
    const pools = [{ ...DB_POOL, spec: { ...DB_POOL.spec, namespaceSelector: SHOP } }];
    const data = await Folder.of(t, { pools, claims, reservations: held });
    const { code, stdout } = await data.call("check");
    assert.equal(code, 0);
    assert.match(stdout, /^pending +closed +pool db is not open to the namespaces of 4 claims /m);
    assert.match(stdout, /^ok, but 1 pool is closed to who would have it: /m);
    const labels = { team: "shop" };
    const space = { apiVersion: "v1", kind: "Namespace", metadata: { name: "bank", labels } };
    const open = await Folder.of(t, { pools, claims, reservations: held, objects: [space] });
    assert.match((await open.call("check")).stdout, /^ok: /);
  });
});
