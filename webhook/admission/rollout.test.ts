// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { isRefusal } from "../../allocator/base/errors.ts";
import { readObject } from "../../allocator/manifest/kubernetes-object.ts";
import {
  addrs,
  granted,
  parsed,
  poolRecord,
  refusalOf,
  reservationRecord,
  storedAs,
} from "../../test/support/fixtures.ts";
import { type Json, workload } from "../../test/support/objects.ts";
import { checkRollout, unheldEntries } from "./rollout.ts";

const needs = (pods: number, replicas: number, surge: number, entries: number) =>
  `a rolling update may want ${pods} pods at once (${replicas} replica${replicas === 1 ? "" : "s"} and maxSurge ${surge}), and the list has ${entries} ${entries === 1 ? "entry" : "entries"}`;
const waits = (pods: number, replicas: number, surge: number, entries: number) =>
  `${needs(pods, replicas, surge, entries)}; its surge pods wait until old ones are gone`;
const never = (pods: number, replicas: number, surge: number, entries: number) =>
  `LIST_TOO_SHORT: ${needs(pods, replicas, surge, entries)}; with maxUnavailable 0 it would never end: add entries, or set maxSurge 0 and maxUnavailable 1`;
const short = (entries: number, replicas: number) =>
  `LIST_TOO_SHORT: the list has ${entries} ${entries === 1 ? "entry" : "entries"} for ${replicas} replicas; add entries or lower replicas`;

describe("enoughFor a Deployment", () => {
  const rolling = (rollingUpdate: Json) => ({ strategy: { type: "RollingUpdate", rollingUpdate } });
  const rows: readonly (readonly [string, number, number, Json, string])[] = [
    ["as many and the default surge", 5, 4, {}, ""],
    ["one too few for the default surge", 4, 4, {}, waits(5, 4, 1, 4)],
    ["so few replicas that none may be unavailable", 3, 3, {}, never(4, 3, 1, 3)],
    ["one replica and one entry", 1, 1, {}, never(2, 1, 1, 1)],
    ["no replicas", 0, 0, {}, ""],
    ["fewer entries than replicas", 2, 3, {}, short(2, 3)],
    [
      "one entry",
      1,
      3,
      {},
      "LIST_TOO_SHORT: the list has 1 entry for 3 replicas; add entries or lower replicas",
    ],
    ["no surge", 3, 3, rolling({ maxSurge: 0, maxUnavailable: 1 }), ""],
    ["no surge in per cent", 3, 3, rolling({ maxSurge: "0%", maxUnavailable: "25%" }), ""],
    ["a surge of its own", 3, 3, rolling({ maxSurge: 2 }), never(5, 3, 2, 3)],
    ["a surge of its own, of which one pod can be made", 4, 3, rolling({ maxSurge: 2 }), waits(5, 3, 2, 4)],
    [
      "a surge of its own, one may be missing",
      4,
      3,
      rolling({ maxSurge: 2, maxUnavailable: 1 }),
      waits(5, 3, 2, 4),
    ],
    [
      "a surge in per cent, rounded up",
      11,
      10,
      rolling({ maxSurge: "11%", maxUnavailable: 0 }),
      waits(12, 10, 2, 11),
    ],
    [
      "a surge beyond all",
      10,
      10,
      rolling({ maxSurge: "100%", maxUnavailable: "10%" }),
      waits(20, 10, 10, 10),
    ],
    ["Recreate", 3, 3, { strategy: { type: "Recreate" } }, ""],
    ["Recreate, too few", 2, 3, { strategy: { type: "Recreate" } }, short(2, 3)],
    ["a surge that is no number", 3, 3, rolling({ maxSurge: "many", maxUnavailable: 0 }), ""],
  ];
  for (const [title, entries, replicas, spec, outcome] of rows) {
    it(title, () => assert.equal(judged("Deployment", entries, replicas, spec), outcome));
  }
});

describe("enoughFor a CloneSet", () => {
  const rows: readonly (readonly [string, number, number, Json, string])[] = [
    ["does not surge by itself", 3, 3, {}, ""],
    ["surges when told to", 3, 3, { updateStrategy: { maxSurge: 1 } }, never(4, 3, 1, 3)],
    ["surges by more than it has", 4, 3, { updateStrategy: { maxSurge: 2 } }, never(5, 3, 2, 4)],
    ["may do without some", 5, 5, { updateStrategy: { maxSurge: 1 } }, waits(6, 5, 1, 5)],
    ["is as long as its replicas at least", 2, 3, {}, short(2, 3)],
  ];
  for (const [title, entries, replicas, spec, outcome] of rows) {
    it(title, () => assert.equal(judged("CloneSet", entries, replicas, spec), outcome));
  }
});

function judged(kind: string, entries: number, replicas: number, spec: Json): string {
  const object = granted(readObject(workload(kind, "web", { replicas, spec })));
  const enough = checkRollout(object, replicas, entries);
  return isRefusal(enough) ? refusalOf(enough) : enough.join(" | ");
}

describe("entries that no pod has had", () => {
  const pool = (reserved: readonly string[]) => parsed(poolRecord("db", "10.30.0.0/24", { reserved }));
  const entries = ["10.30.0.61", "10.30.0.62", "10.30.0.63"].map((address) => addrs(address));

  const web = (spec: Json = { strategy: { type: "Recreate" } }) => ({
    object: granted(readObject(workload("Deployment", "web", { replicas: 2, spec }))),
    replicas: 2,
  });

  it("are anybody's, unless their pool reserves them for who names them", () => {
    const reservation = () => undefined;
    const open = { poolOf: () => pool([]), reservation };
    assert.deepEqual(unheldEntries(open, entries, web()), [
      'the list has 3 entries for 2 replicas: an entry is kept for it from the first pod on that has it, and others may take it before that; list the addresses under "reserved" of their pool',
    ]);
    assert.deepEqual(unheldEntries(open, entries.slice(0, 2), web()), []);
    const reserved = { poolOf: () => pool(["10.30.0.61-10.30.0.63"]), reservation };
    assert.deepEqual(unheldEntries(reserved, entries, web()), []);
    const held = { ...open, reservation: () => storedAs("reservation", reservationRecord("10.30.0.61")) };
    assert.deepEqual(unheldEntries(held, entries, web()), []);
  });

  it("are not spoken of where a rolling update wants them", () => {
    const open = { poolOf: () => pool([]), reservation: () => undefined };
    assert.deepEqual(unheldEntries(open, entries, web({})), []);
    assert.match(
      unheldEntries(open, [...entries, addrs("10.30.0.64")], web({})).join(),
      /^the list has 4 entries for 2 replicas and maxSurge 1: an entry is kept for it from the first pod on/,
    );
  });
});
