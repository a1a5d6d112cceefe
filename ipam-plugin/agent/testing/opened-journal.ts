// SPDX-License-Identifier: Apache-2.0
// A journal in a folder of its own, whose commits fail when a test says so.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach } from "node:test";
import { type Database, openDatabase } from "../../../allocator/store/sqlite/database.ts";
import { type Attachment, tombstoneFor } from "../journal/attachment.ts";
import { Journal } from "../journal/journal.ts";
import { address } from "./node-bench.ts";

export const SCOPE = { network: "net", dataDir: "/var/lib/cni/networks" };
export const AT = { now: 1_700_000_000_000, deadlineNs: 5n, bootId: "boot-1" };

export function attachment(containerID: string, changes: Partial<Attachment> = {}): Attachment {
  return {
    ...tombstoneFor({ scope: SCOPE, containerID, interface: "eth0" }, AT),
    state: "attached",
    source: "claim",
    netns: "/run/netns/x",
    netnsSeen: true,
    pod: { namespace: "shop", name: "db-0", uid: "u1" },
    claim: "shop/db-0",
    result: {
      addresses: [
        { address: address("10.0.0.5"), prefixLength: 24, gateway: address("10.0.0.1") },
        { address: address("fd00::5"), prefixLength: 64 },
      ],
      routes: [{ dst: "0.0.0.0/0", table: 0 }],
      dns: { nameservers: ["10.0.0.2"] },
    },
    startNs: 2n ** 63n, // beyond what a number holds
    attachedAt: AT.now,
    detachedAt: 0,
    ...changes,
  };
}

let folder = "";
export let database: Database;
let fault: Error | undefined;

export function open(): Journal {
  const beforeCommit = () => {
    if (fault !== undefined) throw fault;
  };
  database = openDatabase(join(folder, "agent.db"), { beforeCommit });
  return new Journal(database);
}

/** Each commit fails so from now on; undefined: none does. */
export function failCommits(by: Error | undefined): void {
  fault = by;
}

/** Around the tests of a suite: not of the whole file, whose process others may share. */
export function setUp(): void {
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "berth-journal-"));
    fault = undefined;
  });
  afterEach(async () => {
    database.close();
    await rm(folder, { recursive: true });
  });
}
