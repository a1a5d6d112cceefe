// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { granted } from "../../test/support/fixtures.ts";
import { neededBy } from "../lifecycle/claim-owner.ts";
import { endOfOrdinals, isInOrdinals, ordinalFrom, ordinalsOf } from "../model/ordinals.ts";
import { Fields } from "./fields.ts";
import { readObject, workloadState } from "./kubernetes-object.ts";
import { MAX_RESERVED_ORDINALS, reservedOrdinalsOf } from "./reserved-ordinals.ts";

const set = (reserveOrdinals: unknown, replicas: number, start = 0) => ({
  ...{ replicas, start },
  reserved: reservedOrdinalsOf(new Fields({ reserveOrdinals })),
});

describe("ordinals that OpenKruise leaves out", () => {
  it("are numbers and ranges, and anything else is none", () => {
    const rows: [unknown, number[]][] = [
      [[], [0, 1, 2]],
      [[1], [0, 2, 3]],
      [
        [0, 1, 2],
        [3, 4, 5],
      ],
      [
        ["1-2", 4],
        [0, 3, 5],
      ],
      [
        ["4", "1-2"],
        [0, 3, 5],
      ],
      [
        ["1-3", "2-4"],
        [0, 5, 6],
      ],
      [
        ["1-5", 2],
        [0, 6, 7],
      ],
      [[3], [0, 1, 2]],
      [
        ["5-1", "x", -1, null, "2-", "9-"],
        [0, 1, 2],
      ],
      ["1", [0, 1, 2]],
    ];
    for (const [reserved, expected] of rows) {
      const of = set(reserved, 3);
      assert.deepEqual([...ordinalsOf(of)], expected, JSON.stringify(reserved));
      assert.equal(endOfOrdinals(of), (expected.at(-1) ?? 0) + 1, JSON.stringify(reserved));
    }
    assert.deepEqual([...ordinalsOf(set([0], 0))], []);
  });

  it("are skipped at once, however many they are, and count from the first ordinal on", () => {
    const far = set(["1-999999999"], 2);
    assert.deepEqual([[...ordinalsOf(far)], ordinalFrom(far, 1)], [[0, 1_000_000_000], 1_000_000_000]);
    assert.deepEqual([...ordinalsOf(set(["2-5"], 2, 4))], [6, 7]);
    assert.deepEqual(
      [...ordinalsOf(set([2_000_000_001, "2000000003-2000000004"], 3, 2_000_000_000))],
      [2_000_000_000, 2_000_000_002, 2_000_000_005],
    );
  });

  it("are looked at one in a few for each ordinal that is asked about, however many they are", () => {
    const reserved = reservedOrdinalsOf(
      new Fields({ reserveOrdinals: Array.from({ length: MAX_RESERVED_ORDINALS }, (_, n) => 2 * n + 1) }),
    );
    let looks = 0;
    const counted = new Proxy(reserved, {
      get: (target, key, receiver) => {
        looks++;
        return Reflect.get(target, key, receiver);
      },
    });
    const of = { start: 0, replicas: MAX_RESERVED_ORDINALS + 1, reserved: counted };
    for (const [ordinal, isIn, next] of [
      [8_192, true, 8_192],
      [8_191, true, 8_192],
      [8_193, false, undefined],
    ] as const) {
      assert.equal(isInOrdinals(of, ordinal), isIn);
      assert.equal(ordinalFrom(of, ordinal), next);
    }
    assert.ok(looks < 500, `${looks} looks`);
  });

  it("are read of its StatefulSet alone", () => {
    const reservedOf = (apiVersion: string, kind: string) =>
      workloadState(granted(readObject({ apiVersion, kind, spec: { reserveOrdinals: [1] } }))).reserved;
    assert.deepEqual(reservedOf("apps.kruise.io/v1alpha1", "StatefulSet"), [{ from: 1, to: 1, before: 0 }]);
    for (const [apiVersion, kind] of [
      ["apps/v1", "StatefulSet"],
      ["apps.kruise.io/v1alpha1", "CloneSet"],
      ["batch/v1", "Job"],
      ["", "StatefulSet"],
    ] as const)
      assert.equal(reservedOf(apiVersion, kind), undefined, `${kind} of ${apiVersion}`);
  });

  it("are as many as are read, whatever else is listed", () => {
    const every = Array.from({ length: MAX_RESERVED_ORDINALS }, (_, n) => 2 * n);
    const more = { reserveOrdinals: [...every, 1, 3, 5] };
    assert.deepEqual(reservedOrdinalsOf(new Fields(more)), set(every, 1).reserved);
  });

  it("go on for what is not read: no ordinal from the first on is given up", () => {
    const entries = Array.from({ length: MAX_RESERVED_ORDINALS + 1 }, (_, n) => n);
    const stateOf = (reserveOrdinals: readonly number[]) =>
      workloadState(
        granted(
          readObject({
            apiVersion: "apps.kruise.io/v1beta1",
            kind: "StatefulSet",
            spec: { reserveOrdinals, replicas: 3 },
          }),
        ),
      );
    const [cut, whole] = [stateOf(entries), stateOf(entries.slice(0, -1))];
    assert.deepEqual([cut.isCutOff, whole.isCutOff], [true, undefined]);
    assert.equal(neededBy(cut, { ordinal: 1_000_000 }), "needed");
    assert.equal(neededBy(whole, { ordinal: 1_000_000 }), "scaled");
    assert.equal(ordinalFrom(cut, 1_000_000), undefined, "no list of addresses is too short by that");
  });

  it("end where numbers are exact", () => {
    const start = Number.MAX_SAFE_INTEGER;
    assert.deepEqual([...ordinalsOf({ start, replicas: 3 })], [start]);
  });

  it("are left out as OpenKruise does, whatever they are", () => {
    const holes = fc.array(fc.nat(12), { maxLength: 8 });
    fc.assert(
      fc.property(holes, fc.nat(6), fc.nat(4), fc.nat(20), (reserved, replicas, start, from) => {
        const wanted: number[] = [];
        for (let n = start; wanted.length < replicas; n++) if (!reserved.includes(n)) wanted.push(n);
        const of = set(reserved, replicas, start);
        assert.deepEqual([...ordinalsOf(of)], wanted);
        assert.equal(endOfOrdinals(of), (wanted.at(-1) ?? start - 1) + 1);
        assert.equal(
          ordinalFrom(of, from),
          wanted.find((n) => n >= from),
        );
        assert.equal(isInOrdinals(of, from), from >= start && from <= (wanted.at(-1) ?? -1));
      }),
    );
  });
});
