// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { unreadRecordsIn } from "./unread-records.ts";

const BOOTED_AT = 1_700_000_000;

describe("records that say nothing", () => {
  it("are those of this boot that are cut off, of any interface but loopback, until they are whole or gone", async () => {
    const folder = await mkdtemp(join(tmpdir(), "berth-unread-"));
    const host = { read: async () => `btime ${BOOTED_AT}\n` };
    const unread = unreadRecordsIn([join(folder, "none"), folder], host);
    const write = async (name: string, text: string, after = 60) => {
      await writeFile(join(folder, name), text);
      await utimes(join(folder, name), BOOTED_AT + after, BOOTED_AT + after);
    };
    const found = async () => (await unread()).map((one) => `${one.containerID} ${one.interface}`).sort();
    await write("net-whole-eth0", "{}");
    await write("net-empty-eth0", "");
    await write("my-net-cut-net1", '{"kind":"cniCacheV1","contai');
    await write("cni-loopback-any-lo", "");
    await write("net-before-eth0", "", -60);
    await write("unnamed", "");
    await mkdir(join(folder, "net-folder-eth0"));
    assert.deepEqual(await found(), ["cut net1", "empty eth0"]);
    await write("net-whole-eth0", "{", 61);
    await write("my-net-cut-net1", "{}", 62);
    await rm(join(folder, "net-empty-eth0"));
    assert.deepEqual(await found(), ["whole eth0"]);
    await rm(folder, { recursive: true });
    assert.deepEqual(await found(), []);
  });
});
