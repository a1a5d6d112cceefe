// SPDX-License-Identifier: Apache-2.0
import { execFile } from "node:child_process";
import { mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);
const ROOT = resolve(import.meta.dirname, "../..");

/**
 * The last released version, which must work beside this one. To be moved at each release, to the commit that was
 * released, in the first commit after it. Until there is a release: the first commit that keeps what it does not know.
 * BERTH_BASELINE: another one, for a run.
 */
export const BASELINE = process.env["BERTH_BASELINE"] ?? "bea8c8d";

/** The last commit that knows of blocks, and not of single addresses of them (ADR 0025). No release was like it. */
export const BEFORE_SINGLES = "a96451c";

/** A tree of that version, without tests being run in it; `why` when this clone does not have it. */
export type Baseline = { readonly root: string; remove(): Promise<void> } | { readonly why: string };

export async function checkOutBaseline(commit = BASELINE): Promise<Baseline> {
  const folder = await mkdtemp(join(tmpdir(), "berth-baseline-"));
  const remove = () => rm(folder, { recursive: true, force: true });
  try {
    const archive = join(folder, "tree.tar");
    await run("git", ["-C", ROOT, "archive", "--format=tar", `--output=${archive}`, commit]);
    await run("tar", ["-xf", archive, "-C", folder]);
    await symlink(join(ROOT, "node_modules"), join(folder, "node_modules"));
    return { root: folder, remove };
  } catch (error) {
    await remove();
    const words = error instanceof Error ? error.message.trim().replaceAll("\n", " ") : String(error);
    return { why: `this clone does not have ${commit}, a version before this one: ${words}` };
  }
}
