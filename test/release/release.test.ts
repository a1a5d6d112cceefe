// SPDX-License-Identifier: Apache-2.0
// What `make release` leaves, used as somebody uses it who has these files and no checkout.
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it, type TestContext } from "node:test";
import manifest from "../../package.json" with { type: "json" };
import { findPart } from "../api/binaries.ts";
import { type Ended, run, start } from "../support/process.ts";
import { isFull } from "../support/runs.ts";
import { type Machine, whyNotRootFolder, withoutCheckout } from "./machine.ts";

const ROOT = join(import.meta.dirname, "../..");
const VERSION = manifest.version;
const HERE = process.arch === "x64" ? "amd64" : "arm64";
const OTHER = HERE === "amd64" ? "arm64" : "amd64";
const PATH = "/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/bin";

const folder = mkdtempSync(join(tmpdir(), "berth-release-"));
const out = join(folder, "out");
const fileOf = (name: string) => join(out, name);
const inShort = isFull ? false : "make soak and make proof run it";
/** In short the other one is not made either. */
const ARCHITECTURES = isFull ? ["amd64", "arm64"] : [HERE];
/** Empty, or why nothing could be made for the other architecture. */
let missing = "";

/** With what tools need to reach their registries. */
async function make(architectures: readonly string[]): Promise<Ended> {
  const { NODE_COMPILE_CACHE: _, ...env } = process.env as Record<string, string>;
  const more = { PATH: `${env["PATH"] ?? ""}:${PATH}`, RELEASE_OUT: out, RELEASE_UNCLEAN: "1" };
  const named = {
    RELEASE_BUILDER: "https://example.com/builder",
    RELEASE_SOURCE: "git+https://example.com/berth",
  };
  return await run("bash", [join(ROOT, "scripts/release.sh")], {
    env: { ...env, ...more, ...named, RELEASE_ARCHITECTURES: architectures.join(" ") },
  });
}

before(async () => {
  const all = await make(ARCHITECTURES);
  if (all.rc === 0) return;
  assert.ok(ARCHITECTURES.length > 1, all.stderr);
  missing = all.stderr.trim().split("\n").at(-1) ?? "";
  const one = await make([HERE]);
  assert.equal(one.rc, 0, one.stderr);
});
after(() => rmSync(folder, { recursive: true, force: true }));

/** Node.js under emulation takes twenty times its time. */
async function emulatorOrSkip(test: TestContext): Promise<string | undefined> {
  if (skipsOther(test)) return undefined;
  const emulator = `qemu-${OTHER === "arm64" ? "aarch64" : "x86_64"}`;
  const { rc } = await run("sh", ["-c", `command -v ${emulator}`], { env: { PATH } });
  if (rc === 0) return emulator;
  test.skip(`no ${emulator}: apt-get install qemu-user`);
  return undefined;
}

function skipsOther(test: TestContext): boolean {
  if (missing !== "") test.skip(`nothing could be made for ${OTHER} here: ${missing}`);
  return missing !== "";
}

describe("the files of a release", () => {
  it("are all in SHA256SUMS, with their digests, and in the provenance", async () => {
    const { rc, stderr } = await run("bash", ["-c", `cd '${out}' && sha256sum --check --strict SHA256SUMS`], {
      env: { PATH },
    });
    assert.equal(rc, 0, stderr);
    const lines = readFileSync(fileOf("SHA256SUMS"), "utf8").trim().split("\n");
    const summed = lines.map((line) => line.slice(66));
    assert.deepEqual(
      summed.sort(),
      readdirSync(out)
        .filter((name) => name !== "SHA256SUMS")
        .sort(),
    );
    const { subject, predicate } = JSON.parse(readFileSync(fileOf("provenance.json"), "utf8"));
    assert.deepEqual(
      subject.map(({ name }: { name: string }) => name).sort(),
      summed.filter((name) => name !== "provenance.json"),
    );
    const [{ uri, digest }] = predicate.buildDefinition.resolvedDependencies;
    assert.equal(uri, `git+https://example.com/berth@${digest.gitCommit}`);
    assert.equal(predicate.runDetails.builder.id, "https://example.com/builder");
  });

  it("are there for amd64 and arm64, each of its own machine", async (t) => {
    if (skipsOther(t)) return;
    for (const arch of ARCHITECTURES) {
      const machine = arch === "amd64" ? "Advanced Micro Devices X86-64" : "AArch64";
      for (const name of [`berthctl-${VERSION}-linux-${arch}`, `berth-cni-${VERSION}-linux-${arch}`]) {
        const { stdout } = await run("readelf", ["--file-header", fileOf(name)], { env: { PATH } });
        assert.match(stdout, new RegExp(`Machine: +${machine}`), name);
      }
      const image = ["-xOf", fileOf(`berth-image-${VERSION}-linux-${arch}.tar`), "config.json"];
      const { stdout } = await run("tar", image, { env: { PATH } });
      assert.equal(JSON.parse(stdout).architecture, arch);
      const bill = readFileSync(fileOf(`berth-${VERSION}-linux-${arch}.cdx.json`), "utf8");
      assert.match(bill, new RegExp(`pkg:deb/debian/libc6@[^"]*arch=${arch}"`));
      assert.match(bill, new RegExp(`pkg:npm/node-linux-${arch === "amd64" ? "x64" : arch}@`));
    }
  });
});

describe("the README's section Install", () => {
  it("can be pasted in the folder of a release", async () => {
    const [, section = ""] = readFileSync(join(ROOT, "README.md"), "utf8").split("\n## Install\n");
    const block = /\n```\n(.*?)\n```\n/s.exec(section)?.[1] ?? "";
    assert.match(block, /sha256sum/);
    const [pasted, bin] = [join(folder, "pasted"), join(folder, "bin")];
    const here = block.replaceAll("/usr/local/bin", bin).replaceAll("linux-amd64", `linux-${HERE}`);
    const script = `set -e\nmkdir '${bin}'\ncp -al '${out}' '${pasted}'\ncd '${pasted}'\n${here}\n`;
    const { rc, stderr } = await run("bash", ["-c", script], { env: { PATH } });
    assert.equal(rc, 0, stderr);
    const { stdout } = await run(join(bin, "berthctl"), ["version"], { env: { HOME: folder } });
    assert.equal(stdout, `berthctl ${VERSION}\n`);
    assert.deepEqual(readdirSync(bin), ["berthctl", "kubectl-berth"]);
    assert.ok(readdirSync(join(pasted, "examples")).includes("pools.yaml"));
  });
});

describe("the released berthctl", () => {
  it("runs a stack where there is neither a checkout nor Node.js", async (t) => {
    const why = await whyNotRootFolder();
    if (why !== "") return t.skip(why);
    const machine = await withoutCheckout(join(folder, "machine"), out, VERSION, HERE);
    await showsStack(machine);
  });

  it("of the other architecture does the same, under emulation", { skip: inShort }, async (t) => {
    const emulator = await emulatorOrSkip(t);
    if (emulator === undefined) return;
    const sysroot = join(ROOT, "build/cross", OTHER, "sysroot");
    const berthctl = fileOf(`berthctl-${VERSION}-linux-${OTHER}`);
    await showsStack({
      dataDir: join(folder, "emulated"),
      examples: join(ROOT, "examples"),
      command: (args) => [emulator, "-L", sysroot, berthctl, ...args],
    });
  });

  it("is kubectl's plugin when it is called so", async () => {
    const plugin = join(folder, "kubectl-berth");
    await run("ln", ["-s", fileOf(`berthctl-${VERSION}-linux-${HERE}`), plugin], { env: { PATH } });
    const { rc, stderr } = await run(plugin, ["get", "claims"], { env: { HOME: folder } });
    assert.equal(rc, 2);
    assert.match(stderr, /kubeconfig/);
  });
});

/** up, apply, get: each as the reader of the README types them. */
async function showsStack({ command, dataDir, examples }: Machine): Promise<void> {
  const berthctl = async (...args: readonly string[]) => {
    const [program = "", ...rest] = command([...args, "--data", dataDir]);
    return await run(program, rest, { env: { PATH } });
  };
  const [program = "", ...rest] = command(["up", "--data", dataDir, "--pools", join(examples, "pools.yaml")]);
  const stack = start(program, rest, { env: { PATH } });
  try {
    const applied = await berthctl("apply", "-f", join(examples, "pods.yaml"), "--wait", "120s");
    assert.equal(applied.rc, 0, applied.stderr);
    assert.match(applied.stdout, /^pod\/shop\/licence created +10\.20\.0\.51$/m);
    const refused = await berthctl("apply", "-f", join(examples, "refused", "conflict.yaml"));
    assert.match(refused.stderr, /is held by shop\/licence/);
    const { stdout } = await berthctl("get", "claims", "-A");
    assert.match(stdout, /^shop +licence +10\.20\.0\.51 /m);
  } finally {
    stack.child.kill();
  }
  const { rc, stderr } = await stack.ended;
  assert.equal(rc, 0, stderr);
}

describe("the released images", () => {
  it("of the other architecture load all that the agent and the webhook are made of, under emulation", {
    skip: inShort,
  }, async (t) => {
    const emulator = await emulatorOrSkip(t);
    if (emulator === undefined) return;
    const root = join(folder, "image-root");
    mkdirSync(root);
    for (const layer of ["system", "berth"]) {
      const unpack = `tar -xOf '${fileOf(`berth-image-${VERSION}-linux-${OTHER}.tar`)}' ${layer}/layer.tar | tar -xf - -C '${root}'`;
      assert.equal((await run("bash", ["-c", unpack], { env: { PATH } })).rc, 0);
    }
    for (const main of ["ipam-plugin/agent/main.js", "webhook/main.js"]) {
      const args = ["-L", root, join(root, "usr/local/bin/node"), join(root, "opt/berth", main)];
      const { rc: status, stderr } = await run(emulator, args, { env: { PATH } });
      assert.equal(status, 1, stderr);
      assert.match(stderr, /BERTH_(NODE_NAME|NAMESPACE)/);
    }
    const plugin = join(root, "opt/berth/bin/berth");
    const { stdout } = await run(emulator, [plugin], { env: { PATH, CNI_COMMAND: "VERSION" } });
    assert.ok(JSON.parse(stdout).supportedVersions.includes("1.1.0"));
  });
});

describe("the released chart", () => {
  it("is linted and rendered by helm", async (t) => {
    const helm = findPart("helm", process.env);
    if (helm === undefined) return t.skip("no helm: make control-plane");
    const chart = fileOf(`berth-chart-${VERSION}.tgz`);
    const env = { PATH, HOME: folder };
    const lint = await run(helm, ["lint", "--strict", chart], { env });
    assert.equal(lint.rc, 0, lint.stdout + lint.stderr);
    const { rc, stdout, stderr } = await run(helm, ["template", "berth", chart, "-n", "berth-system"], {
      env,
    });
    assert.equal(rc, 0, stderr);
    assert.match(stdout, /kind: DaemonSet/);
    assert.match(stdout, new RegExp(`image: "?berth:${VERSION}`));
  });
});
