// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import {
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  symlink,
  utimes,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { type Logger, noopLogger } from "../../../allocator/base/ports.ts";
import { createClock } from "../../../system/clock.ts";
import { ManualClock } from "../../../system/testing/manual-clock.ts";
import { Conflist } from "./conflist.ts";
import { conflistOf } from "./testing/conflists.ts";

const NAME = "05-berth.conflist";
const real = createClock();

describe("the conflist", () => {
  let folder: string;
  let mounted: string;
  let host: string;
  let version: number;
  let ready: boolean;
  let clock: ManualClock;
  let logged: string[];
  let open: Conflist[];
  let podCidrs: readonly string[];
  let nodeUID: string | undefined;
  let asked: number;

  /** As the kubelet mounts a ConfigMap: the file is a link through a folder that is swapped at once. */
  async function mount(text: string): Promise<void> {
    const name = `..version-${++version}`;
    await mkdir(join(mounted, name));
    await writeFile(join(mounted, name, NAME), text);
    await symlink(name, join(mounted, "..data_tmp"));
    await rename(join(mounted, "..data_tmp"), join(mounted, "..data"));
  }

  /** Lets it look once, and waits until it sleeps again. */
  async function look(): Promise<void> {
    while (clock.sleeping === 0) await real.sleep(1);
    clock.advance(5_000);
    while (clock.sleeping === 0) await real.sleep(1);
  }

  async function start(name = NAME): Promise<Conflist> {
    const at = (level: string) => (message: string) => logged.push(`${level}: ${message}`);
    const log: Logger = { ...noopLogger, info: at("info"), warn: at("warn"), error: at("error") };
    const started = await Conflist.open({
      ...{
        from: join(mounted, name),
        record: join(folder, "conflist.json"),
        folder: host,
        isReady: () => ready,
        clock,
        log,
      },
      ...{ node: "node-a", nodeUID: () => nodeUID },
      podCidrs: async () => {
        asked++;
        return podCidrs;
      },
    });
    open.push(started);
    return started;
  }

  const written = () => readFile(join(host, NAME), "utf8");

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "berth-conflist-"));
    [mounted, host] = [join(folder, "mounted"), join(folder, "net.d")];
    [version, ready, clock, logged, open] = [0, false, new ManualClock(real.now()), [], []];
    [podCidrs, nodeUID, asked] = [[], undefined, 0];
    await mkdir(mounted);
    await mkdir(host);
    await symlink(join("..data", NAME), join(mounted, NAME));
    await mount(conflistOf("one"));
  });
  afterEach(async () => {
    for (const started of open) await started.close();
    await rm(folder, { recursive: true });
  });

  it("is written once the agent is ready, and stays when it ends", async () => {
    const started = await start();
    await look();
    assert.deepEqual([started.isWritten, await readdir(host)], [false, []]);
    ready = true;
    await look();
    assert.deepEqual([started.isWritten, await readdir(host)], [true, [NAME]]);
    await started.close();
    assert.equal(await written(), conflistOf("one"));
    assert.deepEqual(logged, ["info: conflist written"]);
  });

  it("is written as it is mounted by then", async () => {
    await start();
    await mount(conflistOf("two"));
    ready = true;
    await look();
    assert.equal(await written(), conflistOf("two"));
  });

  it("follows the mounted file, but not to what no runtime could load", async () => {
    ready = true;
    await start();
    await look();
    await mount("{");
    await look();
    await look();
    assert.equal(await written(), conflistOf("one"));
    await mount(conflistOf("two", "host-local"));
    await look();
    assert.equal(await written(), conflistOf("two", "host-local"));
    assert.deepEqual(logged, [
      "info: conflist written",
      "error: new conflist is refused; the one before stays",
      "warn: no plugin of the conflist has ipam.type berth",
      "info: conflist written",
    ]);
  });

  it("is not written again by the next agent, nor when it looks again", async () => {
    ready = true;
    await start();
    await look();
    const { ino } = await stat(join(host, NAME));
    await open.pop()?.close();
    clock = new ManualClock(real.now());
    const next = await start();
    await look();
    await look();
    assert.equal((await stat(join(host, NAME))).ino, ino);
    assert.equal(next.isWritten, true);
  });

  it("is tried again until it can be written, and said once", async () => {
    const started = await start();
    await rename(host, `${host}.away`);
    ready = true;
    await look();
    await look();
    assert.deepEqual([started.isWritten, logged], [false, ["error: conflist is not brought to the host"]]);
    await rename(`${host}.away`, host);
    await look();
    assert.equal(started.isWritten, true);
  });

  it("has the node's own range where it says so, once the node has one", async () => {
    await mount(conflistOf("usePodCidr"));
    ready = true;
    const started = await start();
    await look();
    assert.deepEqual([started.isWritten, logged], [false, ["error: conflist is not brought to the host"]]);
    podCidrs = ["10.244.1.0/24"];
    await look();
    assert.equal(JSON.parse(await written()).name, "10.244.1.0/24");
  });

  it("has the ranges of the Node object that there is, once a node that joined again has some", async () => {
    await mount(conflistOf("usePodCidr"));
    [ready, podCidrs] = [true, ["10.244.1.0/24"]];
    await start();
    await look();
    nodeUID = "first";
    await look();
    await look();
    assert.deepEqual([JSON.parse(await written()).name, asked], ["10.244.1.0/24", 2]);
    nodeUID = undefined; // deleted
    await look();
    [nodeUID, podCidrs] = ["second", []];
    await look();
    assert.equal(JSON.parse(await written()).name, "10.244.1.0/24");
    podCidrs = ["10.244.9.0/24"];
    await look();
    assert.equal(JSON.parse(await written()).name, "10.244.9.0/24");
    await look();
    assert.equal(asked, 4);
    assert.deepEqual(logged, [
      "info: conflist written",
      "error: conflist is not brought to the host",
      "info: conflist written",
    ]);
  });

  it("takes the place of the one that was written under another name, unless that was changed since", async () => {
    const names = [NAME, "20-berth.conflist", "30-berth.conflist"] as const;
    for (const name of names.slice(1)) await symlink(join("..data", NAME), join(mounted, name));
    ready = true;
    for (const name of names.slice(0, 2)) {
      await start(name);
      await look();
      await open.pop()?.close();
      clock = new ManualClock(real.now());
    }
    assert.deepEqual(await readdir(host), ["20-berth.conflist"]);
    await writeFile(join(host, "20-berth.conflist"), conflistOf("somebody's"));
    await start(names[2]);
    await look();
    assert.deepEqual(await readdir(host), ["20-berth.conflist", "30-berth.conflist"]);
    assert.deepEqual(logged, [
      "info: conflist written",
      "info: conflist written",
      "info: conflist of the former name removed",
      "info: conflist written",
      "warn: the conflist of the former name was changed since it was written, and stays",
      "warn: a configuration that asks Berth comes before the agent's, and is the one in use",
    ]);
  });

  it("is not written before it is remembered that it is the agent's", async () => {
    ready = true;
    await mkdir(join(folder, "conflist.json"));
    await start();
    await look();
    assert.deepEqual(await readdir(host), []);
    await rm(join(folder, "conflist.json"), { recursive: true });
    await look();
    assert.equal(await written(), conflistOf("one"));
  });

  it("leaves no temporary file of a crash, of its own or of its record", async () => {
    const end = "0d5e8f6a-1b2c-4d3e-8f90-a1b2c3d4e5f6.tmp";
    const left = [join(host, `.${NAME}.${end}`), join(folder, `.conflist.json.${end}`)];
    for (const path of left) {
      await writeFile(path, "");
      await utimes(path, 0, 0);
    }
    await start();
    assert.deepEqual(left.filter(existsSync), []);
  });

  it("stays while the mounted file is away", async () => {
    ready = true;
    await start();
    await look();
    await rm(join(mounted, "..data"));
    await look();
    assert.equal(await written(), conflistOf("one"));
    await mount(conflistOf("two"));
    await look();
    assert.equal(await written(), conflistOf("two"));
  });

  it("is refused at the start when it is none, or has no place to go", async () => {
    await mount("[]");
    await assert.rejects(start(), {
      message: `BERTH_CONFLIST ${join(mounted, NAME)} is no CNI configuration list: it is no JSON object`,
    });
    await rm(join(mounted, "..data"));
    await assert.rejects(start(), {
      code: "CONFIG_INVALID",
      message: /^BERTH_CONFLIST .* cannot be read: ENOENT/,
    });
    await mount(conflistOf("one"));
    await rm(host, { recursive: true });
    await assert.rejects(start(), {
      message: `BERTH_CNI_CONF ${host} is no folder here; mount the host's folder there`,
    });
    assert.ok(!existsSync(host));
  });
});
