// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { beforeEach, describe, it } from "node:test";
import type { EventInput } from "../../kube/controller/event-recorder.ts";
import { ChangedEvents } from "./changed-events.ts";

describe("events of what has changed", () => {
  const kind = { type: "Warning", reason: "BlocksShort", action: "Granting" } as const;
  let recorded: EventInput[];
  let known: Set<string>;
  let events: ChangedEvents<{ readonly pool: string; readonly note: string }>;

  beforeEach(() => {
    recorded = [];
    known = new Set(["db"]);
    events = new ChangedEvents({ record: (event) => recorded.push(event) }, kind, ({ pool: name }) =>
      known.has(name) ? { apiVersion: "berth.dev/v1alpha1", kind: "IPPool", name } : undefined,
    );
  });

  function published(...notes: readonly (readonly [key: string, note: string])[]): readonly string[] {
    events.publish(new Map(notes.map(([key, note]) => [key, { pool: key.split("/")[0] ?? "", note }])));
    return recorded.splice(0).map(({ regarding: { name }, note }) => `${name}: ${note}`);
  }

  it("come once for the same words, and again for others", () => {
    assert.deepEqual(published(["db/IPv4", "two nodes"]), ["db: two nodes"]);
    assert.deepEqual(published(["db/IPv4", "two nodes"]), []);
    assert.deepEqual(published(["db/IPv4", "one node"], ["db/IPv6", "one node"]), [
      "db: one node",
      "db: one node",
    ]);
    assert.equal(events.size, 2);
  });

  it("come anew for what was over meanwhile, or was forgotten", () => {
    published(["db/IPv4", "two nodes"]);
    published();
    assert.equal(events.size, 0);
    assert.deepEqual(published(["db/IPv4", "two nodes"]), ["db: two nodes"]);
    events.forget();
    assert.deepEqual(published(["db/IPv4", "two nodes"]), ["db: two nodes"]);
  });

  it("are none of an object that is not there, also if it comes later", () => {
    assert.deepEqual(published(["web/IPv4", "two nodes"]), []);
    known.add("web");
    assert.deepEqual(published(["web/IPv4", "two nodes"]), []);
  });
});
