// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ManualClock } from "../../system/testing/manual-clock.ts";
import { Client } from "../api/client.ts";
import { CLAIMS } from "../api/resource.ts";
import { ScriptedConnection } from "../testing/scripted-connection.ts";
import { watchOnce } from "./watch.ts";

describe("one watch", () => {
  it("does not decode the managed fields of a large object, which are most of it", async () => {
    const managedFields = Array.from({ length: 4_000 }, (_, i) => ({ manager: `m${i}`, fieldsV1: {} }));
    const metadata = { name: "a", uid: "u", resourceVersion: "5", labels: { a: "b" } };
    const line = { type: "MODIFIED", object: { metadata: { ...metadata, managedFields } } };
    const client = new Client(new ScriptedConnection({ lines: [line], after: "ends" }), CLAIMS);
    const options = { client, clock: new ManualClock(), selection: {}, query: {}, idleMs: 100_000 };
    const items: unknown[] = [];
    for await (const event of watchOnce(options, new AbortController().signal))
      items.push("item" in event ? event.item : event);
    assert.deepEqual(items, [{ metadata: { ...metadata, managedFields: [] } }]);
  });
});
