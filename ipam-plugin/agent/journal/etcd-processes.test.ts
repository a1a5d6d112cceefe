// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createRandom } from "../../../system/random.ts";
import { database, open, setUp } from "../testing/opened-journal.ts";
import { beginProcess } from "./etcd-processes.ts";

describe("what an agent is called in etcds", () => {
  setUp();

  it("is told from what those before it were called, and from those after it", async () => {
    open();
    const random = createRandom();
    const [first, second] = [await beginProcess(database, random), await beginProcess(database, random)];
    database.close();
    open();
    const third = await beginProcess(database, random);
    const ids = [first.id, second.id, third.id, "of another journal"];
    const formerOf = (one: typeof first) => ids.map((id) => one.isFormer(id));
    assert.deepEqual(formerOf(first), [false, false, false, false]);
    assert.deepEqual(formerOf(second), [true, false, false, false]);
    assert.deepEqual(formerOf(third), [true, true, false, false]);
  });

  it("is kept of a thousand", async () => {
    open();
    let n = 0;
    const random = { token: () => String(n++), fraction: () => 0 };
    for (let i = 0; i < 1_002; i++) await beginProcess(database, random);
    const { isFormer } = await beginProcess(database, random);
    assert.deepEqual([isFormer("1"), isFormer("2"), isFormer("1001")], [false, true, true]);
  });
});
