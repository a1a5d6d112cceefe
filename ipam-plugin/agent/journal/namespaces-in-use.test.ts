// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { linuxHost } from "./host.ts";
import { namespacesInUse } from "./namespaces-in-use.ts";

describe("network namespaces in which there are processes, or that are mounted", () => {
  let proc: string;
  beforeEach(() => {
    proc = mkdtempSync(join(tmpdir(), "proc-"));
    for (const name of ["a", "b", "c"]) writeFileSync(join(proc, name), "");
    sees("pid:[4026531836]");
    runs("1", "1", "a");
    writeFileSync(join(proc, "1/mountinfo"), "22 27 0:21 / /proc rw - proc proc rw\n");
  });
  afterEach(() => rmSync(proc, { recursive: true, force: true }));

  function sees(processes: string): void {
    rmSync(join(proc, "self"), { recursive: true, force: true });
    mkdirSync(join(proc, "self/ns"), { recursive: true });
    symlinkSync(processes, join(proc, "self/ns/pid"));
  }

  function runs(pid: string, thread: string, namespace: string): void {
    for (const folder of [`${pid}/ns`, `${pid}/task/${thread}/ns`]) {
      mkdirSync(join(proc, folder), { recursive: true });
      rmSync(join(proc, folder, "net"), { force: true });
      symlinkSync(join(proc, namespace), join(proc, folder, "net"));
    }
  }

  const identity = async (name: string) => (await linuxHost.identity(join(proc, name))) ?? assert.fail();

  it("are those of every thread of every process", async () => {
    runs("7", "7", "a");
    runs("7", "8", "b");
    mkdirSync(join(proc, "9")); // it ends while it is looked at
    mkdirSync(join(proc, "9x/task/9/ns"), { recursive: true });
    const found = (await namespacesInUse(proc)) ?? assert.fail();
    assert.deepEqual([...found].sort(), [await identity("a"), await identity("b")].sort());
    assert.equal(found.has(await identity("c")), false);
  });

  /** What a process does when its threads are listed: too late for the list that it is in. */
  const whenListed = (does: Readonly<Record<string, () => void>>) => async (folder: string) => {
    const pid = /(\d+)\/task$/.exec(folder)?.[1] ?? "";
    does[pid]?.();
    const names = await readdir(folder).catch(() => []);
    return names.filter((name) => /^\d+$/.test(name));
  };
  const fork = (pid: string, child: string) => {
    rmSync(join(proc, pid), { recursive: true });
    runs(child, child, "b");
  };

  it("are also those of a process that another one begins which ends while they are looked for", async () => {
    runs("7", "7", "b");
    const list = whenListed({ 7: () => fork("7", "3"), 3: () => fork("3", "8") });
    const found = (await namespacesInUse(proc, list)) ?? assert.fail();
    assert.ok(found.has(await identity("b")));
  });

  it("are not known where processes begin and end without end", async () => {
    runs("7", "7", "b");
    const forks = Array.from({ length: 30 }, (_, n) => [n + 7, () => fork(`${n + 7}`, `${n + 8}`)]);
    assert.equal(await namespacesInUse(proc, whenListed(Object.fromEntries(forks))), undefined);
  });

  it("are also those that are mounted, where there may be no process in them", async () => {
    const inode = (await identity("c")).split(":")[1];
    const mounts = `22 27 0:21 / /proc rw - proc proc rw\n42 22 0:4 net:[${inode}] /run/netns/c rw shared:2 - nsfs nsfs rw\n`;
    writeFileSync(join(proc, "1/mountinfo"), mounts);
    const found = (await namespacesInUse(proc)) ?? assert.fail();
    assert.deepEqual([...found].sort(), [await identity("a"), await identity("c")].sort());
    rmSync(join(proc, "1/mountinfo"));
    assert.equal(await namespacesInUse(proc), undefined);
  });

  it("are not known where one of them cannot be looked at", async () => {
    runs("7", "7", "b");
    rmSync(join(proc, "7/task/7/ns/net"));
    symlinkSync("net", join(proc, "7/task/7/ns/net")); // ELOOP: as little is known as by EACCES
    assert.equal(await namespacesInUse(proc), undefined);
    rmSync(join(proc, "7/task"), { recursive: true });
    assert.notEqual(await namespacesInUse(proc), undefined, "it has ended");
    symlinkSync("task", join(proc, "7/task"));
    assert.equal(await namespacesInUse(proc), undefined);
  });

  it("are not known where the first process is hidden, or another one is the first", async () => {
    renameSync(join(proc, "1"), join(proc, "of-another"));
    assert.equal(await namespacesInUse(proc), undefined);
    renameSync(join(proc, "of-another"), join(proc, "1"));
    assert.notEqual(await namespacesInUse(proc), undefined);
    sees("pid:[4026532501]");
    assert.equal(await namespacesInUse(proc), undefined);
    rmSync(join(proc, "self"), { recursive: true });
    assert.equal(await namespacesInUse(proc), undefined);
  });
});
