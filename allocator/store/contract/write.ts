// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe } from "node:test";
import type { Address } from "../../ip/address.ts";
import type { ClaimStatus } from "../../model/claim.ts";
import type { Kind, Store, Stored } from "../store.ts";
import { blockCases, blockStatusCases } from "./blocks.ts";
import { addr, bareClaim, fullClaim, nth, poolOf, reservationOf } from "./samples.ts";
import { caseOf, created, expectReplaced, listed, type Open } from "./subject.ts";

const WAITING: ClaimStatus = { message: "it waits" };

/** create, get, replace, report, remove. */
export function writeContract(open: Open): void {
  describe("create", () => createCases(open));
  describe("keys", () => keyCases(open));
  describe("compare-and-set", () => changeCases(open));
  describe("status", () => statusCases(open));
  describe("blocks", () => blockCases(open));
  describe("the status of a block", () => blockStatusCases(open));
}

function createCases(open: Open): void {
  caseOf(
    open,
    "lets exactly one of 50 racing creates win, and shows the winner to all",
    async ({ store }) => {
      const address = nth(51);
      const results = await Promise.all(
        Array.from({ length: 50 }, (_, i) =>
          store.create("reservation", reservationOf(address, { nonce: `n${i}` })),
        ),
      );
      const winners = results.filter((result) => result.kind === "created");
      assert.equal(winners.length, 1);
      for (const result of results) assert.deepEqual(result.stored, winners[0]?.stored);
      assert.deepEqual(await store.get("reservation", address), winners[0]?.stored);
    },
  );

  caseOf(open, "answers `exists` with the record that is stored, and leaves it alone", async ({ store }) => {
    const first = await created(store, "reservation", reservationOf(nth(51), { nonce: "first" }));
    const again = await store.create("reservation", reservationOf(nth(51), { nonce: "second", pool: "web" }));
    assert.deepEqual(again, { kind: "exists", stored: first });
    assert.deepEqual(await store.get("reservation", nth(51)), first);
  });

  caseOf(open, "makes a new incarnation after a remove", async ({ store }) => {
    const first = await created(store, "reservation", reservationOf(nth(51)));
    assert.deepEqual(await store.remove("reservation", first), { kind: "removed" });
    assert.equal(await store.get("reservation", nth(51)), undefined);
    const second = await created(store, "reservation", reservationOf(nth(51)));
    assert.notEqual(second.uid, first.uid);
    assert.notEqual(second.revision, first.revision);
  });

  caseOf(open, "gives 64 parallel allocators each an address of its own out of 64", async ({ store }) => {
    const range = Array.from({ length: 64 }, (_, i) => nth(i));
    const got = await Promise.all(range.map((_, i) => allocate(store, range, i)));
    assert.deepEqual(got.sort(), [...range].sort());
    assert.equal(await allocate(store, range, 0), undefined);
    const holders = (await listed(store, "reservation")).map(({ record }) => record.nonce);
    assert.deepEqual(new Set(holders).size, 64);
  });
}

/** Tries the range from a point that many others start at too, so that they collide. */
async function allocate(store: Store, range: readonly Address[], who: number): Promise<Address | undefined> {
  const start = (who % 4) * 16;
  for (const address of [...range.slice(start), ...range.slice(0, start)]) {
    const result = await store.create("reservation", reservationOf(address, { nonce: `allocator-${who}` }));
    if (result.kind === "created") return address;
  }
  return undefined;
}

function keyCases(open: Open): void {
  caseOf(open, "of one kind never meet those of another", async ({ store }) => {
    const pool = await created(store, "pool", poolOf("10.20.0.51"));
    const reservation = await created(store, "reservation", reservationOf(addr("10.20.0.51")));
    assert.deepEqual(await store.get("pool", "10.20.0.51"), pool);
    assert.deepEqual(await store.get("reservation", "10.20.0.51"), reservation);
    assert.deepEqual(await listed(store, "claim"), []);
    assert.deepEqual(await store.remove("pool", pool), { kind: "removed" });
    assert.deepEqual(await listed(store, "reservation"), [reservation]);
  });

  caseOf(open, "of claims keep namespace and name apart", async ({ store }) => {
    const shop = await created(store, "claim", bareClaim("mysql-0"));
    const bank = await created(store, "claim", bareClaim("mysql-0", { namespace: "bank" }));
    assert.deepEqual([shop.key, bank.key], ["shop/mysql-0", "bank/mysql-0"]);
    await store.remove("claim", shop);
    assert.equal(await store.get("claim", "shop/mysql-0"), undefined);
    assert.deepEqual(await store.get("claim", "bank/mysql-0"), bank);
  });

  caseOf(open, "of reservations are addresses in canonical form, of both families", async ({ store }) => {
    for (const text of ["10.20.0.51", "fd00:20::51", "::", "2001:db8:0:1::", "ffff::ffff"]) {
      const stored = await created(store, "reservation", reservationOf(addr(text)));
      assert.equal(stored.key, text);
      assert.deepEqual(await store.get("reservation", text), stored);
    }
    assert.equal(await store.get("reservation", "fd00:20::52"), undefined);
    assert.equal((await listed(store, "reservation")).length, 5);
  });
}

/** What a claim says besides its status, which some engines do not take at create. */
function withoutStatus({ record }: Stored<"claim">): Omit<Stored<"claim">["record"], "status"> {
  const { status: _, ...rest } = record;
  return rest;
}

function changeCases(open: Open): void {
  caseOf(open, "replaces what was seen: same incarnation, new revision", async ({ store }) => {
    const first = await created(store, "reservation", reservationOf(nth(51)));
    const next = reservationOf(nth(51), { marked: true, releasedAt: 1_700_000_000_000, cooldownMs: 600_001 });
    const second = expectReplaced(await store.replace("reservation", first, next));
    assert.notEqual(second.revision, first.revision);
    assert.deepEqual(second, { ...first, record: next, revision: second.revision });
    assert.deepEqual(await store.get("reservation", nth(51)), second);
    const third = expectReplaced(await store.replace("reservation", second, reservationOf(nth(51))));
    assert.deepEqual(third.record, reservationOf(nth(51)), "fields that are left out are gone");
  });

  caseOf(open, "tells a claim that was admitted a millisecond later from what it was", async ({ store }) => {
    const seen = await created(store, "claim", bareClaim("mysql-0", { admittedAt: 1_700_000_000_000 }));
    const later = { ...seen.record, admittedAt: 1_700_000_000_001 };
    const again = expectReplaced(await store.replace("claim", seen, later));
    assert.deepEqual(again.record, later);
    assert.deepEqual(await store.remove("claim", seen), { kind: "conflict" });
  });

  const stale = (
    title: string,
    act: (store: Store, old: Stored<"reservation">) => Promise<{ kind: string }>,
  ) => {
    caseOf(open, `does not ${title} from a stale revision`, async ({ store }) => {
      const old = await created(store, "reservation", reservationOf(nth(51)));
      const now = expectReplaced(
        await store.replace("reservation", old, reservationOf(nth(51), { marked: true })),
      );
      assert.deepEqual(await act(store, old), { kind: "conflict" });
      assert.deepEqual(await listed(store, "reservation"), [now]);
    });
    caseOf(open, `does not ${title} a record that is gone`, async ({ store }) => {
      const old = await created(store, "reservation", reservationOf(nth(51)));
      await store.remove("reservation", old);
      assert.deepEqual(await act(store, old), { kind: "conflict" });
      assert.deepEqual(await listed(store, "reservation"), []);
    });
    caseOf(open, `does not ${title} the next incarnation, equal as it may look`, async ({ store }) => {
      const old = await created(store, "reservation", reservationOf(nth(51)));
      await store.remove("reservation", old);
      const now = await created(store, "reservation", old.record);
      assert.deepEqual(await act(store, old), { kind: "conflict" });
      assert.deepEqual(await listed(store, "reservation"), [now]);
    });
  };
  stale("replace", (store, old) =>
    store.replace("reservation", old, reservationOf(nth(51), { nonce: "late" })),
  );
  stale("remove", (store, old) => store.remove("reservation", old));

  caseOf(open, "lets exactly one of 20 racing changes through", async ({ store }) => {
    const seen = await created(store, "claim", bareClaim("mysql-0"));
    const results = await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        i % 4 === 3
          ? store.remove("claim", seen)
          : store.replace("claim", seen, bareClaim("mysql-0", { nonce: `n${i}` })),
      ),
    );
    assert.equal(results.filter((result) => result.kind !== "conflict").length, 1);
  });
}

function statusCases(open: Open): void {
  caseOf(open, "round-trips exactly, with a claim of every field and of none", async ({ store }) => {
    for (const claim of [fullClaim("full-0"), bareClaim("bare-0")]) {
      const first = await created(store, "claim", claim);
      const reported = expectReplaced(await store.report(first, claim.status));
      assert.deepEqual(reported.record, claim);
      assert.deepEqual(await store.get("claim", first.key), reported);
    }
  });

  caseOf(open, "is all that a report writes", async ({ store }) => {
    const first = await created(store, "claim", fullClaim("mysql-0"));
    const claimed: Stored<"claim"> = { ...first, record: { ...first.record, nonce: "not stored" } };
    const reported = expectReplaced(await store.report(claimed, WAITING));
    assert.deepEqual(reported.record.status, WAITING);
    assert.deepEqual(withoutStatus(reported), withoutStatus(first));
    assert.deepEqual([reported.uid, reported.createdAt], [first.uid, first.createdAt]);
    assert.notEqual(reported.revision, first.revision);
    assert.deepEqual(await store.get("claim", first.key), reported);
  });

  caseOf(open, "is not touched by a replace", async ({ store }) => {
    const first = expectReplaced(
      await store.report(await created(store, "claim", bareClaim("mysql-0")), fullClaim("mysql-0").status),
    );
    const next = bareClaim("mysql-0", { nonce: "n2", status: WAITING });
    const replaced = expectReplaced(await store.replace("claim", first, next));
    assert.deepEqual(replaced.record, { ...next, status: first.record.status });
    assert.deepEqual(await store.get("claim", first.key), replaced);
  });

  caseOf(open, "is written with the rest by a store that does not keep the two apart", async ({ store }) => {
    if (store.replaceClaim === undefined) return;
    const first = await created(store, "claim", fullClaim("mysql-0"));
    const next = bareClaim("mysql-0", { nonce: "n2", status: WAITING });
    const replaced = expectReplaced(await store.replaceClaim(first, next));
    assert.deepEqual(replaced, { ...first, record: next, revision: replaced.revision });
    assert.notEqual(replaced.revision, first.revision);
    assert.deepEqual(await store.get("claim", first.key), replaced);
    assert.deepEqual(await store.replaceClaim(first, next), { kind: "conflict" });
    await store.remove("claim", replaced);
    assert.deepEqual(await store.replaceClaim(replaced, next), { kind: "conflict" });
    assert.deepEqual(await listed<Kind>(store, "claim"), []);
  });

  caseOf(open, "is not reported from a stale revision, nor for a claim that is gone", async ({ store }) => {
    const old = await created(store, "claim", bareClaim("mysql-0"));
    const now = expectReplaced(await store.replace("claim", old, bareClaim("mysql-0", { nonce: "n2" })));
    assert.deepEqual(await store.report(old, WAITING), { kind: "conflict" });
    assert.deepEqual(await store.get("claim", old.key), now);
    await store.remove("claim", now);
    assert.deepEqual(await store.report(now, WAITING), { kind: "conflict" });
    assert.deepEqual(await listed<Kind>(store, "claim"), []);
  });
}
