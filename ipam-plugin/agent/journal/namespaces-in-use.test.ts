// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { linuxHost } from "./host.ts";
import { namespacesInUse } from "./namespaces-in-use.ts";

describe("network namespaces in which there are processes", () => {
  let proc: string;
  beforeEach(() => {
    proc = mkdtempSync(join(tmpdir(), "proc-"));
    for (const name of ["a", "b", "c"]) writeFileSync(join(proc, name), "");
    sees("pid:[4026531836]");
    runs("1", "1", "a");
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
    rmSync(join(proc, "1"), { recursive: true });
    assert.equal(await namespacesInUse(proc), undefined);
    runs("1", "1", "a");
    assert.notEqual(await namespacesInUse(proc), undefined);
    sees("pid:[4026532501]");
    assert.equal(await namespacesInUse(proc), undefined);
    rmSync(join(proc, "self"), { recursive: true });
    assert.equal(await namespacesInUse(proc), undefined);
  });
});
