// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { BerthError } from "../../allocator/base/errors.ts";
import type { Store } from "../../allocator/store/store.ts";
import { DB_POOL, NOW, poolRecord, reservationRecord } from "../../test/support/fixtures.ts";
import type { Backend } from "../backend/backend.ts";
import { withBackend } from "../backend/open-backend.ts";
import { Folder } from "../testing/folder.ts";
import { blocks } from "./blocks.ts";
import type { AnyListing } from "./listing.ts";
import { reservations } from "./reservations.ts";

const cut = { pool: "gone", node: "node-b", nodeUID: "u", holes: [], granted: true } as const;

/** What was given back, of pools that are there and of one that is not; what each is said to be doing. */
async function statesIn(t: TestContext, listing: AnyListing, areHidden = false): Promise<string> {
  const given = ["10.20.0.9", "10.50.0.9", "10.60.0.9"].map((address) =>
    reservationRecord(address, { releasedAt: NOW, pool: address === "10.20.0.9" ? "db" : "gone" }),
  );
  const slow = poolRecord("slow", "10.60.0.0/24", { cooldown: "5m" });
  const data = await Folder.of(t, { pools: [DB_POOL, slow], reservations: given });
  let text = "";
  await withBackend(data.context(), "write", async (backend) => {
    const { store } = backend;
    await store.create("block", { ...cut, cidr: "10.50.1.0/28", releasedAt: NOW });
    const get: Store["get"] = (kind, key) => store.get(kind, key);
    const list: Store["list"] = (kind) => (kind === "pool" && areHidden ? forbidden() : store.list(kind));
    const seen = { ...backend, store: { get, list } } as unknown as Backend;
    const query = { format: "table", namespace: undefined, name: undefined } as const;
    await listing.show(seen, query, NOW, async (part) => {
      text += part;
    });
  });
  const rows = text.trimEnd().split("\n").slice(1);
  return rows.map((row) => row.replace(/^(\S+) .* (cooling(?: until \S+)?) .*$/, "$1 $2")).join("\n");
}

function forbidden(): never {
  throw new BerthError("STORE_READ_ONLY", "this user may not list pools");
}

describe("what cools", () => {
  it("is said to as long as Berth lets it: by its pool, by the one that it is in now, or by default", async (t) => {
    assert.equal(
      await statesIn(t, reservations),
      "10.20.0.9 cooling until 2026-01-01T00:00:30Z\n" +
        "10.50.0.9 cooling until 2026-01-01T00:00:30Z\n" +
        "10.60.0.9 cooling until 2026-01-01T00:05:00Z",
    );
    assert.equal(await statesIn(t, blocks), "10.50.1.0/28 cooling until 2026-01-01T00:00:30Z");
  });

  it("is said to cool, and not until when, to who may not read pools", async (t) => {
    assert.equal(
      await statesIn(t, reservations, true),
      "10.20.0.9 cooling\n10.50.0.9 cooling\n10.60.0.9 cooling",
    );
    assert.equal(await statesIn(t, blocks, true), "10.50.1.0/28 cooling");
  });
});
