// SPDX-License-Identifier: Apache-2.0
// What somebody does to the files of a journal, between two starts and while an agent runs: no address is given twice, none is
// taken for free, and whoever asks is told why.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { copyFile, link, mkdir, mkdtemp, rename, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, before, beforeEach, describe, it } from "node:test";
import { openDatabase } from "../../allocator/store/sqlite/database.ts";
import { type Agent, startAgent } from "../../ipam-plugin/agent/agent.ts";
import { hostDeps } from "../support/host-deps.ts";
import { Caller } from "./caller.ts";
import { buildPlugin } from "./plugin.ts";
import { noClaims } from "./testing-agent.ts";

const OLDER = /^the journal .* is an older copy of the one that has served this node since it booted/;
const ANOTHER = /^the journal .* is not the one that has served this node since it booted/;
const MOVED =
  /was moved, deleted or replaced while this process has it open.*; put it back, or restart Berth/;

describe("the files of a journal", () => {
  let folder: string;
  let path: string;
  let caller: Caller;
  let end = async () => {};

  before(buildPlugin);
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "berth-tampered-"));
    path = join(folder, "berth.db");
    caller = new Caller(join(folder, "run", "agent.sock"));
  });
  afterEach(async () => {
    await end();
    await rm(folder, { recursive: true, force: true });
  });

  /** An agent on the journal, as of this boot; throws why it does not start. */
  async function start(at = path): Promise<Agent> {
    await end();
    const database = openDatabase(at);
    const { socket: socketPath } = caller;
    const services = hostDeps();
    try {
      const agent = await startAgent({
        database,
        socketPath,
        claimSource: noClaims,
        bootId: "boot-1",
        ...services,
      });
      end = async () => {
        end = async () => {};
        await agent.close();
        database.close();
      };
      return agent;
    } catch (error) {
      database.close();
      throw error;
    }
  }

  const whyNot = (at?: string) =>
    start(at).then(
      () => "it started",
      (error: Error) => error.message,
    );

  async function refused(verb: string, said = {}): Promise<string> {
    const { stdout } = await caller.call(verb, said);
    return String((JSON.parse(stdout || "{}") as { msg?: string }).msg);
  }

  /** An agent that has given 10.1.2.2 and has ended, by a stop or as if it had been killed. */
  async function served(): Promise<void> {
    await start();
    assert.deepEqual(await caller.add({ cid: "up" }), ["10.1.2.2/24"]);
    await end();
  }

  async function stillServes(): Promise<void> {
    assert.deepEqual((await start()).held(), ["10.1.2.2"]);
    assert.deepEqual(await caller.add({ cid: "next" }), ["10.1.2.3/24"]);
  }

  for (const [what, spoil, words] of [
    [
      "a link",
      async () => {
        await rename(path, `${path}.real`);
        await symlink(`${path}.real`, path);
      },
      /is a link; put the file itself there/,
    ],
    [
      "one with a second name",
      () => link(path, `${path}.twin`),
      /has a second name \(a hard link\); copy it/,
    ],
    [
      "a folder",
      async () => {
        await rename(path, `${path}.real`);
        await mkdir(path);
      },
      /is a folder, not a file/,
    ],
    [
      "a pipe",
      async () => {
        await rename(path, `${path}.real`);
        assert.equal(spawnSync("mkfifo", [path]).status, 0);
      },
      /is a pipe, not a file/,
    ],
    [
      "with a pipe as its log",
      async () => {
        assert.equal(spawnSync("mkfifo", [`${path}-wal`]).status, 0);
      },
      /-wal is a pipe, not a file; move it away/,
    ],
    [
      "that others may write to",
      async () => assert.equal(spawnSync("chmod", ["666", path]).status, 0),
      /may be written by others; chmod go-w/,
    ],
    [
      "that is empty",
      async () => {
        await rename(path, `${path}.real`);
        await writeFile(path, "", { mode: 0o600 });
      },
      /is empty; put a backup in its place/,
    ],
    [
      "that was cut short",
      async () => {
        await copyFile(path, `${path}.real`);
        assert.equal(spawnSync("truncate", ["--size=12288", path]).status, 0);
      },
      /is damaged \(/,
    ],
  ] as const) {
    it(`are not served from ${what}, in words, and are once it is put right`, async () => {
      await served();
      await spoil();
      assert.match(await whyNot(), words);
      for (const each of [`${path}-wal`, `${path}.twin`]) await rm(each, { force: true });
      assert.equal(spawnSync("chmod", ["600", path]).status, 0);
      if (spawnSync("test", ["-e", `${path}.real`]).status === 0) {
        await rm(path, { recursive: true });
        await rename(`${path}.real`, path);
      }
      await stillServes();
    });
  }

  it("have a second name after a start that was killed, and are served", async () => {
    await served();
    await mkdir(`${path}.new-killed`);
    await link(path, `${path}.new-killed/draft`);
    await stillServes();
  });

  it("of another user are not served from", { skip: process.getuid?.() !== 0 }, async () => {
    await served();
    assert.equal(spawnSync("chown", ["65534", path]).status, 0);
    assert.match(await whyNot(), /belongs to the user with the id 65534; chown it/);
    assert.equal(spawnSync("chown", ["0", path]).status, 0);
    await stillServes();
  });

  it("in a folder that others may write to are not served from", async () => {
    await served();
    const shared = join(folder, "shared");
    await mkdir(shared);
    await rename(path, join(shared, "berth.db"));
    assert.equal(spawnSync("chmod", ["777", shared]).status, 0);
    assert.match(
      await whyNot(join(shared, "berth.db")),
      /the journal .* is not safe: others may write to it/,
    );
    await rename(join(shared, "berth.db"), path);
    await stillServes();
  });

  it("that come from another node, or from before, are told apart, and swapped back they serve", async () => {
    await served();
    const [other, old] = [join(folder, "other.db"), join(folder, "old.db")];
    await copyFile(path, old);
    await start();
    assert.deepEqual(await caller.add({ cid: "later" }), ["10.1.2.3/24"]);
    await end();
    openDatabase(other).close();
    for (const [strange, words] of [
      [old, OLDER],
      [other, ANOTHER],
    ] as const) {
      await rename(path, `${path}.real`);
      await copyFile(strange, path);
      assert.match(await whyNot(), words);
      await rename(`${path}.real`, path);
    }
    assert.deepEqual((await start()).held().toSorted(), ["10.1.2.2", "10.1.2.3"]);
  });

  for (const [what, act, undo] of [
    [
      "deleted",
      async () => await rename(path, `${path}.gone`),
      async () => await rename(`${path}.gone`, path),
    ],
    [
      "replaced by an older copy",
      async () => {
        await rename(path, `${path}.gone`);
        await copyFile(`${path}.old`, path);
      },
      async () => await rename(`${path}.gone`, path),
    ],
    [
      "left without their log",
      async () => await rename(`${path}-wal`, `${path}.gone`),
      async () => await rename(`${path}.gone`, `${path}-wal`),
    ],
  ] as const) {
    it(`that are ${what} while an agent runs: nothing more is given before they are back`, async () => {
      await served();
      await copyFile(path, `${path}.old`);
      const agent = await start();
      assert.deepEqual(await caller.add({ cid: "later" }), ["10.1.2.3/24"]);
      await act();
      assert.match(await refused("ADD", { cid: "next" }), MOVED);
      assert.deepEqual(agent.held().toSorted(), ["10.1.2.2", "10.1.2.3"]);
      await undo();
      assert.deepEqual(await caller.add({ cid: "next" }), ["10.1.2.5/24"]);
      assert.deepEqual((await start()).held().toSorted(), ["10.1.2.2", "10.1.2.3", "10.1.2.5"]);
    });
  }

  it("that are gone for good while an agent runs are missed by the next one", async () => {
    await served();
    await start();
    assert.deepEqual(await caller.add({ cid: "later" }), ["10.1.2.3/24"]);
    for (const suffix of ["", "-wal", "-shm"]) await rm(`${path}${suffix}`);
    assert.match(await refused("ADD", { cid: "next" }), MOVED);
    assert.match(await whyNot(), ANOTHER);
  });

  it("have a mark that is written anew where it is taken away, or an older one is put back, while an agent runs", async () => {
    const mark = `${caller.socket}.journal`;
    await served();
    await copyFile(mark, `${mark}.old`);
    await copyFile(path, `${path}.old`);
    for (const [n, act] of [() => rm(mark), () => rename(`${mark}.old`, mark)].entries()) {
      await start();
      await caller.add({ cid: `one-${n}` });
      await act();
      await caller.add({ cid: `two-${n}` });
      await end();
    }
    await rename(path, `${path}.real`);
    await copyFile(`${path}.old`, path);
    assert.match(await whyNot(), OLDER);
    await rename(`${path}.real`, path);
    assert.equal((await start()).held().length, 5);
  });

  it("have a mark that is no file: it is said, and not waited for", async () => {
    const mark = `${caller.socket}.journal`;
    await served();
    await rename(mark, `${mark}.real`);
    for (const act of [
      () => assert.equal(spawnSync("mkfifo", [mark]).status, 0),
      () => mkdir(mark),
      () => symlink(`${mark}.real`, mark),
    ]) {
      await act();
      assert.match(await whyNot(), /which says what journal serves this node, cannot be used: .*remove it/);
      await rm(mark, { recursive: true });
    }
    await rename(`${mark}.real`, mark);
    await stillServes();
  });
});
