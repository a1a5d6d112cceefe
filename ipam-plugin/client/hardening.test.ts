// SPDX-License-Identifier: Apache-2.0
// The plugin runs as root on every node: what its linker and its compiler were asked for is in the file, and in force.
import assert from "node:assert/strict";
import { execFile, spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { promisify } from "node:util";
import { eventually } from "../../test/support/eventually.ts";

const execute = promisify(execFile);
const whyNot = (command: string) =>
  spawnSync(command, ["--version"]).error === undefined ? false : `there is no ${command} here`;

for (const { libc, compiler } of [
  { libc: "the C library of this host", compiler: "cc" },
  { libc: "musl", compiler: "musl-gcc" },
]) {
  describe(`CNI binary with ${libc}`, { skip: whyNot(compiler) || whyNot("readelf") }, () => {
    const folder = mkdtempSync(join(tmpdir(), "berth-hardening-"));
    const [binary, symbols] = [join(folder, "berth"), join(folder, "symbols")];
    const read = async (...args: string[]) => (await execute("readelf", ["--wide", ...args])).stdout;

    before(async () => {
      const make = (out: string, ...more: string[]) =>
        execute("make", ["-s", "-C", import.meta.dirname, `CC=${compiler}`, `OUT=${out}`, ...more]);
      await make(binary);
      await make(symbols, "CFLAGS=-Os"); // the same, and the names of its functions
    });
    after(() => rmSync(folder, { recursive: true, force: true }));

    it("is static, without an interpreter that a host may not have, and loaded anywhere", async () => {
      assert.match(
        await read("--file-header", binary),
        /Type: +DYN \(Position-Independent Executable file\)/,
      );
      assert.doesNotMatch(await read("--program-headers", binary), /INTERP/);
      const dynamic = await read("--dynamic", binary);
      assert.match(dynamic, /\(FLAGS_1\) +Flags: NOW PIE/);
      assert.doesNotMatch(dynamic, /NEEDED|TEXTREL/);
    });

    it("has no segment that is both written and executed, and no executable stack", async () => {
      const headers = await read("--program-headers", binary);
      const flags = [...headers.matchAll(/^ +(\w+) +(?:0x[0-9a-f]+ +){5}([RWE ]{3}) /gm)].map(
        ([, type = "", has = ""]) => ({ type, has: has.replaceAll(" ", "") }),
      );
      assert.deepEqual(
        flags.filter(({ has }) => has.includes("W") && has.includes("E")),
        [],
      );
      assert.deepEqual(
        flags.filter(({ type }) => type === "GNU_STACK"),
        [{ type: "GNU_STACK", has: "RW" }],
      );
      assert.ok(flags.some(({ type }) => type === "GNU_RELRO"));
    });

    /** What the kernel says of a client that sleeps in poll, for its standard input. */
    const sleeping = async (what: "maps" | "status") => {
      const env = { CNI_COMMAND: "ADD", CNI_CONTAINERID: "c", CNI_NETNS: "/n", CNI_IFNAME: "eth0" };
      const child = spawn(binary, [], { env: { ...env, BERTH_SOCKET: join(folder, "none") } });
      const read = (name: string) => readFileSync(`/proc/${child.pid}/${name}`, "utf8");
      try {
        await eventually("it reads", () => read("stat").split(" ")[2] === "S" || undefined);
        return read(what);
      } finally {
        child.kill("SIGKILL");
      }
    };

    it("makes what is relocated read-only before it does anything", async () => {
      const lines = (await sleeping("maps")).split("\n");
      const own = lines.filter((line) => line.endsWith(binary)).map((line) => line.split(" ")[1]);
      // header, code, constants, what was relocated, variables
      assert.deepEqual(own, ["r--p", "r-xp", "r--p", "r--p", "rw-p"]);
    });

    it("takes no huge pages, which are cleared as a whole", async () => {
      assert.match(await sleeping("status"), /^THP_enabled:\t0$/m);
    });

    it("checks its stack, its arrays, and calls of the C library where that has the means", async () => {
      const names = await read("--symbols", symbols);
      assert.match(names, /__stack_chk_fail/);
      if (compiler === "cc") assert.match(names, /__(mem|str|read|poll|snprintf|vsnprintf)\w*_chk/);
      const { stdout } = await execute("objdump", ["--disassemble", binary], { maxBuffer: 1 << 28 });
      assert.match(stdout, /\b(ud2|brk|udf)\b/);
    });
  });
}
