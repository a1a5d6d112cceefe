// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
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
