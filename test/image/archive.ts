// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildPlugin } from "../cni/plugin.ts";
import { eventually } from "../support/eventually.ts";
import { run } from "../support/process.ts";

const ROOT = join(import.meta.dirname, "../..");
const PATH = "/usr/sbin:/usr/bin:/sbin:/bin";

/** What an engine reads of an image's configuration. */
export interface ImageConfig {
  readonly architecture: string;
  readonly config: {
    readonly User: string;
    readonly Env: readonly string[];
    readonly WorkingDir: string;
    readonly Cmd: readonly string[];
    readonly Labels: Readonly<Record<string, string>>;
  };
  readonly rootfs: { readonly diff_ids: readonly string[] };
}

/** Where the files of a run find the image that one of them made (image-folder.ts); absent where a file is run by itself. */
export const IMAGE_FOLDER_VARIABLE = "BERTH_TEST_IMAGE";
const MADE_MS = 600_000;

/** An image that scripts/image.sh has made, unpacked; whoever opens or makes it closes it. */
export class Archive {
  readonly folder = mkdtempSync(join(tmpdir(), "berth-image-"));

  get file(): string {
    return join(this.folder, "image.tar");
  }

  /** Its root file system. */
  get root(): string {
    return join(this.folder, "root");
  }

  /** One that is only read: made once for all files of a run. What is put beside its files is this file's own. */
  static async open(): Promise<Archive> {
    const shared = process.env[IMAGE_FOLDER_VARIABLE];
    if (shared === undefined || shared === "") return await Archive.make();
    await madeIn(shared);
    const archive = new Archive();
    await must("cp", "-al", `${join(shared, "image")}/.`, archive.folder);
    return archive;
  }

  static async make(): Promise<Archive> {
    const archive = new Archive();
    try {
      await buildPlugin();
      await makeImage(archive.file);
      await archive.#unpack();
      return archive;
    } catch (error) {
      archive.close();
      throw error;
    }
  }

  get manifest(): { readonly RepoTags: readonly string[]; readonly Layers: readonly string[] } {
    return JSON.parse(readFileSync(join(this.folder, "image/manifest.json"), "utf8"))[0];
  }

  get config(): ImageConfig {
    return JSON.parse(readFileSync(join(this.folder, "image/config.json"), "utf8"));
  }

  /** sha256 of each layer. */
  get layerDigests(): readonly string[] {
    return this.manifest.Layers.map((layer) => `sha256:${digestOf(join(this.folder, "image", layer))}`);
  }

  close(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }

  async #unpack(): Promise<void> {
    const image = join(this.folder, "image");
    for (const folder of [image, this.root]) mkdirSync(folder);
    await must("tar", "-C", image, "-xf", this.file);
    for (const layer of this.manifest.Layers) await must("tar", "-C", this.root, "-xpf", join(image, layer));
  }
}

/** Makes the image that files share, or waits until another one has. */
async function madeIn(shared: string): Promise<void> {
  const [image, failed] = [join(shared, "image"), join(shared, "failed")];
  try {
    mkdirSync(join(shared, "begun"));
  } catch {
    const isOver = () => existsSync(image) || existsSync(failed) || undefined;
    await eventually("another file of tests makes the image", isOver, MADE_MS);
    assert.ok(existsSync(image), existsSync(failed) ? readFileSync(failed, "utf8") : "");
    return;
  }
  try {
    renameSync((await Archive.make()).folder, image);
  } catch (error) {
    writeFileSync(failed, String(error));
    throw error;
  }
}

/** Runs scripts/image.sh, as a user with that umask. */
export async function makeImage(out: string, umask = "022"): Promise<void> {
  const env = { PATH, IMAGE_OUT: out };
  const script = `umask ${umask}; exec bash ${join(ROOT, "scripts/image.sh")}`;
  const { rc, stderr } = await run("bash", ["-c", script], { env });
  assert.equal(rc, 0, stderr);
}

export function digestOf(file: string): string {
  return createHash("sha256").update(readFileSync(file)).digest("hex");
}

async function must(command: string, ...args: readonly string[]): Promise<void> {
  const { rc, stderr } = await run(command, args, { env: { PATH } });
  assert.equal(rc, 0, stderr);
}
