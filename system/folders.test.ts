// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { mkdtemp, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import { makeFolder } from "./folders.ts";

async function place(test: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "folders-"));
  test.after(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

describe("makeFolder", () => {
  it("makes what is missing, for its user alone, and any number of callers may", async (t) => {
    const folder = join(await place(t), "a/b/c");
    await Promise.all([makeFolder(folder), makeFolder(folder), makeFolder(folder)]);
    await makeFolder(folder);
    assert.equal((await stat(folder)).mode & 0o777, 0o700);
    assert.equal((await stat(join(folder, ".."))).mode & 0o777, 0o700);
  });

  it("takes a link to a folder for one", async (t) => {
    const folder = await place(t);
    await symlink(folder, join(folder, "link"));
    await makeFolder(join(folder, "link/inside"));
    assert.ok((await stat(join(folder, "inside"))).isDirectory());
  });

  it("ends where the file system has no room for it", { timeout: 10_000 }, async () => {
    await assert.rejects(makeFolder("/proc/x/y"), { code: "ENOENT", path: "/proc/x" });
  });

  it("does not go through a file or a link to nowhere", async (t) => {
    const folder = await place(t);
    await writeFile(join(folder, "file"), "");
    await symlink("nowhere", join(folder, "link"));
    await assert.rejects(makeFolder(join(folder, "file")), {
      code: "CONFIG_INVALID",
      message: `${join(folder, "file")} is not a folder; name another path`,
    });
    await assert.rejects(makeFolder(join(folder, "file/below")), { code: "ENOTDIR" });
    await assert.rejects(makeFolder(join(folder, "link/below")), { code: "EEXIST" });
  });
});
