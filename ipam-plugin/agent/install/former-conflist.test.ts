// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { noopLogger } from "../../../allocator/base/ports.ts";
import { remember, removeFormer } from "./former-conflist.ts";

describe("the conflist of a former name, after a crash", () => {
  let root: string;
  let folder: string;
  let record: string;
  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), "berth-former-"));
    [folder, record] = [join(root, "net.d"), join(root, "conflist.json")];
    await mkdir(folder);
    await whole("10-a.conflist", "one");
  });
  afterEach(() => rm(root, { recursive: true }));

  const put = (name: string, text: string) => writeFile(join(folder, name), text);

  async function whole(name: string, text: string): Promise<void> {
    await remember({ name, text }, record);
    await put(name, text);
    await removeFormer({ name, text }, { folder, record, log: noopLogger });
  }

  it("is removed where its new text was there and the process died", async () => {
    await remember({ name: "10-a.conflist", text: "two" }, record);
    await put("10-a.conflist", "two");
    await whole("20-b.conflist", "two");
    assert.deepEqual(await readdir(folder), ["20-b.conflist"]);
  });

  it("is removed where the process died before its new text was there", async () => {
    await remember({ name: "10-a.conflist", text: "two" }, record);
    await whole("20-b.conflist", "two");
    assert.deepEqual(await readdir(folder), ["20-b.conflist"]);
  });

  it("is removed where two names were begun, and none was finished", async () => {
    await remember({ name: "20-b.conflist", text: "two" }, record);
    await put("20-b.conflist", "two");
    await whole("30-c.conflist", "two");
    assert.deepEqual(await readdir(folder), ["30-c.conflist"]);
  });

  it("stays where it has a text that was written before the last one, which somebody put back", async () => {
    await whole("10-a.conflist", "two");
    await put("10-a.conflist", "one");
    await whole("20-b.conflist", "two");
    assert.deepEqual(await readdir(folder), ["10-a.conflist", "20-b.conflist"]);
  });

  it("stays where the record cannot be read", async () => {
    await writeFile(record, "{");
    await whole("20-b.conflist", "two");
    assert.deepEqual(await readdir(folder), ["10-a.conflist", "20-b.conflist"]);
    await whole("30-c.conflist", "two");
    assert.deepEqual(await readdir(folder), ["10-a.conflist", "30-c.conflist"]);
  });
});
