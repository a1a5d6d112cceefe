// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { mkdtemp, rename, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { linuxHost } from "./host.ts";

describe("host", () => {
  let folder = "";
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "berth-host-"));
  });
  afterEach(() => rm(folder, { recursive: true }));

  it("tells what is gone from what it cannot see", async () => {
    await writeFile(join(folder, "ns"), "");
    assert.equal(await linuxHost.look(join(folder, "ns")), "present");
    assert.equal(await linuxHost.look(join(folder, "gone")), "gone");
    assert.equal(await linuxHost.look(join(folder, "no-folder", "ns")), "unknown");
    assert.equal(await linuxHost.look("/proc/self/ns/net"), "present");
    await symlink("ns", join(folder, "link"));
    assert.equal(await linuxHost.look(join(folder, "link")), "present");
    await rm(join(folder, "ns"));
    assert.equal(await linuxHost.look(join(folder, "link")), "gone");
    await symlink("circle", join(folder, "circle"));
    assert.equal(await linuxHost.look(join(folder, "circle")), "unknown");
  });

  it("does not take the end of a process for the end of its namespace, in which others may be", async () => {
    assert.equal(await linuxHost.look("/proc/4194999/ns/net"), "unknown");
    await symlink("/proc/4194999/ns/net", join(folder, "link"));
    assert.equal(await linuxHost.look(join(folder, "link")), "unknown");
  });

  it("sees that a process is gone which a path names, or a link to it", async () => {
    assert.equal(linuxHost.hasProcessEnded("/proc/4194999/ns/net"), true);
    await symlink("/proc/4194999/ns/net", join(folder, "link"));
    assert.equal(linuxHost.hasProcessEnded(join(folder, "link")), true);
    for (const path of ["/proc/self/ns/net", `/proc/${process.pid}/ns/net`, "/proc/1/ns/net"])
      assert.equal(linuxHost.hasProcessEnded(path), false, path);
    assert.equal(linuxHost.hasProcessEnded(join(folder, "gone")), false);
  });

  it("tells another thing from what was at the path, if both are of one file system", async () => {
    const path = join(folder, "ns");
    await writeFile(path, "");
    const first = (await linuxHost.identity(path)) ?? assert.fail();
    assert.equal(await linuxHost.look(path, first), "present");
    await writeFile(join(folder, "next"), "");
    await rename(join(folder, "next"), path);
    assert.equal(await linuxHost.look(path, first), "gone");
    // the file under a mount, or a mount on the file that could not be seen before
    const own = (await linuxHost.identity("/proc/self/ns/net")) ?? assert.fail();
    assert.equal(await linuxHost.look(path, own), "present");
    // the number of a process comes again, and says nothing of the namespace that another one had
    const [device] = own.split(":");
    assert.equal(await linuxHost.look("/proc/self/ns/net", own), "present");
    assert.equal(await linuxHost.look("/proc/self/ns/net", `${device}:1`), "unknown");
    await symlink("/proc/self/ns/net", join(folder, "link"));
    assert.equal(await linuxHost.look(join(folder, "link"), `${device}:1`), "unknown");
  });

  it("knows one thing by two paths", async () => {
    await writeFile(join(folder, "a"), "");
    await writeFile(join(folder, "b"), "");
    await symlink(join(folder, "a"), join(folder, "c"));
    const [a, b, c] = await Promise.all(
      ["a", "b", "c"].map((name) => linuxHost.identity(join(folder, name))),
    );
    assert.ok(a !== undefined);
    assert.equal(a, c);
    assert.notEqual(a, b);
    assert.equal(await linuxHost.identity(join(folder, "gone")), undefined);
  });
});
