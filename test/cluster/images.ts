// SPDX-License-Identifier: Apache-2.0
import { createHash } from "node:crypto";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { run } from "../support/process.ts";
import { PATH } from "./machine.ts";
import type { StateFolder } from "./state.ts";

const BUSYBOX = ["/bin/busybox", "/usr/bin/busybox"];
export const PAUSE_IMAGE = "registry.k8s.io/pause:3.10";
/** What pods of tests and examples run: it sleeps until it is told to end. */
export const BUSYBOX_IMAGE = "docker.io/library/busybox:1.36";
const SLEEP = ["sh", "-c", "trap 'exit 0' TERM; sleep 2147483647 & wait"];
/** Programs under names of their own. */
const APPLETS = [
  "sh",
  "sleep",
  "ping",
  "ping6",
  "ip",
  "cat",
  "ls",
  "wget",
  "nc",
  "httpd",
  "hostname",
  "arping",
  "true",
];

/** A docker-archive with both images. Made once. */
export async function baseImages(state: StateFolder): Promise<string> {
  const archive = state.file("base-images.tar");
  if (existsSync(archive)) return archive;
  const folder = mkdtempSync(join(state.folder(), "image-"));
  const commands = { [PAUSE_IMAGE]: ["/bin/sleep", "2147483647"], [BUSYBOX_IMAGE]: SLEEP };
  try {
    await packImages(`${archive}.new`, folder, commands);
    copyFileSync(`${archive}.new`, archive);
    rmSync(`${archive}.new`);
    return archive;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** A docker-archive with the image that sleeps. `folder` is empty. */
export async function sleepingImage(archive: string, folder: string): Promise<void> {
  await packImages(archive, folder, { [BUSYBOX_IMAGE]: SLEEP });
}

/** Images by name, each with its command, that share their only layer: Debian's static busybox. */
async function packImages(
  archive: string,
  folder: string,
  commands: Readonly<Record<string, readonly string[]>>,
): Promise<void> {
  const busybox = BUSYBOX.find((file) => existsSync(file));
  if (busybox === undefined) throw new Error(`no ${BUSYBOX.join(" or ")} (Debian: busybox-static)`);
  await packLayer(folder, busybox);
  const diff = createHash("sha256")
    .update(readFileSync(join(folder, "layer.tar")))
    .digest("hex");
  const images = Object.entries(commands).map(([tag, cmd], i) => {
    const file = `config-${i}.json`;
    writeFileSync(join(folder, file), JSON.stringify(imageConfig(cmd, diff)));
    return { Config: file, RepoTags: [tag], Layers: ["layer.tar"] };
  });
  writeFileSync(join(folder, "manifest.json"), JSON.stringify(images));
  await tar(archive, folder, ["manifest.json", "layer.tar", ...images.map(({ Config }) => Config)]);
}

async function packLayer(folder: string, busybox: string): Promise<void> {
  const root = join(folder, "root");
  for (const name of ["bin", "tmp", "etc", "proc", "sys", "dev"])
    mkdirSync(join(root, name), { recursive: true });
  copyFileSync(busybox, join(root, "bin/busybox"));
  for (const applet of APPLETS) symlinkSync("busybox", join(root, "bin", applet));
  await tar(join(folder, "layer.tar"), root, ["."]);
}

function imageConfig(cmd: readonly string[], diff: string): Readonly<Record<string, unknown>> {
  const architecture = process.arch === "x64" ? "amd64" : process.arch;
  return {
    architecture,
    os: "linux",
    config: { Env: ["PATH=/bin"], Cmd: cmd },
    rootfs: { type: "layers", diff_ids: [`sha256:${diff}`] },
  };
}

async function tar(file: string, folder: string, names: readonly string[]): Promise<void> {
  const owner = ["--owner=0", "--group=0", "--numeric-owner"];
  const { rc, stderr } = await run("tar", [...owner, "-cf", file, "-C", folder, ...names], { env: { PATH } });
  if (rc !== 0) throw new Error(`tar: ${stderr.trim()}`);
}
