// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { chmod, chown, readdir, symlink, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { describe, it } from "node:test";
import { promisify } from "node:util";
import { COMMANDS, run } from "./run.ts";
import { readArguments } from "./terminal/arguments.ts";
import { NO_CLUSTER } from "./terminal/target.ts";
import { Folder } from "./testing/folder.ts";

describe("help", () => {
  it("lists every command", async (t) => {
    const folder = await Folder.empty(t);
    const { code, stdout, stderr } = await folder.call("--help");
    assert.equal(code, 0);
    assert.equal(stderr, "");
    for (const { name, summary } of COMMANDS) {
      assert.match(stdout, new RegExp(`^ {2}${name} +${summary.replaceAll(/[.*+?()|]/g, "\\$&")}$`, "m"));
    }
    assert.match(stdout, /^Exit codes: 0 done, 1 refused or defects found, 2 called wrongly/m);
  });

  it("is the same by any name", async (t) => {
    const folder = await Folder.empty(t);
    const { stdout } = await folder.call("--help");
    for (const argv of [["-h"], ["help"]])
      assert.deepEqual(await folder.call(...argv), { code: 0, stdout, stderr: "" });
    const { stdout: ofGet } = await folder.call("get", "--help");
    assert.deepEqual(await folder.call("help", "get"), { code: 0, stdout: ofGet, stderr: "" });
  });

  it("is what an empty call gets, as a misuse", async (t) => {
    const folder = await Folder.empty(t);
    const { code, stdout } = await folder.call();
    assert.equal(code, 2);
    assert.match(stdout, /^Usage: berthctl COMMAND/m);
  });

  for (const command of COMMANDS) {
    it(`of ${command.name} shows usage, every flag and an example`, async (t) => {
      const folder = await Folder.empty(t);
      const { code, stdout } = await folder.call(command.name, "--help");
      assert.equal(code, 0);
      assert.ok(stdout.includes(`Usage: berthctl ${command.usage[0]}\n`), stdout);
      for (const flag of Object.keys(command.flags)) assert.ok(stdout.includes(` --${flag}`), stdout);
      for (const example of command.examples) assert.ok(stdout.includes(`  ${example}\n`), stdout);
      assert.ok(
        stdout.split("\n").every((line) => line.trimEnd() === line),
        "no blanks at the ends of lines",
      );
    });

    it(`of ${command.name} has examples that can be read`, () => {
      assert.ok(command.examples.length > 0);
      for (const example of command.examples) {
        const [tool, name, ...rest] = example.split(" ");
        assert.deepEqual([tool, name], ["berthctl", command.name]);
        assert.doesNotThrow(() => readArguments(command, rest), example);
      }
    });
  }
});

describe("a command that only reads", () => {
  for (const [argv, onlyReads] of [
    [["get", "claims"], true],
    [["who", "10.20.0.51"], true],
    [["check"], true],
    [["explain", "10.20.0.51"], true],
    [["version"], true],
    [["release", "shop/mysql-0"], false],
    [["reserve", "shop/vip", "--pool", "db"], false],
    [["delete", "pod/shop/web"], false],
    [["down"], false],
  ] as const) {
    it(`is ${onlyReads ? "" : "not "}${argv[0]}, which ${onlyReads ? "says so" : "says nothing"} before it begins`, async (t) => {
      const folder = await Folder.empty(t);
      let said = 0;
      await run(argv, { ...folder.context(), waitMs: 0, onlyReads: () => said++ });
      assert.equal(said, onlyReads ? 1 : 0);
    });
  }
});

describe("misuse", () => {
  it("lists, as kubectl berth, the commands that this has", async (t) => {
    const folder = await Folder.empty(t);
    const out = { stdout: "", stderr: "" };
    const setting = { ...NO_CLUSTER, kubectl: true, dataNamed: false };
    assert.equal(await run(["frobnicate"], { ...folder.context(out), setting }), 2);
    assert.match(out.stderr, /^Error: there is no command "frobnicate"; there are get, who, .*, version\n$/);
    assert.doesNotMatch(out.stderr, /\b(?:up|down|apply|delete|import)\b/);
  });

  for (const [argv, message] of [
    [["aply"], 'there is no command "aply"; did you mean apply?'],
    [
      ["frobnicate"],
      'there is no command "frobnicate"; there are up, down, apply, delete, get, who, explain, check, release, reserve, adopt, fence, import, version',
    ],
    [
      ["-n", "shop", "get", "claims"],
      "-n stands behind the command, as in: berthctl COMMAND -n; there are up, down, apply, delete, get, who, explain, check, release, reserve, adopt, fence, import, version",
    ],
    [["get"], "say what to list: pools, claims, reservations, blocks, attachments, pods, workloads, hosts"],
    [["get", "clams"], '"clams" cannot be listed; did you mean claims?'],
    [["get", "claims", "--ouput", "json"], "get has no flag --ouput; did you mean --output?"],
    [["get", "claims", "-o", "xml"], '-o "xml" is none of table, wide, json, yaml'],
    [["get", "claims", "-n", "shop", "-A"], "give -n or -A, not both"],
    [["get", "claims", "a", "b"], '"b" is one argument too many'],
    [["who"], "ADDRESS is missing"],
    [
      ["--data=x"],
      "name a command behind --data; there are up, down, apply, delete, get, who, explain, check, release, reserve, adopt, fence, import, version",
    ],
    [
      ["reserve", "shop/vip", "--address", "10.20.0.300"],
      '--address "10.20.0.300" is not an IP address; write 10.20.0.51 or fd00:20::51, no prefix',
    ],
    [
      ["who", "mysql"],
      '"mysql" is neither an IP nor a MAC address; write 10.20.0.51 or fd00:20::51, no prefix, or 02:00:00:00:00:51; what a pod or claim has: berthctl explain pod/NAME or claim/NAME',
    ],
    [["get", "sts"], '"sts" cannot be listed; did you mean workloads?'],
    [["get", "pools,claims"], '"pools,claims" are several; list one kind at a time'],
    [["get", "claims", ""], "the name is empty; leave it out to list all"],
    [
      ["who", "10.20.0.51/24"],
      '"10.20.0.51/24" is neither an IP nor a MAC address; write 10.20.0.51 or fd00:20::51, no prefix, or 02:00:00:00:00:51',
    ],
    [["apply"], "-f is missing: -f FILE, -f DIR, or -f - for standard input"],
    [["delete"], "say what to delete, either with -f FILE or as KIND [NAMESPACE/]NAME"],
    [["release"], "NAMESPACE/NAME or ADDRESS is missing"],
    [["reserve", "shop/vip"], "give either --address or --pool"],
    [["reserve", "shop/vip", "--address", "10.20.0.60", "--pool", "db"], "give either --address or --pool"],
    [
      ["reserve", "shop/vip", "--address", "fd00:20::80,10.20.0.80/24"],
      '--address "10.20.0.80/24" is not an IP address; write 10.20.0.51 or fd00:20::51, no prefix',
    ],
    [
      ["apply", "examples/pods.yaml"],
      '"examples/pods.yaml" is one argument too many; name files with -f: apply -f examples/pods.yaml',
    ],
    [
      ["reserve", "shop/vip", "--address", "10.20.0.60,10.30.0.60@"],
      '--address: "10.30.0.60@" names no interface of up to 15 characters; write 10.30.0.51@net1',
    ],
    [["reserve", "a/b/vip", "--pool", "db"], '"a/b/vip" is not of the form [NAMESPACE/]NAME'],
    [["up", "--webhook-port", "70000"], '--webhook-port "70000" is no port: 0 to 65535'],
    [["up", "--log-level", "loud"], '--log-level "loud" is none of debug, info, warn, error, silent'],
    [
      ["up", "--node", "Bad Node"],
      '--node "Bad Node" is no name of a node: small letters, digits, - and ., such as node-a',
    ],
    [["up", "--wait", "5s"], "--wait is for --detach: up itself says ready when it serves, and then stays"],
    [
      ["get", "claims", "--wait", "5s", "--kubeconfig", "x"],
      "--wait is for the stack of a data folder; in a cluster nothing has to start first",
    ],
    [["up", "--socket", "/tmp"], '--socket "/tmp" is a folder; name a file in it, such as /tmp/agent.sock'],
    [
      ["up", "--socket", "x/"],
      `--socket "x/" is a folder; name a file in it, such as ${resolve("x")}/agent.sock`,
    ],
    ...[["get", "pools"], ["apply", "-f", "x.yaml"], ["up"]].map(
      (command) =>
        [
          [...command, "--data", "/etc/passwd"],
          "/etc/passwd is not a folder; name a stack's data folder with --data or BERTH_DATA",
        ] as const,
    ),
    ...[
      ["release", "shop/a"],
      ["reserve", "shop/a", "--pool", "db"],
      ["delete", "pod/shop/a"],
      ["delete", "pod", "shop/a"],
    ].map(
      (command) =>
        [[...command, "-n", "bank"], "give the namespace once: in front of the name, or with -n"] as const,
    ),
    [["check", "now"], '"now" is one argument too many'],
    [["version", "--data", "x"], "version has no flag --data; it has --help"],
  ] as const) {
    it(`of ${argv.join(" ")} is told in a line and ends with 2`, async (t) => {
      const folder = await Folder.empty(t);
      assert.deepEqual(await folder.call(...argv), { code: 2, stdout: "", stderr: `Error: ${message}\n` });
    });
  }
});

describe("without a stack", () => {
  for (const argv of [
    ["apply", "-f", "-"],
    ["delete", "pod/shop/web"],
    ["reserve", "shop/vip", "--pool", "db"],
  ]) {
    it(`${argv[0]} waits for one, and says how to start it`, async (t) => {
      const folder = await Folder.of(t, {});
      const pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\n";
      const { dataDir } = folder;
      assert.deepEqual(await folder.callWith(pod, ...argv), {
        code: 2,
        stdout: "",
        stderr: `no berth stack is ready on ${dataDir}; waiting for one up to 30s (--wait)\nError: no berth stack runs on ${dataDir}; start one with: berthctl up --data ${dataDir}\n`,
      });
    });
  }

  for (const argv of [["get", "pools"], ["who", "10.20.0.51"], ["check"], ["release", "shop/web"]]) {
    it(`${argv[0]} finds nothing in an empty folder and leaves it empty`, async (t) => {
      const folder = await Folder.empty(t);
      const { dataDir } = folder;
      assert.deepEqual(await folder.call(...argv, "--data", dataDir), {
        code: 2,
        stdout: "",
        stderr: `nothing is there on ${dataDir}; waiting for it up to 5s (--wait)\nError: there is nothing in ${dataDir} yet; start a stack with: berthctl up --data ${dataDir}\n`,
      });
      assert.deepEqual(await readdir(dataDir), []);
    });
  }

  it("waits as long as it is told to in an empty folder, and 5 s if nobody says", async (t) => {
    const folder = await Folder.empty(t);
    const { stderr } = await folder.call("get", "pools", "--data", folder.dataDir, "--wait", "7s");
    assert.match(stderr, /^nothing is there on .*; waiting for it up to 7s \(--wait\)\n/);
  });
});

it("prints its version", async (t) => {
  const folder = await Folder.empty(t);
  const { code, stdout } = await folder.call("version");
  assert.equal(code, 0);
  assert.match(stdout, /^berthctl \d+\.\d+\.\d+\n$/);
  assert.deepEqual(await folder.call("--version"), { code, stdout, stderr: "" });
});

describe("a data folder that is not this user's alone", () => {
  const NOBODY = 65_534;
  const CALLS = [
    ["up", "--detach"],
    ["down"],
    ["apply", "-f", "-"],
    ["delete", "pool/db"],
    ["get", "pools"],
    ["who", "10.20.0.7"],
    ["explain", "10.20.0.7"],
    ["check"],
    ["release", "shop/web"],
  ];
  /** A stack that would be believed: a process of this user's, which has `up` among its arguments. */
  const stackOf = (pid: number) =>
    JSON.stringify({ pid, webhook: "https://127.0.0.1:1", ca: "ca", reviews: "/none", socket: "/none" });

  it("is refused by every command before anything in it is read", async (t) => {
    const folder = await Folder.empty(t);
    await writeFile(join(folder.dataDir, "stack.json"), "{");
    await chmod(folder.dataDir, 0o757);
    for (const argv of CALLS) {
      const { code, stderr } = await folder.call(...argv);
      assert.equal(code, 2, argv.join(" "));
      assert.match(stderr, /^Error: \S+ is not safe to keep data in: others may write to it; .*chmod go-w /);
    }
    await chmod(folder.dataDir, 0o700);
    if (process.getuid?.() !== 0) return;
    await chown(folder.dataDir, NOBODY, NOBODY);
    for (const argv of CALLS)
      assert.match((await folder.call(...argv)).stderr, /it belongs to the user with the id 65534/);
  });

  it("has no stack to speak to, or to end, in a file of somebody else's", async (t) => {
    const folder = await Folder.empty(t);
    const path = join(folder.dataDir, "stack.json");
    const said = async (...argv: string[]) => (await folder.call(...argv)).stderr;
    await writeFile(path, stackOf(process.pid));
    await chmod(path, 0o666);
    for (const argv of [["down"], ["get", "pools"]])
      assert.match(await said(...argv), /stack\.json cannot be read \(others may write to it\)/);
    await chmod(path, 0o600);
    if (process.getuid?.() !== 0) return;
    await chown(path, NOBODY, NOBODY);
    assert.match(
      await said("down"),
      /stack\.json cannot be read \(it belongs to the user with the id 65534\)/,
    );
  });

  it("is not waited for where a pipe is in the place of a file, and no link is followed", {
    timeout: 30_000,
  }, async (t) => {
    const folder = await Folder.empty(t);
    const path = join(folder.dataDir, "stack.json");
    await promisify(execFile)("mkfifo", [path]);
    await promisify(execFile)("mkfifo", [join(folder.dataDir, "starting.json")]);
    assert.match((await folder.call("down")).stderr, /stack\.json cannot be read \(it is no file\)/);
    const other = await Folder.empty(t);
    await symlink(path, join(other.dataDir, "stack.json"));
    assert.match((await other.call("down")).stderr, /stack\.json cannot be read \(ELOOP/);
  });
});
