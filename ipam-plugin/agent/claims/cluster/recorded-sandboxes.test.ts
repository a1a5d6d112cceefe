// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { addrs, claimRecord } from "../../../../test/support/fixtures.ts";
import type { Presence } from "../../journal/host.ts";
import type { RuntimeRecord } from "../../journal/runtime-records.ts";
import { RecordedSandboxes } from "./recorded-sandboxes.ts";

const RECORD: RuntimeRecord = {
  ...{ path: "/r/net-c1-eth0", network: "net", containerID: "c1", interface: "eth0" },
  ...{ addresses: addrs("10.20.0.70", "fd00:20::70"), netns: "/run/netns/c1", podUID: "uid-a" },
};
const OTHER: RuntimeRecord = { ...RECORD, path: "/r/lan-c2-eth0", network: "lan", containerID: "c2" };
const CLAIM = claimRecord({ addresses: addrs("10.20.0.70") });

function recorded(
  records: readonly RuntimeRecord[],
  over: { readonly seen?: Presence; readonly read?: () => void } = {},
) {
  const removed = new Set<string>();
  const sandboxes = new RecordedSandboxes({
    records: async () => {
      over.read?.();
      return records;
    },
    unread: async (isKnown) =>
      [{ path: "/r/net-c9-eth0", containerID: "c9", interface: "eth0" }].filter((one) => !isKnown(one)),
    isStillThere: async ({ path }) => !removed.has(path),
    host: { look: async () => over.seen ?? "present" },
    node: "node-a",
    bootId: "boot-1",
  });
  const found = async (claim = CLAIM) => (await sandboxes.of(claim)).map(({ containerID }) => containerID);
  return { sandboxes, found, removed };
}

describe("sandboxes that the runtime has records of", () => {
  it("are told for the claim that has their address, by one read of the records", async () => {
    let reads = 0;
    const { sandboxes, found } = recorded([RECORD], { read: () => void reads++ });
    const expected = {
      ...{ node: "node-a", containerID: "c1", interface: "eth0", podUID: "uid-a", since: 0 },
      ...{ detached: false, netns: "/run/netns/c1", bootID: "boot-1" },
    };
    assert.deepEqual(await sandboxes.of(CLAIM), [expected]);
    assert.deepEqual(await found(claimRecord({ addresses: addrs("10.20.0.71") })), []);
    assert.equal(reads, 1);
  });

  it("are none where it could never be seen that they are gone", async () => {
    for (const { found } of [
      recorded([RECORD], { seen: "unknown" }),
      recorded([RECORD], { seen: "gone" }),
      recorded([{ ...RECORD, netns: "/proc/7/ns/net" }]),
      recorded([{ ...RECORD, netns: undefined }]),
    ])
      assert.deepEqual(await found(), []);
  });

  it("are all that have the address: one that is known does not hide another", async () => {
    const { sandboxes, found } = recorded([OTHER, RECORD]);
    assert.deepEqual(await found(), ["c2", "c1"]);
    sandboxes.journalled(OTHER);
    assert.deepEqual(await found(), ["c1"]);
  });

  it("are not those that the journal knew before the records were read", async () => {
    const { sandboxes, found } = recorded([OTHER, RECORD]);
    sandboxes.journalled(RECORD);
    assert.deepEqual(await found(), ["c2"]);
  });

  it("have ended when the runtime has removed its record, whatever is left of the namespace", async () => {
    const { found, removed } = recorded([RECORD]);
    assert.deepEqual(await found(), ["c1"]);
    removed.add(RECORD.path);
    assert.deepEqual(await found(), []);
  });

  it("are not known where a record says nothing, unless the journal knows its container", async () => {
    const { sandboxes } = recorded([]);
    assert.equal((await sandboxes.unreadable(() => false, CLAIM))?.path, "/r/net-c9-eth0");
    assert.equal(await sandboxes.unreadable(({ containerID }) => containerID === "c9", CLAIM), undefined);
  });

  it("are known to keep a claim by a record that was cut off when the others were read, and is whole by now", async () => {
    const { path, containerID, interface: name } = RECORD;
    let [records, unread] = [[OTHER], [{ path, containerID, interface: name }]];
    const sandboxes = new RecordedSandboxes({
      records: async () => records,
      unread: async (isKnown) => unread.filter((one) => !isKnown(one)),
      isStillThere: async () => true,
      host: { look: async () => "present" },
      ...{ node: "node-a", bootId: "boot-1" },
    });
    const another = claimRecord({ addresses: addrs("10.20.0.71") });
    const known = () => true;
    const unknown = () => false;
    assert.deepEqual(await sandboxes.of(another), []);
    assert.equal((await sandboxes.unreadable(unknown, another))?.path, path);
    [records, unread] = [[OTHER, RECORD], []];
    assert.equal((await sandboxes.unreadable(unknown, CLAIM))?.path, path);
    assert.equal(await sandboxes.unreadable(unknown, another), undefined);
    assert.equal(await sandboxes.unreadable(known, CLAIM), undefined);
    assert.equal((await sandboxes.unreadable(unknown, CLAIM))?.path, path, "every time");
    records = [OTHER];
    assert.equal(await sandboxes.unreadable(unknown, CLAIM), undefined, "its container is gone");
    records = [OTHER, RECORD];
    assert.equal(
      await sandboxes.unreadable(unknown, CLAIM),
      undefined,
      "one that came later is in the journal",
    );
  });

  it("are not known, not gone, where the records cannot be read, and are read again", async () => {
    let fails = true;
    const { found } = recorded([RECORD], {
      read: () => {
        if (fails) throw new Error("EIO");
      },
    });
    await assert.rejects(found(), /EIO/);
    fails = false;
    assert.deepEqual(await found(), ["c1"]);
  });
});
