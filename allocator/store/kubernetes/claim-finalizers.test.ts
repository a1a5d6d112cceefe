// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Claim } from "../../model/claim.ts";
import { addr, bareClaim, fullClaim, poolOf, reservationOf } from "../contract/samples.ts";
import { finalizersFor, IN_USE, isGone, storedOf } from "./objects.ts";
import { itemOf } from "./testing/items.ts";

describe("the finalizers of a claim", () => {
  const free = bareClaim("mysql-0");
  const bound = bareClaim("mysql-0", { binding: fullClaim("mysql-0").binding });
  const held = bareClaim("mysql-0", { binding: { ...fullClaim("mysql-0").binding, node: "" } });
  const releasing = { ...bound, releasing: true };
  const seen = (record: Claim, ...finalizers: readonly string[]) => {
    const item = itemOf("claim", record);
    const gone = record.deleting === true ? { deletionTimestamp: "2026-01-02T00:00:00Z" } : {};
    return storedOf("claim", { ...item, metadata: { ...item.metadata, finalizers, ...gone } });
  };
  const another = "example.org/backup";
  const doomed = { ...bound, deleting: true };
  const cases: readonly (readonly [
    string,
    Parameters<typeof finalizersFor>,
    readonly string[] | undefined,
  ])[] = [
    ["come when it is made bound", [undefined, bound], [IN_USE]],
    ["are none when it is made", [undefined, held], undefined],
    ["come when it is bound", [seen(free), bound], [IN_USE]],
    ["come when the pod is there, after those of others", [seen(held, another), bound], [another, IN_USE]],
    ["stay when it is bound anew", [seen(bound, IN_USE), bound], undefined],
    ["are not there while it is held", [seen(free), held], undefined],
    ["go when it is let go", [seen(bound, IN_USE), free], []],
    ["go when it is held anew", [seen(bound, IN_USE), held], []],
    [
      "go when it is released, and leave those of others",
      [seen(bound, IN_USE, another), releasing],
      [another],
    ],
    ["go from one that is deleted", [seen(doomed, IN_USE), { ...doomed, releasing: true }], []],
    ["do not come to one that is deleted", [seen({ ...free, deleting: true }, another), doomed], undefined],
  ];
  for (const [title, args, wanted] of cases) {
    it(title, () => assert.deepEqual(finalizersFor(...args), wanted));
  }

  it("are no concern of pools and reservations", () => {
    assert.equal(finalizersFor(undefined, poolOf("db")), undefined);
    assert.equal(finalizersFor(undefined, reservationOf(addr("10.20.0.51"))), undefined);
    const item = itemOf("pool", poolOf("db"));
    const kept = { ...item, metadata: { ...item.metadata, finalizers: [IN_USE] } };
    assert.equal(storedOf("pool", kept).finalizers, undefined);
  });

  it("are kept with what was read, if there are any", () => {
    assert.deepEqual(seen(bound, IN_USE).finalizers, [IN_USE]);
    assert.deepEqual(seen(bound, IN_USE, another).finalizers, [IN_USE, another]);
    assert.equal("finalizers" in seen(bound), false);
  });

  it("were the last ones of what is gone", () => {
    const { metadata } = itemOf("claim", free);
    const deletionTimestamp = "2026-01-02T00:00:00Z";
    assert.equal(isGone({ metadata }), false);
    assert.equal(isGone({ metadata: { ...metadata, deletionTimestamp } }), true);
    assert.equal(isGone({ metadata: { ...metadata, deletionTimestamp, finalizers: [another] } }), false);
  });
});
