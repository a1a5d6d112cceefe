// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { globSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import manifest from "../../package.json" with { type: "json" };
import lock from "../../package-lock.json" with { type: "json" };
import { chartProgram } from "../support/chart-program.ts";
import { Archive, digestOf, makeImage } from "./archive.ts";
import { runContainer, whyNoContainer } from "./container.ts";

const BERTH = 65_532;
const MOST_BYTES = 200_000_000;

let image: Archive;
before(async () => {
  image = await Archive.open();
});
after(() => image.close());

const inside = (pattern: string) => globSync(pattern, { cwd: join(image.root, "opt/berth") });

describe("the image's archive", () => {
  it("is whole: its configuration knows its layers", () => {
    const { architecture, config, rootfs } = image.config;
    assert.deepEqual(rootfs.diff_ids, image.layerDigests);
    assert.deepEqual(image.manifest.RepoTags, [`berth:${manifest.version}`]);
    assert.equal(architecture, { x64: "amd64", arm64: "arm64" }[process.arch as string]);
    assert.equal(config.User, `${BERTH}:${BERTH}`);
    assert.equal(config.Labels["org.opencontainers.image.version"], manifest.version);
  });

  it("is run as the one that the Dockerfile makes", () => {
    const lines = readFileSync(join(import.meta.dirname, "../../Dockerfile"), "utf8").split("\n");
    const said = (word: string) =>
      lines.findLast((line) => line.startsWith(`${word} `))?.slice(word.length + 1);
    const { Cmd, Env, User, WorkingDir } = image.config.config;
    assert.deepEqual(
      [JSON.stringify(Cmd), Env.join(" "), User, WorkingDir],
      [said("CMD")?.replaceAll(", ", ","), said("ENV"), said("USER"), said("WORKDIR")],
    );
  });

  it("is the same, byte for byte, when it is made again by somebody with another umask", async () => {
    const again = join(image.folder, "again.tar");
    await makeImage(again, "077");
    assert.equal(digestOf(again), digestOf(image.file));
  });

  it(`is smaller than ${MOST_BYTES / 1e6} MB`, () => {
    assert.ok(statSync(image.file).size < MOST_BYTES, `${statSync(image.file).size} bytes`);
  });

  it("has what production needs, and neither tests nor what only development needs", () => {
    const packages = readdirSync(join(image.root, "opt/berth/node_modules"));
    const of = (names: object) => Object.keys(names).map((name) => name.split("/")[0] ?? "");
    assert.deepEqual(
      of(manifest.dependencies).filter((name) => !packages.includes(name)),
      [],
    );
    // What tests name may be needed by production as well: the lock says of each package whose it is.
    const locked = Object.entries(lock.packages).filter(([, entry]) => !("dev" in entry));
    const needed = new Set(locked.map(([path]) => path.split("/")[1] ?? ""));
    assert.deepEqual(
      packages.filter((name) => !name.startsWith(".") && !needed.has(name)),
      [],
    );
    assert.ok(of(manifest.devDependencies).some((name) => !needed.has(name)));
    assert.deepEqual(inside("**/*.{test,spec}.*"), []);
    assert.deepEqual(inside("**/{testing,test,tests,fuzz}/"), []);
    assert.deepEqual(inside("**/*.{ts,c,h,map,md}"), []);
    assert.ok(inside("{webhook,ipam-plugin/agent,cli}/main.js").length === 3);
  });

  it("has every program that the chart's pods run", () => {
    const templates = join(import.meta.dirname, "../../charts/berth/templates");
    const text = globSync("*.yaml", { cwd: templates }).map((file) =>
      readFileSync(join(templates, file), "utf8"),
    );
    const programs = [...text.join("\n").matchAll(/command: \[node,.* ([^ ]+\.js)\]/g)].map(
      ([, file = ""]) => file,
    );
    assert.deepEqual(programs.sort(), [
      ...["ipam-plugin/agent/main.js", "webhook/issuer/main.js", "webhook/main.js"],
    ]);
    assert.deepEqual(
      programs.filter((file) => inside(file).length === 0),
      [],
    );
  });

  it("has no shell, nothing that makes root of anybody, and nothing that others may write but /tmp", () => {
    const files = globSync("**/*", { cwd: image.root, withFileTypes: true }).filter(
      (file) => !file.isSymbolicLink(),
    );
    const odd = files.filter((file) => {
      const { mode } = statSync(join(file.parentPath, file.name));
      return (mode & 0o6000) !== 0 || (mode & 0o022) !== 0;
    });
    assert.deepEqual(
      odd.map(({ parentPath, name }) => join(parentPath, name).slice(image.root.length)).sort(),
      ["/tmp", "/var/tmp"],
    );
    assert.deepEqual(
      files.filter(({ name }) => /^(ba|da|a)?sh$|^busybox$/.test(name)),
      [],
    );
    assert.ok(readFileSync(join(image.root, "etc/passwd"), "utf8").includes(`:${BERTH}:${BERTH}:`));
  });
});

describe("the image's programs, without rights, on a root that is read-only", async () => {
  const why = await whyNoContainer();
  const options = { skip: why ?? false };
  const node = (uid: number, ...args: readonly string[]) =>
    runContainer(image, { uid, args: ["node", ...args] });

  it("say in one line what they were not told", options, async () => {
    const [, ...webhook] = image.config.config.Cmd;
    const agent = chartProgram("agent");
    const said = [await node(BERTH, ...webhook), await node(0, ...agent.flags, agent.script)];
    assert.deepEqual(
      said.map(({ rc, stdout, stderr }) => ({ rc, stdout, stderr })),
      [
        {
          rc: 1,
          stdout: "",
          stderr: "berth-webhook: BERTH_NAMESPACE is not set; give it the namespace that berth runs in\n",
        },
        {
          rc: 1,
          stdout: "",
          stderr: "berth-agent: BERTH_NODE_NAME is not set; give it the name of this node\n",
        },
      ],
    );
  });

  it("are those of this version, as users of the image's own", options, async () => {
    const about = "console.log(process.version, process.getuid(), require('node:os').userInfo().username)";
    const said = [
      await node(BERTH, "cli/main.js", "version"),
      await node(BERTH, "-e", about),
      await node(0, "-e", about),
    ];
    assert.deepEqual(
      said.map(({ stdout, stderr }) => stdout + stderr),
      [
        `berthctl ${manifest.version}\n`,
        `${process.version} ${BERTH} berth\n`,
        `${process.version} 0 root\n`,
      ],
    );
  });

  it("cannot write where they are", options, async () => {
    const { rc, stderr } = await node(
      0,
      "-e",
      "require('node:fs').writeFileSync('/opt/berth/bin/berth', '')",
    );
    assert.equal(rc, 1);
    assert.match(stderr, /EROFS/);
  });

  it("include the CNI plugin, which needs none of the rest", options, async () => {
    const { rc, stdout } = await runContainer(image, {
      uid: 0,
      args: ["/opt/berth/bin/berth"],
      env: { CNI_COMMAND: "VERSION" },
    });
    assert.equal(rc, 0);
    assert.match(stdout, /"supportedVersions":\["0\.1\.0",/);
    assert.ok(!readFileSync(join(image.root, "opt/berth/bin/berth")).includes("ld-linux"));
  });
});
