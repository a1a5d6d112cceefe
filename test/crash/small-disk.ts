// SPDX-License-Identifier: Apache-2.0
import { closeSync, cpSync, mkdtempSync, openSync, rmSync, statSync, truncateSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { run } from "../support/process.ts";

const ENV = { PATH: "/usr/sbin:/usr/bin:/sbin:/bin" };
const SIZE = "3m";
const PAGE = 4096;

async function mount(...args: readonly string[]): Promise<void> {
  const { rc, stderr } = await run("mount", args, { env: ENV });
  if (rc !== 0) throw new Error(`mount ${args.join(" ")}: ${stderr.trim()}`);
}

/** A small file system over a folder, with what was in the folder. Needs root. */
export class SmallDisk {
  readonly #folder: string;

  private constructor(folder: string) {
    this.#folder = folder;
  }

  /** Throws, with the reason, where `skipWithoutMount` gives one. */
  static async over(folder: string): Promise<SmallDisk> {
    const before = mkdtempSync(join(tmpdir(), "berth-disk-"));
    cpSync(folder, before, { recursive: true });
    await mount("-t", "tmpfs", "-o", `size=${SIZE},mode=700`, "berth-test", folder);
    cpSync(before, folder, { recursive: true });
    rmSync(before, { recursive: true, force: true });
    return new SmallDisk(folder);
  }

  /** Takes what room is left. */
  fill(): void {
    const file = openSync(join(this.#folder, "filler"), "a");
    try {
      for (;;) writeSync(file, Buffer.alloc(PAGE));
    } catch (error) {
      if (!(error instanceof Error && "code" in error && error.code === "ENOSPC")) throw error;
    } finally {
      closeSync(file);
    }
  }

  /** Takes what room is left, but for so many pages. */
  fillUpTo(pages: number): void {
    this.fill();
    const filler = join(this.#folder, "filler");
    truncateSync(filler, statSync(filler).size - pages * PAGE);
  }

  free(): void {
    rmSync(join(this.#folder, "filler"), { force: true });
  }

  /** Nobody may have a file of it open for writing. */
  async remount(how: "ro" | "rw"): Promise<void> {
    await mount("-o", `remount,${how}`, this.#folder);
  }

  async remove(): Promise<void> {
    await run("umount", [this.#folder], { env: ENV });
  }
}

/**
 * Options for a suite that mounts: it is skipped, with the reason, where that cannot be done. In CI as root it runs
 * all the same, to fail.
 */
export async function skipWithoutMount(): Promise<{ readonly skip: string | false }> {
  const why = await whyNoMount();
  const mustRun = process.env["CI"] === "true" && process.getuid?.() === 0;
  if (why === undefined || mustRun) return { skip: false };
  console.log(`skipped: ${why}`);
  return { skip: why };
}

async function whyNoMount(): Promise<string | undefined> {
  if (process.platform !== "linux" || process.getuid?.() !== 0) return "mounting needs Linux and root";
  const folder = mkdtempSync(join(tmpdir(), "berth-disk-"));
  try {
    await (await SmallDisk.over(folder)).remove();
    return undefined;
  } catch (error) {
    return `nothing can be mounted: ${error instanceof Error ? error.message : String(error)}`;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
