// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { mkdir, mkdtemp, readdir, rm, symlink, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { LeaseNames } from "./lease-names.ts";

const HOUR_MS = 3_600_000;

describe("names of host-local's files", () => {
  let root: string;
  let folder: string;
  let read: number; // how often a folder was
  let later: number;
  let names: LeaseNames;
  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), "berth-names-"));
    folder = join(root, "net");
    await mkdir(folder);
    [read, later] = [0, HOUR_MS];
    const list = (path: string) => {
      read++;
      return readdir(path);
    };
    names = new LeaseNames(() => Date.now() + later, list);
  });
  afterEach(() => rm(root, { recursive: true, force: true }));

  /** As long ago as it takes, whatever the tick of the kernel's clock: each change has a time of its own. */
  async function change(minutesAgo: number, work: () => Promise<void>): Promise<void> {
    await work();
    const at = (Date.now() - minutesAgo * 60_000) / 1000;
    await utimes(folder, at, at);
  }

  async function found(path = folder): Promise<readonly string[]> {
    return [...(await names.in(path)).keys()].sort();
  }

  it("are read once, until the folder changes", async () => {
    await change(30, () => writeFile(join(folder, "10.1.2.3"), "a\r\neth0"));
    assert.deepEqual(await found(), ["10.1.2.3"]);
    assert.deepEqual(await found(), ["10.1.2.3"]);
    assert.equal(read, 1);
    await change(20, () => writeFile(join(folder, "fd00:0::2"), "b\r\neth0"));
    assert.deepEqual(await found(), ["10.1.2.3", "fd00::2"]);
    await change(10, () => rm(join(folder, "10.1.2.3")));
    assert.deepEqual(await found(), ["fd00::2"]);
    assert.deepEqual(await found(), ["fd00::2"]);
    assert.equal(read, 3);
  });

  it("are read again where the last change is so young that the next may leave no trace", async () => {
    later = 0;
    await change(0, () => writeFile(join(folder, "10.1.2.3"), ""));
    await found();
    await found();
    assert.equal(read, 2);
    later = -HOUR_MS; // a clock that was set back
    await found();
    await found();
    assert.equal(read, 4);
  });

  it("are those of another folder in the place of the first", async () => {
    await change(30, () => writeFile(join(folder, "10.1.2.3"), ""));
    assert.deepEqual(await found(), ["10.1.2.3"]);
    await rm(folder, { recursive: true });
    assert.deepEqual(await found(), []);
    await mkdir(folder);
    await change(30, () => writeFile(join(folder, "10.1.2.4"), ""));
    assert.deepEqual(await found(), ["10.1.2.4"]);
  });

  it("are none where there is no folder, and nothing is read then", async () => {
    assert.deepEqual(await found(join(root, "none")), []);
    await writeFile(join(root, "file"), "");
    assert.deepEqual(await found(join(root, "file", "net")), []);
    assert.equal(read, 0);
    assert.deepEqual(await found(join(root, "file")), []);
  });

  it("are not taken for none while the folder cannot be read, and are read again then", async () => {
    await change(30, () => writeFile(join(folder, "10.1.2.3"), ""));
    let full = true;
    const tooMany = Object.assign(new Error("EMFILE: too many open files"), {
      code: "EMFILE",
      syscall: "scandir",
    });
    names = new LeaseNames(
      () => Date.now() + later,
      async (path) => (full ? Promise.reject(tooMany) : readdir(path)),
    );
    const message = `host-local's files in ${folder} cannot be read: EMFILE: too many open files`;
    await assert.rejects(found(), { code: "STORE_UNAVAILABLE", message });
    full = false;
    assert.deepEqual(await found(), ["10.1.2.3"]);
    await symlink("circle", join(root, "circle"));
    await assert.rejects(found(join(root, "circle")), { code: "STORE_UNAVAILABLE" });
  });

  it("are none of a folder that goes meanwhile, and that is not remembered", async () => {
    await change(30, () => writeFile(join(folder, "10.1.2.3"), ""));
    let gone = true;
    const list = (path: string) => readdir(gone ? join(root, "none") : path);
    names = new LeaseNames(() => Date.now() + later, list);
    assert.deepEqual(await found(), []);
    gone = false;
    assert.deepEqual(await found(), ["10.1.2.3"]);
  });

  it("of very many folders are not all kept, and neither are very many of one", async () => {
    const many = Array.from({ length: 4_097 }, (_, i) => `10.1.${Math.floor(i / 256)}.${i % 256}`);
    for (const [count, times] of [
      [4_096, 1],
      [4_097, 2],
    ] as const) {
      read = 0;
      const list = async () => {
        read++;
        return many.slice(0, count);
      };
      names = new LeaseNames(() => Date.now() + later, list);
      assert.equal((await found()).length, count);
      await found();
      assert.equal(read, times);
    }
    const folders = Array.from({ length: 65 }, (_, i) => join(root, `net-${i}`));
    for (const one of folders) await mkdir(one);
    read = 0;
    for (const one of [...folders, ...folders.slice(0, 1)]) await found(one);
    assert.equal(read, 66);
  });
});
