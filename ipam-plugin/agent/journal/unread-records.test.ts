// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
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
    const found = async () =>
      (await unread(() => false)).map((one) => `${one.containerID} ${one.interface}`).sort();
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

  it("are not those of containers that are known otherwise, which are not even looked at", async () => {
    const folder = await mkdtemp(join(tmpdir(), "berth-unread-"));
    let reads = 0;
    const host = { read: async () => `btime ${reads++}\n` };
    const unread = unreadRecordsIn([folder], host);
    for (const name of ["net-a-eth0", "net-b-eth0", "net-b-net1", "net-c-lo"]) {
      await writeFile(join(folder, name), "");
    }
    const known = new Set(["a eth0", "b eth0"]);
    const isKnown = (one: { containerID: string; interface: string }) =>
      known.has(`${one.containerID} ${one.interface}`);
    const found = async () => (await unread(isKnown)).map(({ path }) => basename(path));
    assert.deepEqual(await found(), ["net-b-net1"]);
    known.add("b net1");
    assert.deepEqual([await found(), reads], [[], 1]);
    await rm(folder, { recursive: true });
  });

  it("are not looked for in a file once more that could be read, by however many looks at once", async () => {
    const folder = await mkdtemp(join(tmpdir(), "berth-unread-"));
    const both = Promise.withResolvers<string>();
    let looks = 0;
    const read = async () => {
      if (++looks === 3) both.resolve("");
      return looks === 1 ? "" : await both.promise;
    };
    const unread = unreadRecordsIn([folder], { read });
    const write = async (text: string) => {
      await writeFile(join(folder, "net-a-eth0"), text);
      await utimes(join(folder, "net-a-eth0"), BOOTED_AT, BOOTED_AT);
    };
    await write("{}");
    assert.deepEqual(await unread(() => false), []);
    await write("{"); // whoever reads it again sees that
    const found = await Promise.all([unread(() => false), unread(() => false)]);
    assert.deepEqual(found, [[], []]);
    await rm(folder, { recursive: true });
  });
});
