// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { readObject } from "../../allocator/manifest/kubernetes-object.ts";
import type { PoolSpec } from "../../allocator/pool/pool-spec.ts";
import {
  addrs,
  attachmentOf,
  bindingTo,
  claimRecord,
  granted,
  NOW,
  parsed,
  poolRecord,
  reservationsOf,
  storedAs,
} from "../../test/support/fixtures.ts";
import { pod } from "../../test/support/objects.ts";
import { bound, facts } from "../testing/facts.ts";
import type { PodFacts } from "./pod-facts.ts";
import { explainClaim } from "./render.ts";

const RETAINED = claimRecord({
  retained: { since: NOW, because: "scaled" },
  retention: { whenDeleted: "Retain", whenScaled: "Retain", ttlMs: null },
});

/** Its pod has ended, and its sandbox too. */
const OVER = claimRecord({
  binding: bindingTo("mysql-0", "node-a"),
  status: { attachment: attachmentOf("mysql-0", { detached: true }) },
});
const ENDED = granted(
  readObject({ ...pod("mysql-0", { uid: "uid-of-mysql-0" }), status: { phase: "Succeeded" } }),
);

/** Of a claim with an address in pool db. */
function poolFacts(spec: Partial<PoolSpec>): Pick<PodFacts, "addresses"> {
  const pool = parsed(poolRecord("db", "10.20.0.0/24", spec));
  return { addresses: facts(RETAINED).addresses.map((each) => ({ ...each, pool })) };
}

describe("explainClaim", () => {
  for (const [what, record, over, words, stuck] of [
    [
      "no addresses",
      claimRecord({ nonce: "", addresses: [], status: { message: "pool db is full" } }),
      {},
      "has no addresses yet: pool db is full",
      true,
    ],
    [
      "releasing",
      claimRecord({ releasing: true }),
      {},
      "is being given back; others get its addresses when they have cooled",
      false,
    ],
    [
      "retained for a time",
      claimRecord({
        retained: { since: NOW, because: "deleted" },
        retention: { whenDeleted: "Retain", whenScaled: "Retain", ttlMs: 3_600_000 },
      }),
      {},
      "keeps its addresses until 2026-01-01T01:00:00Z (1h); its owner was deleted at 2026-01-01T00:00:00Z",
      false,
    ],
    [
      "retained without a time of its own",
      RETAINED,
      poolFacts({}),
      'keeps its addresses until 2026-01-31T00:00:00Z (720h, the most that pool "db" allows); its owner was scaled down at 2026-01-01T00:00:00Z',
      false,
    ],
    [
      "retained for longer than its pool allows",
      { ...RETAINED, retention: { ...RETAINED.retention, ttlMs: 7_200_000 } },
      poolFacts({ limits: { retention: { ttl: "1h" } } }),
      'keeps its addresses until 2026-01-01T01:00:00Z (1h, the most that pool "db" allows); its owner was scaled down at 2026-01-01T00:00:00Z',
      false,
    ],
    [
      "retained, and its owner needs it again",
      RETAINED,
      { ...poolFacts({}), verdict: { kind: "unretain" } },
      "keeps its addresses; its owner was scaled down at 2026-01-01T00:00:00Z, and needs them again",
      false,
    ],
    [
      "held for a pod without a name",
      claimRecord({ binding: bindingTo("", "", { podUID: "" }) }),
      {},
      "is held for a pod that has no name yet",
      false,
    ],
    [
      "its pod is gone and nobody said so",
      bound,
      {},
      "is still bound to pod mysql-0 on node-a, which is gone; its sandbox was not seen to end",
      true,
    ],
    [
      "its pod is gone, and it is retained",
      {
        ...OVER,
        retained: { since: NOW, because: "deleted" },
        retention: { ...RETAINED.retention, ttlMs: 3_600_000 },
      },
      {},
      "was bound to pod mysql-0 on node-a, whose sandbox is over; it keeps its addresses until 2026-01-01T01:00:00Z (1h); its owner was deleted at 2026-01-01T00:00:00Z",
      false,
    ],
    [
      "its node is fenced",
      bound,
      { fenced: true },
      "was bound to pod mysql-0 on node-a, whose sandbox is over",
      false,
    ],
    [
      "its pod has ended, and its owner may want it again",
      OVER,
      { holder: ENDED, pod: ENDED },
      "was bound to pod mysql-0 on node-a, which has ended (Succeeded); it keeps its addresses; nobody has them now",
      false,
    ],
    [
      "its pod has ended, and it is retained",
      {
        ...OVER,
        retained: { since: NOW, because: "deleted" },
        retention: { ...RETAINED.retention, ttlMs: 3_600_000 },
      },
      { holder: ENDED, pod: ENDED },
      "was bound to pod mysql-0 on node-a, which has ended (Succeeded); it keeps its addresses until 2026-01-01T01:00:00Z (1h); its owner was deleted at 2026-01-01T00:00:00Z",
      false,
    ],
    [
      "its pod has ended, and nobody needs it",
      OVER,
      { holder: ENDED, pod: ENDED, verdict: { kind: "release", reason: "deleted" } },
      "was bound to pod mysql-0 on node-a, which has ended (Succeeded); it is released soon",
      false,
    ],
    [
      "its pod has ended, and its sandbox may be up",
      bound,
      { holder: ENDED, pod: ENDED },
      "is still bound to pod mysql-0 on node-a, which has ended (Succeeded); its sandbox was not seen to end",
      true,
    ],
    [
      "a pod that has ended was admitted with it",
      RETAINED,
      { pod: ENDED, ...poolFacts({}) },
      'keeps its addresses until 2026-01-31T00:00:00Z (720h, the most that pool "db" allows); its owner was scaled down at 2026-01-01T00:00:00Z',
      false,
    ],
    [
      "two families",
      claimRecord({ addresses: addrs("10.20.0.70", "fd00:20::70") }),
      {},
      "keeps its addresses; nobody has them now",
      false,
    ],
  ] as const) {
    it(`tells: ${what}`, () => {
      const reported = explainClaim(record, facts(record, over));
      assert.deepEqual(
        [reported.text.split("\n")[0], reported.stuck],
        [`ipclaim/shop/mysql-0 ${words}`, stuck],
      );
    });
  }

  for (const [what, heardAt, text] of [
    [
      "a host that was heard of just now needs no advice",
      NOW - 4_000,
      "is in use on host node-a, heard of 4s ago\n",
    ],
    ["a host whose clock is ahead was", NOW + 30_000, "is in use on host node-a, heard of 0s ago\n"],
    [
      "a host that is silent may be gone",
      NOW - 3_600_000,
      "is in use on host node-a, which has not said that its container ended and was last heard of at 2025-12-31T23:00:00Z, by its own clock\n",
    ],
    [
      "a host of which nothing is known may be gone",
      undefined,
      "is in use on host node-a, which has not said that its container ended\n",
    ],
  ] as const)
    it(`tells in etcd: ${what}`, () => {
      const heard = heardAt === undefined ? {} : { heardAt };
      const reported = explainClaim(bound, facts(bound, { place: "etcd", ...heard }));
      assert.equal(reported.text.startsWith(`ipclaim/shop/mysql-0 ${text}`), true, reported.text);
      const isSilent = !text.includes("ago");
      assert.equal(reported.text.includes("-> if node-a is gone for good: berthctl fence node-a"), isSilent);
    });

  for (const [what, record, owner, words, stuck] of [
    ["a workload that wants it", bound, "needed", "is in use by container", false],
    [
      "a bare pod",
      { ...bound, identity: { ...bound.identity, kind: "Pod" } },
      "deleted",
      "is in use by",
      false,
    ],
    ["a workload that nobody applied", bound, "scaled", "is in use by", false],
    ["a workload that is deleted", bound, "deleted", "is still in use by", true],
  ] as const)
    it(`does not miss a pod on one host, where nobody need apply pods: ${what}`, () => {
      const reported = explainClaim(record, facts(record, { place: "data", owner }));
      const [first = ""] = reported.text.split("\n");
      assert.ok(first.startsWith(`ipclaim/shop/mysql-0 ${words}`), first);
      assert.ok(first.includes("container sandbox-of-mysql-0 (pod mysql-0) on node-a"), first);
      assert.equal(reported.stuck, stuck);
      assert.equal(first.endsWith("its owner is deleted; it is free after that container's DEL"), stuck);
    });

  it("tells of one host's claim whose container is not known that nobody saw the sandbox end", () => {
    const record = claimRecord({ binding: bindingTo("mysql-0", "node-a") });
    const other = { ...record, status: { attachment: attachmentOf("mysql-0", { podUID: "uid-before" }) } };
    const { text } = explainClaim(other, facts(other, { place: "data", owner: "needed" }));
    assert.match(text, /is still bound to pod mysql-0 on node-a, .*; its sandbox was not seen to end\n/);
  });

  it("tells until when a claim waits for its pod", () => {
    const { text } = explainClaim(claimRecord(), facts(claimRecord(), { waitsUntil: NOW + 90_000 }));
    assert.match(
      text,
      /^ {2}next +Berth releases the claim within a minute after 2026-01-01T00:01:30Z, unless its pod comes$/m,
    );
  });

  it("tells what the garbage collector will do", () => {
    const verdict = { kind: "release", reason: "never-came" } as const;
    const { text } = explainClaim(claimRecord(), facts(claimRecord(), { verdict }));
    assert.match(text, /^ {2}next +Berth releases the claim at its next pass: its pod never came$/m);
  });

  it("does not say until when an address cools whose pool this user may not read", () => {
    const record = claimRecord({ releasing: true });
    const [reservation] = reservationsOf(record);
    const released = storedAs("reservation", { ...(reservation ?? assert.fail()), releasedAt: NOW });
    const cools = { address: released.record.address, reservation: released, pool: undefined };
    const textOf = (addresses: PodFacts["addresses"]) =>
      explainClaim(record, facts(record, { addresses })).text;
    assert.match(textOf([cools]), /, pool db, cooling$/m);
    assert.match(
      textOf([{ ...cools, cooldownMs: 30_000 }]),
      /, pool db, cooling until 2026-01-01T00:00:30Z$/m,
    );
  });
});
