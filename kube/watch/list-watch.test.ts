// SPDX-License-Identifier: Apache-2.0
// What a real API server does too rarely to wait for; the rest is in test/api/follow.api-test.ts.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type Clock, type Logger, noopLogger } from "../../allocator/base/ports.ts";
import { ManualClock } from "../../system/testing/manual-clock.ts";
import type { Selection } from "../api/client.ts";
import { CLAIMS, POOLS, type Resource } from "../api/resource.ts";
import { eventLoopTurns } from "../testing/event-loop-turns.ts";
import { ScriptedConnection, type ScriptedResponse } from "../testing/scripted-connection.ts";
import { listAndWatch } from "./list-watch.ts";

const event = (type: string, name: string, revision: number) => ({
  type,
  object: { metadata: { name, uid: `uid-${name}`, resourceVersion: String(revision) } },
});
const bookmark = (revision: number, annotations?: object) => ({
  type: "BOOKMARK",
  object: { metadata: { resourceVersion: String(revision), annotations } },
});
const END = { "k8s.io/initial-events-end": "true" };
const failure = (code: number, reason: string, details?: object) => ({
  type: "ERROR",
  object: { kind: "Status", code, reason, message: "told so", details },
});
/** A full pass of `a` at revision 5. */
const BEGUN = [event("ADDED", "a", 4), bookmark(5, END)];

/** What is said while the responses are given, and what was asked for; ends by its signal. */
async function watch(
  responses: readonly ScriptedResponse[],
  more: {
    ms?: number;
    pass?: "pages";
    revision?: string;
    resource?: Resource;
    selection?: Selection;
    watchSeconds?: number;
  } = {},
) {
  const connection = new ScriptedConnection(...responses);
  if (more.revision !== undefined) connection.revision = more.revision;
  const manual = new ManualClock();
  const stop = new AbortController();
  const said: string[] = [];
  const warnings: unknown[] = [];
  const waits: unknown[] = [];
  let turnsLeft = 0;
  const sleep = (ms: number, signal?: AbortSignal) => {
    if (ms === 0) turnsLeft++;
    return manual.sleep(ms, signal);
  };
  const log: Logger = {
    ...noopLogger,
    warn: (_, fields) => {
      warnings.push(fields?.["error"]);
      waits.push(fields?.["ms"]);
    },
  };
  const clock: Clock = { now: () => manual.now(), monotonic: () => manual.monotonic(), sleep };
  const random = { fraction: () => 0, token: () => "t" };
  const { pass = "stream", resource = CLAIMS, selection = {}, watchSeconds = 300 } = more;
  const reading = (async () => {
    for await (const change of listAndWatch(
      { connection, resource, clock, random, log, pass, selection, watchSeconds },
      stop.signal,
    )) {
      said.push("item" in change ? `${change.type} ${change.item.metadata.name}` : change.type);
    }
  })();
  await eventLoopTurns();
  for (let left = more.ms ?? 5_000; left > 0; left -= 500) {
    manual.advance(500);
    await eventLoopTurns();
  }
  stop.abort();
  await reading;
  const asked = connection.queries.map(({ resourceVersion, sendInitialEvents }) =>
    sendInitialEvents === "true" ? "everything" : resourceVersion,
  );
  return { said, asked, warnings, waits, turnsLeft, queries: connection.queries, lists: connection.lists };
}

describe("follow", () => {
  it("asks for bookmarks, a bounded watch and everything at first", async () => {
    const { queries } = await watch([{ lines: BEGUN, after: "is silent" }]);
    assert.deepEqual(queries, [
      {
        allowWatchBookmarks: "true",
        resourceVersionMatch: "NotOlderThan",
        sendInitialEvents: "true",
        timeoutSeconds: "300",
        watch: "true",
      },
    ]);
  });

  it("goes on from the last change or bookmark", async () => {
    const { said, asked } = await watch([
      { lines: [...BEGUN, event("MODIFIED", "a", 7)], after: "breaks" },
      { lines: [bookmark(9)], after: "ends" },
      { lines: [event("DELETED", "a", 12)], after: "ends" },
      { lines: [], after: "is silent" },
    ]);
    assert.deepEqual(said, ["relist", "put a", "synced", "put a", "gone a"]);
    assert.deepEqual(asked, ["everything", "7", "9", "12"]);
  });

  it("begins its full pass again when it broke off in the middle", async () => {
    const { said, asked } = await watch([
      { lines: [event("ADDED", "a", 4), bookmark(4)], after: "breaks" },
      { lines: BEGUN, after: "is silent" },
    ]);
    assert.deepEqual(said, ["relist", "put a", "relist", "put a", "synced"]);
    assert.deepEqual(asked, ["everything", "everything"]);
  });

  it("does not pass over a line that is not JSON, nor an object that is none", async () => {
    const { said, asked, warnings } = await watch([
      { lines: [...BEGUN, '{"type": "MOD'], after: "is silent" },
      { lines: [{ type: "MODIFIED", object: {} }], after: "is silent" },
      { lines: [event("MODIFIED", "a", 7)], after: "is silent" },
    ]);
    assert.deepEqual(said, ["relist", "put a", "synced", "put a"]);
    assert.deepEqual(asked, ["everything", "5", "5"]);
    assert.match(String(warnings[0]), /the watch of ipclaims sent what is not JSON/);
    assert.match(String(warnings[1]), /answered with something that is no object/);
  });

  for (const [what, expired] of [
    ["an event 410", { lines: [failure(410, "Expired")], after: "is silent" }],
    ["an answer 410", { status: 410, body: { code: 410, reason: "Expired" } }],
    [
      "a revision from the future",
      {
        lines: [failure(504, "Timeout", { causes: [{ reason: "ResourceVersionTooLarge" }] })],
        after: "ends",
      },
    ],
    ["a revision that is refused", { status: 400, body: { reason: "BadRequest" } }],
  ] satisfies [string, ScriptedResponse][]) {
    it(`makes a full pass after ${what}`, async () => {
      const { said, asked } = await watch([
        { lines: BEGUN, after: "breaks" },
        expired,
        { lines: [bookmark(20, END)], after: "is silent" },
      ]);
      assert.deepEqual(said, ["relist", "put a", "synced", "relist", "synced"]);
      assert.deepEqual(asked, ["everything", "5", "everything"]);
    });
  }

  it("makes none after another failure", async () => {
    const { said, asked } = await watch([
      { lines: [...BEGUN, failure(500, "InternalError")], after: "is silent" },
      { status: 503, body: "overloaded" },
      { lines: [], after: "breaks" },
      { lines: [event("MODIFIED", "a", 7)], after: "is silent" },
    ]);
    assert.deepEqual(said, ["relist", "put a", "synced", "put a"]);
    assert.deepEqual(asked, ["everything", "5", "5", "5"]);
  });

  it("makes a full pass when the API server came back with less than was seen already", async () => {
    const responses: ScriptedResponse[] = [
      { lines: BEGUN, after: "breaks" },
      { lines: [bookmark(4, END)], after: "is silent" },
    ];
    const { said, asked } = await watch(responses, { revision: "4" });
    assert.deepEqual(said, ["relist", "put a", "synced", "relist", "synced"]);
    assert.deepEqual(asked, ["everything", "everything"]);
  });

  it("looks whether it came back with less also when it ended the watch in order, but before its time", async () => {
    const again: ScriptedResponse = { lines: [bookmark(4, END)], after: "is silent" };
    const early = await watch([{ lines: BEGUN, after: "ends" }, again], { revision: "4" });
    assert.deepEqual(early.said, ["relist", "put a", "synced", "relist", "synced"]);
    assert.equal(early.lists.length, 1);
    const inTime: ScriptedResponse[] = [
      { lines: BEGUN, after: "ends" },
      { lines: [], after: "is silent" },
    ];
    const { asked, lists } = await watch(inTime, { watchSeconds: 1 });
    assert.deepEqual([asked, lists], [["everything", "5"], []]);
  });

  it("asks for one name, and not for those of its selection, to see how far it has come", async () => {
    const nobody = "metadata.name=nobody.berth.dev";
    for (const [resource, selection, asked] of [
      [CLAIMS, { fieldSelector: "spec.node=n1", labelSelector: "a=b" }, ["default", nobody]],
      [CLAIMS, { namespace: "n" }, ["n", nobody]],
      [CLAIMS, { namespace: "n", fieldSelector: "metadata.name=a" }, ["n", "metadata.name=a"]],
      [POOLS, { fieldSelector: "spec.node=n1" }, [undefined, nobody]],
    ] as const) {
      const responses: ScriptedResponse[] = [
        { lines: BEGUN, after: "breaks" },
        { lines: [], after: "is silent" },
      ];
      const { lists } = await watch(responses, { resource, selection });
      assert.deepEqual(
        lists.map(({ path, query }) => [/namespaces\/(\w+)/.exec(path)?.[1], query?.["fieldSelector"]]),
        [asked],
      );
      assert.deepEqual(Object.keys(lists[0]?.query ?? {}).sort(), ["fieldSelector", "limit"]);
    }
  });

  it("takes a type of event that it does not know for nothing", async () => {
    const { said } = await watch([
      { lines: [...BEGUN, event("TRANSMUTED", "a", 6), event("DELETED", "a", 7)], after: "is silent" },
    ]);
    assert.deepEqual(said, ["relist", "put a", "synced", "gone a"]);
  });

  it("gives up a watch that is silent for 100 s", async () => {
    const responses: ScriptedResponse[] = [
      { lines: BEGUN, after: "is silent" },
      { lines: [], after: "is silent" },
    ];
    assert.deepEqual((await watch(responses, { ms: 99_500 })).asked, ["everything"]);
    const { asked, warnings } = await watch(responses, { ms: 105_000 });
    assert.deepEqual(asked, ["everything", "5"]);
    assert.deepEqual(warnings, ["the watch of ipclaims was silent for 100 s"]);
  });

  it("does not hammer an API server that ends every watch at once", async () => {
    const responses = Array.from({ length: 1_000 }, (): ScriptedResponse => ({ lines: [], after: "ends" }));
    const { asked } = await watch([{ lines: BEGUN, after: "ends" }, ...responses], { ms: 60_000 });
    // 0.4 s, 0.8, 1.6, 3.2, and from then on 5 each
    assert.ok(asked.length >= 12 && asked.length <= 16, `${asked.length} watches in a minute`);
  });

  it("makes a full pass soon when what it missed during an outage is too old", async () => {
    const away = Array.from({ length: 6 }, (): ScriptedResponse => ({ status: 503, body: "away" }));
    const expired: ScriptedResponse = { lines: [failure(410, "Expired")], after: "ends" };
    const again: ScriptedResponse = { lines: [bookmark(20, END)], after: "is silent" };
    const { said, waits } = await watch([{ lines: BEGUN, after: "breaks" }, ...away, expired, again], {
      ms: 40_000,
    });
    assert.deepEqual(waits.slice(-3), [5_000, 5_000, 400]);
    assert.deepEqual(said.slice(-2), ["relist", "synced"]);
  });

  it("lets others have their turn in the midst of a full pass", async () => {
    const many = Array.from({ length: 1_000 }, (_, i) => event("ADDED", `a${i}`, i));
    const { said, turnsLeft } = await watch([{ lines: [...many, bookmark(1_000, END)], after: "is silent" }]);
    assert.equal(said.length, 1_002);
    assert.ok(turnsLeft >= 10, `${turnsLeft} times for 1,000 events`);
  });
});
