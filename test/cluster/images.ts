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
  const images = { [PAUSE_IMAGE]: { Cmd: ["/bin/sleep", "2147483647"] }, [BUSYBOX_IMAGE]: { Cmd: SLEEP } };
  try {
    await packImages(`${archive}.new`, folder, images);
    copyFileSync(`${archive}.new`, archive);
    rmSync(`${archive}.new`);
    return archive;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** A docker-archive with the image that sleeps. `folder` is empty. */
export async function sleepingImage(archive: string, folder: string): Promise<void> {
  await packImages(archive, folder, { [BUSYBOX_IMAGE]: { Cmd: SLEEP } });
}

/** What an image starts, in the words of its configuration. */
export interface ImageStart {
  readonly Entrypoint?: readonly string[];
  readonly Cmd: readonly string[];
}

/** Images by name that share their only layer: Debian's static busybox, and what `add` puts into the layer's root. */
export async function packImages(
  archive: string,
  folder: string,
  starts: Readonly<Record<string, ImageStart>>,
  add: (root: string) => Promise<void> = async () => {},
): Promise<void> {
  const busybox = BUSYBOX.find((file) => existsSync(file));
  if (busybox === undefined) throw new Error(`no ${BUSYBOX.join(" or ")} (Debian: busybox-static)`);
  await packLayer(folder, busybox, add);
  const diff = createHash("sha256")
    .update(readFileSync(join(folder, "layer.tar")))
    .digest("hex");
  const images = Object.entries(starts).map(([tag, start], i) => {
    const file = `config-${i}.json`;
    writeFileSync(join(folder, file), JSON.stringify(imageConfig(start, diff)));
    return { Config: file, RepoTags: [tag], Layers: ["layer.tar"] };
  });
  writeFileSync(join(folder, "manifest.json"), JSON.stringify(images));
  await tar(archive, folder, ["manifest.json", "layer.tar", ...images.map(({ Config }) => Config)]);
}

async function packLayer(
  folder: string,
  busybox: string,
  add: (root: string) => Promise<void>,
): Promise<void> {
  const root = join(folder, "root");
  for (const name of ["bin", "tmp", "etc", "proc", "sys", "dev"])
    mkdirSync(join(root, name), { recursive: true });
  copyFileSync(busybox, join(root, "bin/busybox"));
  for (const applet of APPLETS) symlinkSync("busybox", join(root, "bin", applet));
  await add(root);
  await tar(join(folder, "layer.tar"), root, ["."]);
}

function imageConfig(start: ImageStart, diff: string): Readonly<Record<string, unknown>> {
  const architecture = process.arch === "x64" ? "amd64" : process.arch;
  return {
    architecture,
    os: "linux",
    config: { Env: ["PATH=/bin"], ...start },
    rootfs: { type: "layers", diff_ids: [`sha256:${diff}`] },
  };
}

async function tar(file: string, folder: string, names: readonly string[]): Promise<void> {
  const owner = ["--owner=0", "--group=0", "--numeric-owner"];
  const { rc, stderr } = await run("tar", [...owner, "-cf", file, "-C", folder, ...names], { env: { PATH } });
  if (rc !== 0) throw new Error(`tar: ${stderr.trim()}`);
}
