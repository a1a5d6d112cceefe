// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { BerthError } from "../../../../allocator/base/errors.ts";
import { noopLogger } from "../../../../allocator/base/ports.ts";
import { parseAddress } from "../../../../allocator/ip/address.ts";
import type { HostRecord, StoredHost } from "../../../../allocator/store/etcd/hosts.ts";
import { ManualClock } from "../../../../system/testing/manual-clock.ts";
import type { InUse } from "./in-use.ts";
import { hostStateOf, Presence } from "./presence.ts";

const OWN: HostRecord = { journal: "j1", process: "p1", seen: 1 };
const FENCED = { at: 0, by: "root" };
const BOX = useOf("default/box", "10.0.0.50");

describe("hostStateOf", () => {
  const self = { journal: "j1", process: "p1", isUsing: true, wasThere: true, isForgotten: false };
  for (const [what, there, over, state] of [
    ["nothing is there", undefined, {}, "write"],
    ["nothing is there, not even its claims", undefined, { isForgotten: true }, "forgotten"],
    ["its own record is there", OWN, {}, "write"],
    ["its own is there, as of a backup, and not all of its claims", OWN, { isForgotten: true }, "forgotten"],
    [
      "another host has the name, and none of its claims",
      { ...OWN, journal: "j2" },
      { isForgotten: true },
      "another",
    ],
    ["an earlier process of it has written", { ...OWN, process: "p0" }, { wasThere: false }, "write"],
    ["a later process of it has written", { ...OWN, process: "p2" }, {}, "replaced"],
    ["another host has the name", { ...OWN, journal: "j2" }, {}, "another"],
    ["another host of the name is fenced", { ...OWN, journal: "j2", fenced: FENCED }, {}, "write"],
    ["it is fenced and has containers", { ...OWN, fenced: FENCED }, {}, "fenced"],
    ["it is fenced and has none", { ...OWN, fenced: FENCED }, { isUsing: false }, "write"],
  ] as const) {
    it(`is ${state} where ${what}`, () => {
      assert.equal(hostStateOf(there, { ...self, ...over }), state);
    });
  }
});

/** One key, by compare-and-set. */
class OneKey {
  stored: StoredHost | undefined;
  fault: BerthError | undefined;
  /** claim -> its address in etcd */
  readonly claims = new Map<string, string>([["default/box", "10.0.0.50"]]);
  /** Happens while etcd is asked of a claim. */
  asked: () => unknown = () => {};

  async get(): Promise<StoredHost | undefined> {
    if (this.fault !== undefined) throw this.fault;
    return this.stored;
  }

  async put(name: string, record: HostRecord, seen: number): Promise<StoredHost | "changed"> {
    if (this.fault !== undefined) throw this.fault;
    const revision = this.stored?.revision ?? 0;
    if (revision !== seen) return "changed";
    this.stored = { name, record, revision: revision + 1 };
    return this.stored;
  }

  /** `former`: processes that its journal knows to have been before it. */
  presence(
    journal: string,
    process: string,
    clock = new ManualClock(),
    former: readonly string[] = [],
  ): Presence {
    return new Presence({
      registry: this,
      node: "host-a",
      journal: () => journal,
      process: { id: process, isFormer: (id) => former.includes(id) },
      clock,
      log: noopLogger,
      isKept: async ({ claim, addresses }) => {
        const isKept = addresses.every((address) => this.claims.get(claim) === address);
        await this.asked();
        return isKept;
      },
    });
  }
}

describe("a host's record", () => {
  it("makes the host known, and gives way to a later process of it", async () => {
    const key = new OneKey();
    const [first, second] = [key.presence("j1", "p1"), key.presence("j1", "p2")];
    await first.beat();
    await first.beat();
    assert.equal(first.isOwn, true);
    await second.beat();
    assert.equal(second.isOwn, true);
    await first.beat(); // finds that it was changed
    await first.beat();
    assert.equal(first.isOwn, false);
    assert.match(first.refusal ?? "", /^another process serves as host host-a since/);
    assert.equal(second.refusal, undefined);
  });

  it("is another host's until that one is fenced", async () => {
    const key = new OneKey();
    await key.presence("j1", "p1").beat();
    const other = key.presence("j2", "p2");
    await other.beat();
    assert.equal(other.isOwn, false);
    assert.match(
      other.refusal ?? "",
      /^another host is called host-a in etcd \(journal j1\); start this one with/,
    );
    const there = key.stored ?? assert.fail();
    await key.put("host-a", { ...there.record, fenced: FENCED }, there.revision);
    await other.beat();
    assert.equal(other.isOwn, true);
    assert.equal(key.stored?.record.fenced, undefined);
  });

  it("stays as it was while etcd cannot be reached", async () => {
    const key = new OneKey();
    const presence = key.presence("j1", "p1");
    key.fault = new BerthError("STORE_UNAVAILABLE", "etcd is away");
    await assert.rejects(presence.beat());
    assert.deepEqual([presence.isOwn, presence.refusal], [false, undefined]);
    key.fault = undefined;
    await presence.beat();
    key.fault = new BerthError("STORE_UNAVAILABLE", "etcd is away");
    await assert.rejects(presence.beat());
    assert.equal(presence.isOwn, true);
  });

  it("is at a revision, as long as the host may give addresses", async () => {
    const key = new OneKey();
    const presence = key.presence("j1", "p1");
    const seen = await presence.revision();
    assert.equal(seen, key.stored?.revision, "one that was not written yet is written");
    assert.equal(await presence.revision(), seen);
    const { record } = key.stored ?? assert.fail();
    await key.put("host-a", { ...record, fenced: FENCED }, seen);
    assert.equal(await presence.revision(), seen, "it has not heard of it");
    await assert.rejects(presence.revision(seen), {
      code: "NOT_READY",
      message: /^host host-a was fenced at .* by root, so that the addresses/,
    });
    presence.start(() => []);
    await presence.close();
    assert.equal(await presence.revision(), key.stored?.revision, "no container of it is left");
    assert.equal(key.stored?.record.fenced, undefined);
  });

  it("is asked for once by all who want to know it at a time", async () => {
    const key = new OneKey();
    const presence = key.presence("j1", "p1");
    const all = await Promise.all(Array.from({ length: 8 }, () => presence.revision()));
    assert.deepEqual(new Set(all), new Set([1]));
  });

  it("gives nothing once etcd has lost it and its containers' claims, until they have ended", async () => {
    const key = new OneKey();
    const presence = key.presence("j1", "p1");
    let inUse = [BOX];
    presence.start(() => inUse);
    await presence.close();
    const seen = await presence.revision();
    key.stored = undefined;
    assert.equal(await presence.revision(seen), 1, "only its record is gone: it is written again");
    key.stored = undefined;
    key.claims.clear();
    await assert.rejects(presence.revision(1), {
      code: "NOT_READY",
      message: /^etcd does not have what containers of host host-a have/,
    });
    assert.deepEqual([presence.isOwn, key.stored], [false, undefined]);
    inUse = [];
    assert.equal(await presence.revision(), 1);
  });

  it("gives nothing out of an older backup that has its record and lacks a claim, in this process and the next", async () => {
    const key = new OneKey();
    const [presence, next] = [key.presence("j1", "p1"), key.presence("j1", "p2")];
    const inUse = [BOX];
    presence.start(() => inUse);
    await presence.close();
    const backup = { ...(key.stored ?? assert.fail()), revision: 77 };
    const seen = await presence.revision();
    inUse.push(useOf("default/newer", "10.0.0.51"));
    key.claims.set("default/newer", "10.0.0.51");
    key.stored = backup;
    key.claims.delete("default/newer");
    const refused = { code: "NOT_READY", message: /^etcd does not have what containers of host host-a have/ };
    await assert.rejects(presence.revision(seen), refused);
    next.start(() => inUse);
    await next.close();
    await assert.rejects(next.revision(), refused);
    inUse.pop();
    assert.equal(await next.revision(), 79, "after it said that it is alive");
  });

  it("gives nothing out of a backup in which a container of it has another address", async () => {
    const key = new OneKey();
    const presence = key.presence("j1", "p1");
    presence.start(() => [BOX]);
    await presence.close();
    const seen = await presence.revision();
    key.stored = { ...(key.stored ?? assert.fail()), revision: 77 };
    key.claims.set("default/box", "10.0.0.52");
    await assert.rejects(presence.revision(seen), {
      code: "NOT_READY",
      message:
        /\(container box \(eth0\) of network lan has 10\.0\.0\.50 by claim default\/box, for one\): its data was lost or is of an older backup.* it serves again by itself$/,
    });
  });

  for (const [what, setUp] of [
    ["does not have", (key: OneKey) => key.claims.clear()],
    ["has fenced", (key: OneKey) => void key.put("host-a", { ...OWN, fenced: FENCED }, 1)],
  ] as const) {
    it(`names the container that etcd ${what}, and what is to be done if nobody sees it end`, async () => {
      const key = new OneKey();
      await key.presence("j1", "p0").beat();
      setUp(key);
      const next = key.presence("j1", "p1");
      next.start(() => [{ ...BOX, unseen: () => "a process named its network namespace: /proc/17/ns/net" }]);
      await next.close();
      assert.match(
        next.refusal ?? "",
        /\(container box \(eth0\) of network lan has 10\.0\.0\.50 by claim default\/box, for one\).*; stop its containers, and it serves again by itself; that container box has ended this host does not see \(a process named its network namespace: \/proc\/17\/ns\/net\): once it has, send its DEL on host host-a, or boot that host \(docs\/etcd\.md, A container whose end nobody sees\)$/,
      );
    });
  }

  it("is written on while it gives nothing, so that nobody takes its containers for gone", async () => {
    const key = new OneKey();
    key.claims.clear();
    const clock = new ManualClock();
    const presence = key.presence("j1", "p1", clock);
    let inUse = [BOX];
    presence.start(() => inUse);
    const nextBeat = async () => {
      for (let i = 0; i < 20; i++) await nextTurn();
      clock.advance(10_000);
      for (let i = 0; i < 20; i++) await nextTurn();
    };
    await nextBeat();
    const { revision, record } = key.stored ?? assert.fail("it has told nobody");
    assert.match(record.refusal ?? "", /^etcd does not have what containers of host host-a have/);
    assert.equal(presence.isOwn, false);
    await nextBeat();
    assert.equal(key.stored?.revision, revision + 1);
    await assert.rejects(presence.revision(), { code: "NOT_READY" });
    assert.equal(key.stored?.revision, revision + 1, "an ADD that is refused writes nothing");
    await key.presence("j1", "p2").beat(); // a later process, which knows of no container
    await nextBeat();
    assert.match(presence.refusal ?? "", /^another process serves as host host-a since/);
    const later = key.presence("j1", "p3", clock);
    inUse = [];
    later.start(() => inUse);
    await nextBeat();
    assert.deepEqual([later.isOwn, key.stored?.record.refusal], [true, undefined]);
    await presence.close();
    await later.close();
  });

  it("serves on when etcd is restored to what an earlier process of it wrote", async () => {
    const key = new OneKey();
    await key.presence("j1", "p0").beat();
    const backup = key.stored;
    const presence = key.presence("j1", "p1");
    const seen = await presence.revision();
    key.stored = backup;
    assert.equal(await presence.revision(seen), key.stored?.revision);
    assert.deepEqual([presence.refusal, key.stored?.record.process], [undefined, "p1"]);
  });

  it("serves on when etcd is restored to what an earlier process of it wrote, after its data was lost", async () => {
    const key = new OneKey();
    key.stored = { name: "host-a", record: { ...OWN, process: "p0" }, revision: 500 };
    const backup = key.stored;
    const presence = key.presence("j1", "p2", new ManualClock(), ["p0", "p1"]);
    presence.start(() => [BOX]);
    await presence.close();
    const seen = await presence.revision();
    const claims = [...key.claims];
    key.stored = undefined;
    key.claims.clear();
    await assert.rejects(presence.revision(seen), /^BerthError: etcd does not have what containers of host/);
    for (const [name, address] of claims) key.claims.set(name, address);
    assert.equal(await presence.revision(), 1, "what it has is there again");
    key.stored = backup;
    key.claims.clear();
    await assert.rejects(presence.revision(1), /^BerthError: etcd does not have what containers of host/);
    for (const [name, address] of claims) key.claims.set(name, address);
    assert.equal(await presence.revision(), 501);
    assert.deepEqual([presence.refusal, key.stored?.record.process], [undefined, "p2"]);
    key.stored = { ...backup, record: { ...OWN, process: "p3" }, revision: 502 };
    await assert.rejects(
      presence.revision(501),
      /another process serves as host host-a since; .*start this one again$/,
    );
  });

  it("gives nothing once its record, out of a backup whose revisions are given twice, is at the revision that it knew", async () => {
    const key = new OneKey();
    const clock = new ManualClock();
    const presence = key.presence("j1", "p1", clock);
    presence.start(() => [BOX]);
    const nextBeat = async () => {
      for (let i = 0; i < 20; i++) await nextTurn();
      clock.advance(10_000);
      for (let i = 0; i < 20; i++) await nextTurn();
    };
    await nextBeat();
    const backup = key.stored ?? assert.fail();
    for (let i = 0; i < 4; i++) await nextBeat();
    key.stored = backup;
    key.claims.clear();
    for (let i = 0; i < 8; i++) {
      await nextBeat();
      assert.match(presence.refusal ?? "", /^etcd does not have what containers of host host-a have/);
    }
    await presence.close();
  });

  it("goes through the journal for no ADD as long as the host gives addresses", async () => {
    const key = new OneKey();
    const presence = key.presence("j1", "p1");
    let looks = 0;
    presence.start(() => {
      looks++;
      return [BOX];
    });
    await presence.known;
    await presence.close();
    const before = looks;
    await presence.revision();
    assert.equal(presence.refusal, undefined);
    assert.equal(looks, before);
  });

  it("looks at the claims once etcd was away, though its record is as it was", async () => {
    const key = new OneKey();
    const presence = key.presence("j1", "p1");
    presence.start(() => [BOX]);
    await presence.close();
    key.claims.clear();
    await presence.beat();
    assert.equal(presence.refusal, undefined, "nothing was between");
    const there = key.stored ?? assert.fail();
    key.fault = new BerthError("STORE_UNAVAILABLE", "etcd is away");
    await assert.rejects(presence.beat());
    key.fault = undefined;
    assert.equal(key.stored, there);
    await assert.rejects(presence.revision(there.revision), { code: "NOT_READY" });
  });

  it("asks for sixteen claims at once, and of all of them, until one is missing", async () => {
    const key = new OneKey();
    const inUse = Array.from({ length: 100 }, (_, n) => useOf(`default/c${n}`, `10.0.1.${n}`));
    for (const { claim, addresses } of inUse) key.claims.set(claim, addresses.join());
    let [asked, under, most] = [0, 0, 0];
    key.asked = async () => {
      asked++;
      most = Math.max(most, ++under);
      await nextTurn();
      under--;
    };
    const presence = key.presence("j1", "p1");
    presence.start(() => inUse);
    await presence.close();
    assert.deepEqual([asked, most, presence.isOwn], [100, 16, true]);
    key.claims.delete("default/c50");
    const again = key.presence("j1", "p2");
    again.start(() => inUse);
    await again.close();
    assert.match(again.refusal ?? "", /has 10\.0\.1\.50 by claim default\/c50, for one\)/);
    assert.ok(asked < 200, "what comes after is not looked for");
  });

  it("is not doubted for a container that ends, or begins again, while etcd is asked", async () => {
    const key = new OneKey();
    let inUse = [BOX];
    key.claims.clear();
    key.asked = () => {
      inUse = [];
    };
    const ends = key.presence("j1", "p1");
    ends.start(() => inUse);
    await ends.close();
    assert.equal(ends.refusal, undefined);
    inUse = [BOX];
    key.asked = () => void key.claims.set("default/box", "10.0.0.50");
    const again = key.presence("j1", "p2");
    again.start(() => inUse);
    await again.close();
    assert.equal(again.refusal, undefined);
  });
});

function useOf(claim: string, address: string): InUse {
  const addresses = [parseAddress(address) ?? assert.fail(address)];
  return { claim, containerID: "box", interface: "eth0", network: "lan", addresses };
}
