// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { chmod, chown, mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { whyShared } from "./private-folder.ts";

const NOBODY = 65_534;
const isRoot = process.getuid?.() === 0;

describe("whyShared", () => {
  let above: string;
  let folder: string;
  beforeEach(async () => {
    above = await mkdtemp(join(tmpdir(), "berth-shared-"));
    folder = join(above, "own");
    await mkdir(folder, { mode: 0o755 });
  });
  afterEach(() => rm(above, { recursive: true, force: true }));

  it("lets others read, and write to a sticky folder above", async () => {
    await chmod(above, 0o1777);
    assert.equal(await whyShared(folder), undefined);
  });

  it("finds that all may write, and what above it all may rename", async () => {
    await chmod(above, 0o777);
    assert.match((await whyShared(folder)) ?? "", /rename it, for they may write to \S+; .*chmod o-w /);
    await chmod(folder, 0o757);
    assert.match((await whyShared(folder)) ?? "", /^others may write to it; .*chmod go-w /);
    await chmod(folder, 0o1777); // theirs may be there already
    assert.match((await whyShared(folder)) ?? "", /^others may write to it/);
  });

  it("finds a group's, except root's", { skip: isRoot ? false : "chown needs root" }, async () => {
    await chmod(folder, 0o775);
    assert.equal(await whyShared(folder), undefined);
    await chown(folder, 0, NOBODY);
    assert.match((await whyShared(folder)) ?? "", /^others may write to it/);
  });

  it("finds who else may rename it from above: a group, and another owner, sticky or not", {
    skip: isRoot ? false : "chown needs root",
  }, async () => {
    await chmod(above, 0o775);
    assert.equal(await whyShared(folder), undefined, "root's own group");
    await chown(above, 0, NOBODY); // as /usr/local is root's and group staff's on Debian
    assert.match(
      (await whyShared(folder)) ?? "",
      /the group with the id 65534 may rename it, for it may write to \S+; .*chmod g-w /,
    );
    await chmod(above, 0o1775);
    assert.equal(await whyShared(folder), undefined, "sticky");
    for (const mode of [0o755, 0o1777]) {
      await chmod(above, mode);
      await chown(above, NOBODY, 0);
      assert.match(
        (await whyShared(folder)) ?? "",
        /the user with the id 65534 may rename it, for \S+ belongs to that user, and berth runs as 0; put it elsewhere/,
      );
    }
  });
});
