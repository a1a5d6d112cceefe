// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { BerthError } from "../../base/errors.ts";
import type { Change, Condition } from "./messages.ts";
import { guarded, type WriteGuard } from "./write-guard.ts";

const CHANGE: Change = { key: "/berth/v1/reservation/10.1.0.1", modRevision: 0, value: "mine" };

/** An etcd in which the key of the guard is at a revision. */
function clientAt(revision: () => number) {
  const sent: (Condition | undefined)[] = [];
  const change = async (_change: Change, condition?: Condition) => {
    sent.push(condition);
    const unmet = condition?.modRevision !== revision();
    return { kind: "answer", done: !unmet, revision: 9, there: undefined, unmet } as const;
  };
  const createAll = () => assert.fail();
  return { sent, client: { change, createAll } };
}

function guardOf(revision: WriteGuard["revision"]): WriteGuard {
  return { key: "/berth/v1/host/a", covers: () => true, revision };
}

describe("a guarded write", () => {
  it("is done at the revision that the guard names, and again at the next one when that has moved on", async () => {
    const { client, sent } = clientAt(() => 5);
    const asked: (number | undefined)[] = [];
    const guard = guardOf(async (failed) => {
      asked.push(failed);
      return failed === undefined ? 4 : 5;
    });
    const answer = await guarded(client, guard).change(CHANGE);
    assert.equal(answer.kind === "answer" && answer.done, true);
    assert.deepEqual(asked, [undefined, 4]);
    assert.deepEqual(
      sent.map((one) => one?.modRevision),
      [4, 5],
    );
  });

  it("is not done once the guard does not hold", async () => {
    const { client } = clientAt(() => 5);
    const guard = guardOf(async (failed) => {
      if (failed === undefined) return 4;
      throw new BerthError("NOT_READY", "host a was fenced");
    });
    await assert.rejects(guarded(client, guard).change(CHANGE), /host a was fenced/);
  });

  it("ends where the key is never as it was said to be", async () => {
    const { client, sent } = clientAt(() => 5);
    const guard = guardOf(async () => 4);
    await assert.rejects(guarded(client, guard).change(CHANGE), { code: "STORE_UNAVAILABLE" });
    assert.equal(sent.length, 5);
  });
});
