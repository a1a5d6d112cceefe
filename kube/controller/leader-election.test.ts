// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { BerthError } from "../../allocator/base/errors.ts";
import { noopLogger } from "../../allocator/base/ports.ts";
import { ManualClock } from "../../system/testing/manual-clock.ts";
import { eventLoopTurns } from "../testing/event-loop-turns.ts";
import {
  elect,
  type LeaderTerm,
  type LeaseLock,
  type LeaseRecord,
  type ObservedLease,
} from "./leader-election.ts";

/** The one record, as the API server keeps it. */
class Records {
  #seen: ObservedLease | undefined;
  #revision = 0;

  get record(): LeaseRecord | undefined {
    return this.#seen?.record;
  }

  put(record: LeaseRecord): ObservedLease {
    this.#revision++;
    this.#seen = { record, revision: String(this.#revision) };
    return this.#seen;
  }

  /** As one process reaches it. */
  box(link: Link): LeaseLock {
    const through = async <T>(work: () => T): Promise<T> => {
      if (link.state === "hung") await link.released.promise;
      if (link.state === "down") throw new BerthError("STORE_UNAVAILABLE", "no API server");
      return work();
    };
    return {
      read: () => through(() => this.#seen),
      create: (record) => through(() => (this.#seen === undefined ? this.put(record) : undefined)),
      replace: (seen, record) =>
        through(() => (this.#seen?.revision === seen.revision ? this.put(record) : undefined)),
    };
  }
}

class Link {
  state: "up" | "down" | "hung" = "up";
  readonly released = Promise.withResolvers<void>();
}

describe("lead", () => {
  let clock: ManualClock;
  let records: Records;
  let closing: (() => Promise<void>)[];

  beforeEach(() => {
    clock = new ManualClock();
    records = new Records();
    closing = [];
  });
  afterEach(async () => {
    for (const close of closing) await close();
  });

  function candidate(identity: string, link = new Link()) {
    const stop = new AbortController();
    const terms: LeaderTerm[] = [];
    const work = async (term: LeaderTerm) => {
      terms.push(term);
      await new Promise((resolve) => term.signal.addEventListener("abort", resolve, { once: true }));
    };
    const deps = { clock, random: { fraction: () => 0 }, log: noopLogger };
    const ended = elect({ box: records.box(link), identity, ...deps }, work, stop.signal);
    const end = async () => {
      stop.abort();
      link.released.resolve();
      await ended;
    };
    closing.push(end);
    return { link, terms, end, leads: () => terms.at(-1)?.holds() === true };
  }

  /** Time passes, in steps in which everybody can act. */
  async function pass(ms: number): Promise<void> {
    for (let left = ms; left > 0; left -= 500) {
      clock.advance(Math.min(500, left));
      await eventLoopTurns();
    }
  }

  it("makes one leader of several, and keeps him for as long as he renews", async () => {
    const [one, two] = [candidate("one"), candidate("two")];
    await eventLoopTurns();
    await pass(60_000);
    assert.deepEqual([one.leads(), two.leads()], [true, false]);
    assert.deepEqual([one.terms.length, two.terms.length], [1, 0]);
    assert.equal(records.record?.holder, "one");
    assert.equal(records.record.renewedAt, clock.now());
    assert.equal(records.record.transitions, 0);
  });

  it("gives the lease back at the end, and the next one need not wait", async () => {
    const [one, two] = [candidate("one"), candidate("two")];
    await eventLoopTurns();
    await one.end();
    assert.equal(one.leads(), false);
    assert.deepEqual([records.record?.holder, records.record?.durationMs], ["", 1_000]);
    await pass(2_000);
    assert.equal(two.leads(), true);
    assert.equal(records.record?.transitions, 1);
  });

  for (const trouble of ["down", "hung"] as const) {
    it(`steps down 10 s after the last renewal when the API server is ${trouble}, 5 s before another can lead`, async () => {
      const [one, two] = [candidate("one"), candidate("two")];
      await eventLoopTurns();
      await pass(4_000);
      one.link.state = trouble;
      await pass(9_500);
      assert.equal(one.leads(), true);
      await pass(500);
      assert.equal(one.leads(), false);
      assert.equal(one.terms[0]?.signal.aborted, true);
      assert.equal(two.leads(), false);
      await pass(4_500);
      assert.equal(two.leads(), false);
      await pass(5_000); // it looks every 2 s, and may have seen the last renewal 2 s late
      assert.equal(two.leads(), true);
      one.link.state = "up";
      one.link.released.resolve();
      await pass(20_000);
      assert.deepEqual([one.leads(), two.leads()], [false, true]);
    });
  }

  it("does not believe the clocks of others", async () => {
    records.put({ holder: "old", durationMs: 15_000, acquiredAt: 0, renewedAt: 0, transitions: 3 });
    const one = candidate("one");
    await eventLoopTurns();
    await pass(14_500);
    assert.equal(one.leads(), false);
    await pass(2_000);
    assert.equal(one.leads(), true);
    assert.equal(records.record?.transitions, 4);
  });

  it("takes up again at once what it held before a restart", async () => {
    records.put({ holder: "one", durationMs: 15_000, acquiredAt: 7, renewedAt: 7, transitions: 3 });
    const one = candidate("one");
    await eventLoopTurns();
    assert.equal(one.leads(), true);
    assert.deepEqual([records.record?.acquiredAt, records.record?.transitions], [7, 3]);
  });

  it("ends the term when another has taken the lease", async () => {
    const one = candidate("one");
    await eventLoopTurns();
    await pass(2_000);
    records.put({ holder: "two", durationMs: 15_000, acquiredAt: 0, renewedAt: 0, transitions: 1 });
    await pass(2_000);
    assert.equal(one.leads(), false);
    assert.equal(records.record?.holder, "two");
  });

  it("holds nothing for a process that was paused", async () => {
    const one = candidate("one");
    await eventLoopTurns();
    const [term] = one.terms;
    clock.advance(11_000); // and nobody had his turn
    assert.equal(term?.holds(), false);
  });

  it("does the work again when it ends or fails", async () => {
    const stop = new AbortController();
    let times = 0;
    const work = async () => {
      times++;
      if (times === 1) throw new Error("a defect");
    };
    const deps = { clock, random: { fraction: () => 0 }, log: noopLogger };
    const ended = elect({ box: records.box(new Link()), identity: "one", ...deps }, work, stop.signal);
    await eventLoopTurns();
    await pass(4_000);
    stop.abort();
    await ended;
    assert.equal(times, 3);
    assert.equal(records.record?.holder, "");
  });
});
