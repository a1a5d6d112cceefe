// SPDX-License-Identifier: Apache-2.0
// What `make demo` finds of one that was killed.
import assert from "node:assert/strict";
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { skipWithoutNetwork } from "./support/netns.ts";

/** Of a process that has ended. */
function deadPid(): number {
  return spawnSync("true").pid;
}

function removeLeftovers(folder: string): void {
  const env = { PATH: process.env["PATH"], TMPDIR: folder };
  execFileSync("bash", ["-euo", "pipefail", "-c", ". examples/leftovers.sh; remove_leftovers"], { env });
}

const network = await skipWithoutNetwork();

describe("a demo that begins", () => {
  it("ends the stack of one that was killed, and removes its folder alone", async (t) => {
    const folder = mkdtempSync(join(tmpdir(), "berth-demo-"));
    t.after(() => rmSync(folder, { recursive: true }));
    const [dead, lives, other] = [`brt${deadPid()}-a`, `brt${process.pid}-b`, "brtish"];
    for (const name of [dead, lives, other]) mkdirSync(join(folder, name, "data"), { recursive: true });
    const data = (name: string) => join(folder, name, "data");
    const stack = spawn("sh", ["-c", "read -r _", "--data", data(dead)]);
    const stranger = spawn("sh", ["-c", "read -r _", "--data", data(lives)]);
    t.after(() => stranger.kill("SIGKILL"));
    const say = (name: string, pid = 0) =>
      writeFileSync(join(data(name), "stack.json"), `{"pid":${pid},"x":1}\n`);
    say(dead, stack.pid);
    const ended = once(stack, "exit");
    removeLeftovers(folder);
    assert.deepEqual(await ended, [null, "SIGKILL"]);
    assert.deepEqual(readdirSync(folder).sort(), [lives, other].sort());
    mkdirSync(data(dead), { recursive: true });
    say(dead, stranger.pid); // another process has its number by now
    removeLeftovers(folder);
    assert.equal(existsSync(data(dead)), false);
    assert.equal(stranger.exitCode ?? stranger.signalCode, null);
  });

  it("removes network namespaces and bridges of one that was killed alone", network, (t) => {
    const folder = mkdtempSync(join(tmpdir(), "berth-demo-"));
    const [dead, lives] = [`brt${deadPid()}`, `brt${process.pid}`];
    const ip = (...args: readonly string[]) => execFileSync("ip", args, { encoding: "utf8" });
    t.after(() => {
      rmSync(folder, { recursive: true });
      for (const name of [dead, lives]) {
        spawnSync("ip", ["netns", "del", `${name}-box`]);
        spawnSync("ip", ["link", "del", name]);
      }
    });
    for (const name of [dead, lives]) {
      ip("netns", "add", `${name}-box`);
      ip("link", "add", name, "type", "bridge");
    }
    removeLeftovers(folder);
    const there = `${ip("netns", "list")}${ip("-o", "link", "show", "type", "bridge")}`;
    assert.deepEqual(
      [`${dead}-box`, `${lives}-box`, `: ${dead}:`, `: ${lives}:`].map((name) => there.includes(name)),
      [false, true, false, true],
    );
  });
});
