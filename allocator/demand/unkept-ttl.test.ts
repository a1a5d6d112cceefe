// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { poolRecord, viewOf } from "../../test/support/fixtures.ts";
import type { Labels } from "../base/ports.ts";
import { identityOf } from "../model/identity.ts";
import {
  LONGEST_BYTES,
  ofPod,
  origin,
  owner,
  PINNED,
  POOL,
  RETAIN,
  requestOf,
  STICKY,
} from "./testing/unkept-words.ts";
import { cappedTtl } from "./unkept-requests.ts";

describe("a ttl that a pool cuts short", () => {
  const limits = { retention: { ttl: "48h" } };
  const view = viewOf({ pools: [poolRecord("db", "10.20.0.0/24", { limits })] });
  const words =
    'berth.dev/ttl=100h is longer than pool "db" keeps addresses: they are released after 48h; raise limits.retention.ttl of the pool, or ask for less';

  const NOTHING =
    "berth.dev/ttl=0s keeps no address for any time: one that is to be retained is let go at once; write a longer time, or leave it out";

  /** What is said of a pod with a name of its own. */
  const capped = (annotations: Labels) =>
    cappedTtl(view, {
      podIdentity: identityOf(origin({ name: "ledger" })),
      request: requestOf(annotations),
    });

  for (const [asked, ttl, reported] of [
    [{ ...PINNED, ...STICKY }, "100h", [words]],
    [RETAIN, "100h", [words]],
    [RETAIN, "48h", []],
    [STICKY, "100h", []],
    // not kept at all
    [PINNED, "100h", []],
    [POOL, "100h", []],
    [STICKY, "0s", [NOTHING]],
    [PINNED, "0", [NOTHING]],
  ] as const) {
    it(`is told of for ${Object.keys(asked)} and ${ttl}: ${reported.length}`, () => {
      assert.deepEqual(capped({ ...asked, "berth.dev/ttl": ttl }), reported);
      for (const line of reported) assert.ok(Buffer.byteLength(line) <= LONGEST_BYTES);
    });
  }
});

describe("a pool that retains nothing", () => {
  const limits = { retention: { ttl: "0s" } };
  const view = viewOf({
    pools: [poolRecord("db", "10.20.0.0/24", { limits }), poolRecord("web", "10.21.0.0/24")],
  });
  const said = (what: string) =>
    `${what} keeps no address of pool "db", whose limits.retention.ttl is 0s: it is let go at once; raise that, or name another pool`;
  const ledger = origin({ name: "ledger" });
  const ordinal = origin({ name: "mysql-0", owner: owner("StatefulSet", "apps/v1", "mysql") });
  const anonymous = origin({ generateName: "web-" });
  const SCALED = { "berth.dev/when-scaled": "Retain" };

  for (const [what, pod, annotations, reported] of [
    ["when-deleted", ledger, RETAIN, [said("berth.dev/when-deleted=Retain")]],
    ["sticky", ledger, { ...PINNED, ...STICKY }, [said("berth.dev/sticky")]],
    ["sticky and released", ledger, { ...POOL, ...STICKY, "berth.dev/when-deleted": "Release" }, []],
    ["an ordinal's when-scaled", ordinal, { ...POOL, ...SCALED }, [said("berth.dev/when-scaled=Retain")]],
    ["an ordinal's sticky, which its StatefulSet keeps", ordinal, { ...POOL, ...STICKY }, []],
    ["what asks for nothing to be kept", ordinal, POOL, []],
    ["a pod without a name, which is told another thing", anonymous, RETAIN, []],
    ["another pool", ledger, { ...STICKY, "berth.dev/pools": "web" }, []],
    ["pools that are not named", ledger, STICKY, []],
  ] as const) {
    it(`says so to who asks for it: ${what}`, () => {
      const lines = cappedTtl(view, { podIdentity: identityOf(pod), request: requestOf(annotations) });
      assert.deepEqual(lines, reported);
      for (const line of lines) assert.ok(Buffer.byteLength(line) <= LONGEST_BYTES);
    });
  }
});

describe("a ttl", () => {
  const TTL = { "berth.dev/ttl": "48h" };
  const words = (instead: string) =>
    `berth.dev/ttl does nothing here: it says how long a retained address is kept, and none is retained; ${instead}`;
  const KEEP = words("write berth.dev/when-deleted: Retain beside it, or leave it out");
  const ordinal = origin({ name: "mysql-0", owner: owner("StatefulSet", "apps/v1", "mysql") });
  const slot = origin({
    owner: owner("ReplicaSet", "apps/v1", "web-5d9"),
    labels: { "pod-template-hash": "5d9" },
  });

  it("where nothing is retained is told of, with what would be", () => {
    const released = { "berth.dev/when-scaled": "Release" };
    for (const [pod, annotations, reported] of [
      [origin({ name: "ledger" }), PINNED, KEEP],
      [ordinal, { ...POOL, ...released }, KEEP],
      [slot, PINNED, KEEP],
      [slot, POOL, words("leave it out")],
    ] as const) {
      assert.deepEqual(ofPod(pod, { ...annotations, ...TTL }), [reported]);
    }
  });

  it("of what is retained is not", () => {
    for (const [pod, annotations] of [
      [origin({ name: "ledger" }), { ...PINNED, ...STICKY }],
      [origin({ name: "ledger" }), RETAIN],
      [ordinal, POOL],
      [slot, { ...PINNED, "berth.dev/when-deleted": "Retain" }],
    ] as const) {
      assert.deepEqual(ofPod(pod, { ...annotations, ...TTL }), []);
    }
  });
});
