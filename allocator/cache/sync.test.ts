// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { BerthError } from "../base/errors.ts";
import { noopLogger } from "../base/ports.ts";
import type { Change, Kind, Store } from "../store/store.ts";
import { RecordCache } from "./cache.ts";
import { syncCache } from "./sync.ts";

describe("follow", () => {
  const ends = (reason: Error): Store => {
    async function* watch<K extends Kind>(kind: K): AsyncGenerator<Change<K>> {
      yield { type: "relist" };
      if (kind === "claim") throw reason;
      yield { type: "synced" };
    }
    return { watch } as unknown as Store;
  };

  it("tells of a record that cannot be read, to whoever waits for the first pass and to whoever waits for the end", async () => {
    const broken = new BerthError("STATE_CORRUPT", "the stored claim shop/mysql-0 cannot be decoded");
    const following = syncCache(ends(broken), new RecordCache(noopLogger), new AbortController().signal);
    await Promise.all([assert.rejects(following.synced, broken), assert.rejects(following.ended, broken)]);
  });
});
