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

  interface Warning {
    readonly words: string;
    readonly path: string;
    readonly remedy: string;
  }

  async function warningsOf(files: Readonly<Record<string, unknown>>): Promise<readonly Warning[]> {
    for (const [name, content] of Object.entries(files))
      await writeFile(join(folder, name), typeof content === "string" ? content : JSON.stringify(content));
    const warnings: Warning[] = [];
    const log = {
      ...noopLogger,
      warn: (words: string, fields = {}) => void warnings.push({ words, ...fields } as Warning),
    };
    await warnOfEarlier({ name: "10-berth.conflist", folder, plugins: ["berth", "whereabouts"], log });
    return warnings;
  }

  async function warned(files: Readonly<Record<string, unknown>>): Promise<readonly string[]> {
    return (await warningsOf(files)).map(({ path }) => path.slice(folder.length + 1));
  }

  it("is told if its addresses are of Berth: the first one, which the runtime takes", async () => {
    assert.deepEqual(await warned({ "06-b.conflist": LIST, "05-a.conflist": LIST }), ["05-a.conflist"]);
  });

  it("is told if it is a single plugin, or asks under another name of Berth's plugin", async () => {
    assert.deepEqual(await warned({ "05-a.conf": { ...NET, ...plugin("whereabouts") } }), ["05-a.conf"]);
  });

  it("is the one in use where it is the first of all, and may be where another plugin comes before it", async () => {
    await mkdir(join(folder, "03-folder.conf"));
    const [alone] = await warningsOf({ "05-a.conflist": LIST });
    assert.match(alone?.words ?? "", /, and is the one in use$/);
    const multus = { ...NET, type: "multus", clusterNetwork: "10-berth.conflist" };
    const [behind] = await warningsOf({ "00-multus.conf": multus });
    assert.match(behind?.words ?? "", /, and may be the one in use$/);
    assert.match(
      behind?.remedy ?? "",
      /: the runtime takes 00-multus\.conf, and what that hands on to may be /,
    );
    assert.match(behind?.path ?? "", /\/05-a\.conflist$/);
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
