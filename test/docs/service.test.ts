// SPDX-License-Identifier: Apache-2.0
// The unit of docs/etcd.md starts the agent with flags that it has, in folders that the unit makes.
import assert from "node:assert/strict";
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { readlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { describe, it } from "node:test";
import { pathToFileURL } from "node:url";
import { up } from "../../cli/commands/up.ts";
import { configOf } from "../../cli/config.ts";
import { readArguments } from "../../cli/terminal/arguments.ts";
import { linuxHost } from "../../ipam-plugin/agent/journal/host.ts";
import { eventually } from "../support/eventually.ts";
import { run, start } from "../support/process.ts";

const UNIT = readFileSync(join(import.meta.dirname, "../../examples/etcd/berth.service"), "utf8");
const SOCKET = readFileSync(join(import.meta.dirname, "../../ipam-plugin/client/main.c"), "utf8");

/** Setting -> what it is set to. */
const settings = new Map(
  UNIT.split("\n").flatMap((line) => {
    const [, name = "", value = ""] = /^([A-Za-z]+)=(.*)$/.exec(line) ?? [];
    return name === "" ? [] : [[name, value] as const];
  }),
);
const setting = (name: string) => settings.get(name) ?? assert.fail(`no ${name}`);

const ENV = { PATH: "/usr/sbin:/usr/bin:/sbin:/bin" };
const HOST = pathToFileURL(join(import.meta.dirname, "../../ipam-plugin/agent/journal/host.ts")).href;

/** What the agent sees at a path with these of root's rights. */
async function identityBy(rights: string, path: string): Promise<string> {
  const code = `const { linuxHost } = await import(${JSON.stringify(HOST)}); console.log(await linuxHost.identity(${JSON.stringify(path)}))`;
  const node = [process.execPath, "--input-type=module", "--eval", code];
  const args = ["--bounding-set", rights, "--inh-caps", "-all", ...node];
  const { rc, stdout, stderr } = await run("setpriv", args, { env: ENV });
  assert.equal(rc, 0, stderr);
  return stdout.trim();
}

const without = await run("setpriv", ["--bounding-set", "-all", "unshare", "--help"], { env: ENV }).catch(
  () => ({ rc: 1 }),
);
const needsRoot = {
  skip: process.getuid?.() === 0 && without.rc === 0 ? false : "needs root, setpriv and unshare",
};

const analyze = await run("systemd-analyze", ["--version"], {
  env: { PATH: process.env["PATH"] ?? "" },
}).catch(() => ({ rc: 1 }));

describe("examples/etcd/berth.service", () => {
  const [program = "", name, ...argv] = setting("ExecStart").split(" ");
  const args = readArguments(up, argv);

  it("starts the agent with flags that it has, where the plugin looks for it", () => {
    assert.deepEqual([program, name, args.operands], ["/usr/local/bin/berthctl", up.name, []]);
    assert.equal(args.has("detach"), false); // systemd would take the end of the first process for the agent's
    assert.match(args.text("etcd") ?? "", /^https:/);
    const socket = args.text("socket") ?? "";
    assert.ok(SOCKET.includes(`"${socket}"`), `the plugin does not look for ${socket}`);
  });

  it("makes the folders that the agent writes to, and leaves what waits for it where it is", () => {
    const root = { uid: 0, username: "root", homedir: "/root" };
    const dataDir = args.text("data");
    assert.equal(dataDir, configOf({}, root).dataDir); // which berthctl down takes, too
    assert.equal(join("/var/lib", setting("StateDirectory")), dataDir);
    assert.equal(join("/run", setting("RuntimeDirectory")), dirname(args.text("socket") ?? ""));
    assert.equal(setting("RuntimeDirectoryPreserve"), "yes"); // the spool, and the mark of the boot
    assert.equal(settings.get("MemoryDenyWriteExecute"), undefined); // V8 writes code
    for (const folder of ["StateDirectoryMode", "RuntimeDirectoryMode"])
      assert.equal(setting(folder), "0700");
  });

  it(
    "has the right that looking at a namespace takes which a process names, and no other",
    needsRoot,
    async () => {
      assert.match(UNIT, /^# runtime names by a process \(\/proc\/PID\/ns\/net/m);
      const container = start("unshare", ["--net", "sleep", "600"], { env: ENV });
      try {
        const path = `/proc/${container.child.pid}/ns/net`;
        const own = await readlink("/proc/self/ns/net");
        await eventually(
          "it has a namespace of its own",
          async () => (await readlink(path)) !== own || undefined,
        );
        const rights = setting("CapabilityBoundingSet").replace("CAP_", "+").toLowerCase();
        assert.equal(await identityBy(`-all,${rights}`, path), await linuxHost.identity(path));
        assert.equal(await identityBy("-all", path), "undefined", "so that the right is needed");
        const named = await linuxHost.identity("/proc/self/ns/net");
        assert.equal(await identityBy("-all", "/proc/self/ns/net"), named, "not for its own");
      } finally {
        container.child.kill("SIGKILL");
        await container.ended;
      }
    },
  );

  it("is understood by systemd", { skip: analyze.rc === 0 ? false : "no systemd-analyze" }, async () => {
    const folder = mkdtempSync(join(tmpdir(), "berth-service-"));
    try {
      const stand = join(folder, "berthctl");
      writeFileSync(stand, "#!/bin/sh\n");
      chmodSync(stand, 0o755);
      const unit = join(folder, "berth.service");
      writeFileSync(unit, UNIT.replace(program, stand));
      const env = { PATH: process.env["PATH"] ?? "" };
      const { rc, stdout, stderr } = await run("systemd-analyze", ["verify", "--man=no", unit], { env });
      const about = stderr.split("\n").filter((line) => line.includes("berth"));
      assert.deepEqual([rc, stdout, about], [0, "", []]);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
