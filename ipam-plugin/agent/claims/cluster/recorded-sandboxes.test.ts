// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { addrs, claimRecord } from "../../../../test/support/fixtures.ts";
import type { Presence } from "../../journal/host.ts";
import type { RuntimeRecord } from "../../journal/runtime-records.ts";
import { RecordedSandboxes } from "./recorded-sandboxes.ts";

const RECORD: RuntimeRecord = {
  ...{ path: "/r/net-c1-eth0", network: "net", containerID: "c1", interface: "eth0" },
  ...{ addresses: ["10.20.0.70", "fd00:20::70"], netns: "/run/netns/c1", podUID: "uid-a" },
};
const CLAIM = claimRecord({ addresses: addrs("10.20.0.70") });

function recorded(record: RuntimeRecord, seen: Presence = "present") {
  let reads = 0;
  const sandboxes = new RecordedSandboxes({
    records: async () => {
      reads++;
      return [record];
    },
    host: { look: async () => seen },
    node: "node-a",
    bootId: "boot-1",
  });
  return { sandboxes, reads: () => reads };
}

describe("a sandbox that the runtime has a record of", () => {
  it("is told for the claim that has its address, by one read of the records", async () => {
    const { sandboxes, reads } = recorded(RECORD);
    const expected = {
      ...{ node: "node-a", containerID: "c1", interface: "eth0", podUID: "uid-a", since: 0 },
      ...{ detached: false, netns: "/run/netns/c1", bootID: "boot-1" },
    };
    assert.deepEqual(await sandboxes.of(CLAIM), expected);
    assert.equal(await sandboxes.of(claimRecord({ addresses: addrs("10.20.0.71") })), undefined);
    assert.equal(reads(), 1);
  });

  it("is none where it could never be seen to be gone", async () => {
    for (const { sandboxes } of [
      recorded(RECORD, "unknown"),
      recorded(RECORD, "gone"),
      recorded({ ...RECORD, netns: "/proc/7/ns/net" }),
      recorded({ ...RECORD, netns: undefined }),
    ])
      assert.equal(await sandboxes.of(CLAIM), undefined);
  });
});
