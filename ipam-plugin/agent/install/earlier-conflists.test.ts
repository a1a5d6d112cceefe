// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { noopLogger } from "../../../allocator/base/ports.ts";
import { warnOfEarlier } from "./earlier-conflists.ts";

const NET = { cniVersion: "1.0.0", name: "net" };
const plugin = (type: string) => ({ type: "bridge", ipam: { type } });
const LIST = { ...NET, plugins: [plugin("berth"), { type: "portmap" }] };

describe("a network configuration that comes before the agent's", () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "berth-earlier-"));
  });
  afterEach(() => rm(folder, { recursive: true }));

  async function warned(files: Readonly<Record<string, unknown>>): Promise<readonly unknown[]> {
    for (const [name, content] of Object.entries(files))
      await writeFile(join(folder, name), typeof content === "string" ? content : JSON.stringify(content));
    const paths: unknown[] = [];
    const log = { ...noopLogger, warn: (_: string, fields = {}) => void paths.push({ ...fields }) };
    await warnOfEarlier({ name: "10-berth.conflist", folder, plugins: ["berth", "whereabouts"], log });
    return paths.map((fields) => (fields as { readonly path: string }).path.slice(folder.length + 1));
  }

  it("is told if its addresses are of Berth: the first one, which the runtime takes", async () => {
    assert.deepEqual(await warned({ "06-b.conflist": LIST, "05-a.conflist": LIST }), ["05-a.conflist"]);
  });

  it("is told if it is a single plugin, or asks under another name of Berth's plugin", async () => {
    assert.deepEqual(await warned({ "05-a.conf": { ...NET, ...plugin("whereabouts") } }), ["05-a.conf"]);
  });

  it("is not told if it is the agent's own, comes later, is of others, or is none", async () => {
    await mkdir(join(folder, "03-folder.conf"));
    const multus = { ...NET, type: "multus", delegates: [LIST] };
    const files = { "00-multus.conf": multus, "10-berth.conflist": LIST, "20-b.conflist": LIST };
    const others = {
      "01-a.conflist": { ...NET, plugins: [plugin("host-local")] },
      "02-b.json": "{",
      "04-c.json": "[]",
    };
    assert.deepEqual(
      await warned({ ...files, ...others, "05-a.conflist.bak": LIST, "06.conf": '{"plugins":1}' }),
      [],
    );
  });
});
