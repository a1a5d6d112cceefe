// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import type { Kind } from "../../allocator/store/store.ts";
import { addr, addrs, claimRecord, DB_POOL, NOW, reservationsOf } from "../../test/support/fixtures.ts";
import { workload } from "../../test/support/objects.ts";
import { withBackend } from "../backend/open-backend.ts";
import { Folder } from "../testing/folder.ts";
import { tenantsOf } from "../testing/tenant.ts";
import { explainAddress } from "./explain-one.ts";

const others = claimRecord({ namespace: "bank", name: "web", nonce: "n2", addresses: addrs("10.20.0.71") });

/** What a user with rights in namespace shop, and none to these kinds, is told of an address that a claim of another one has. */
async function told(t: TestContext, kinds: readonly Kind[], given?: string) {
  const data = await Folder.of(t, {
    pools: [DB_POOL],
    claims: [others],
    reservations: reservationsOf(others),
  });
  const out = { stdout: "", stderr: "" };
  const context = data.context(out);
  const code = await withBackend(context, "read", (backend) =>
    explainAddress(
      { ...tenantsOf(backend, { kinds }), namespace: "shop" },
      { address: addr("10.20.0.71"), given },
      context,
    ),
  );
  return { code, ...out };
}

const ALL: readonly Kind[] = ["pool", "reservation", "block"];

describe("explain of a claim whose owner was scaled down", () => {
  for (const [replicas, words] of [
    [
      1,
      /^ipclaim\/shop\/mysql-0 keeps its addresses; its owner was scaled down at \S+, and needs them again\n/,
    ],
    [0, /^ipclaim\/shop\/mysql-0 keeps its addresses until \S+ .*; its owner was scaled down at \S+\n/],
  ] as const)
    it(`says whether it needs the addresses again: with ${replicas} replicas`, async (t) => {
      const retained = { since: NOW, because: "scaled" } as const;
      const retention = { whenDeleted: "Retain", whenScaled: "Retain", ttlMs: 3_600_000 } as const;
      const claim = claimRecord({ retained, retention });
      const set = workload("StatefulSet", "mysql", {
        replicas,
        annotations: { "berth.dev/ips": "10.20.0.70" },
      });
      const contents = { pools: [DB_POOL], claims: [claim], reservations: reservationsOf(claim) };
      const data = await Folder.of(t, { ...contents, objects: [set] });
      const { stdout } = await data.call("explain", "claim/shop/mysql-0");
      assert.match(stdout, words);
      assert.equal(stdout.includes("Berth ends its retention"), replicas === 1);
    });
});

describe("explain of an address that a claim of a namespace without rights has", () => {
  it("never says that it is free, and ends with 2 where nothing of it may be read", async (t) => {
    for (const kinds of [ALL, ["reservation", "block"], ["reservation"]] as const)
      for (const given of [undefined, "shop"]) {
        const { code, stdout, stderr } = await told(t, kinds, given);
        assert.deepEqual([code, stdout], [2, ""]);
        assert.doesNotMatch(stderr, /free/);
      }
  });

  it("says whose it is where the reservation may be read, with 0", async (t) => {
    const { code, stdout, stderr } = await told(t, ["pool", "block"]);
    assert.deepEqual([code, stderr], [0, ""]);
    assert.match(stdout, /^10\.20\.0\.71 is held\n/);
    assert.match(stdout, /^ {2}claim +bank\/web$/m);
    assert.doesNotMatch(stdout, /free/);
  });

  it("is refused where another namespace is named beside it, as for who may read that claim", async (t) => {
    const { code, stdout, stderr } = await told(t, ["pool", "block"], "shop");
    assert.deepEqual([code, stdout], [1, ""]);
    assert.equal(
      stderr,
      "Error: address 10.20.0.71 is held by claim bank/web, which is not in namespace shop; leave -n out if you mean that claim\n",
    );
  });
});
