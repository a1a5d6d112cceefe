// SPDX-License-Identifier: Apache-2.0
// Berth's programs, each made into one script as an image has it, once for all files of a run: one starts with a third of
// the processor's time that its sources take. `node --test --test-global-setup=test/support/programs.ts`.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  chmodSync,
  existsSync,
  globSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";

const ROOT = join(import.meta.dirname, "../..");
/** The folder that has them; absent where a file is run by itself: its programs are run from their sources. */
const VARIABLE = "BERTH_PROGRAMS";
const MADE = join(ROOT, "build/programs");
/** In the folder: what it was made of. */
const MARK = "made-of";
const SOURCES = [
  "{allocator,cli,ipam-plugin,kube,system,webhook}/**/*.{ts,json}",
  "cli/berthctl.sh",
  "{package,package-lock,tsconfig}.json",
  "scripts/dist.sh",
  "test/support/programs.ts",
];

type Program = "webhook/main" | "webhook/issuer/main" | "ipam-plugin/agent/main";

/** The file that node runs. */
export function programFile(program: Program): string {
  const made = process.env[VARIABLE];
  return made === undefined ? join(ROOT, `${program}.ts`) : join(made, `${program}.js`);
}

/** The folder of berthctl, of its other names and of the CNI plugin. */
export function commandFolder(): string {
  return join(process.env[VARIABLE] ?? ROOT, "build");
}

export function globalSetup(): void {
  if (markOf(MADE) !== digest()) {
    mkdirSync(dirname(MADE), { recursive: true });
    // one process makes them, and others that want them meanwhile wait for it: groups of tests begin at the same time
    const command = [`${MADE}.lock`, process.execPath, import.meta.filename];
    execFileSync("flock", command, { stdio: ["ignore", "ignore", "inherit"] });
  }
  process.env[VARIABLE] = MADE;
}

/** Of all that the programs are made of. */
function digest(): string {
  const hash = createHash("sha256");
  for (const file of SOURCES.flatMap((glob) => globSync(glob, { cwd: ROOT }).sort()))
    hash
      .update(`${file}\0`)
      .update(readFileSync(join(ROOT, file)))
      .update("\0");
  return hash.digest("hex");
}

function markOf(folder: string): string | undefined {
  const file = join(folder, MARK);
  return existsSync(file) ? readFileSync(file, "utf8") : undefined;
}

/** Beside the folder, and put into its place whole: another run may be at work with what was there. */
function make(mark: string): void {
  const [fresh, old] = [`${MADE}.${process.pid}`, `${MADE}.${process.pid}.old`];
  try {
    const env = { ...process.env, KUBECONFIGS: "inside" };
    const script = join(ROOT, "scripts/dist.sh");
    execFileSync("bash", [script, fresh], { env, stdio: ["ignore", "ignore", "inherit"] });
    addCommands(fresh);
    writeFileSync(join(fresh, MARK), mark);
    if (existsSync(MADE)) renameSync(MADE, old);
    renameSync(fresh, MADE);
  } catch (error) {
    // another run was quicker
    if (markOf(MADE) !== mark) throw error;
  } finally {
    for (const folder of [fresh, old]) rmSync(folder, { recursive: true, force: true });
  }
}

/** What a checkout has at these places, with a script where it has sources. */
function addCommands(folder: string): void {
  const script = readFileSync(join(ROOT, "cli/berthctl.sh"), "utf8");
  const own = script.replace("/cli/main.ts", "/cli/main.js");
  if (own === script) throw new Error("cli/berthctl.sh does not run cli/main.ts");
  writeFileSync(join(folder, "cli/berthctl.sh"), own);
  chmodSync(join(folder, "cli/berthctl.sh"), 0o755);
  for (const [name, target] of [
    ["build/berthctl", "../cli/berthctl.sh"],
    ["build/kubectl-berth", "../cli/berthctl.sh"],
    ["build/berth", join(ROOT, "build/berth")],
    ["build/compile-cache", join(ROOT, "build/compile-cache")],
    ["node_modules", join(ROOT, "node_modules")],
  ] as const) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    symlinkSync(target, join(folder, name));
  }
}

if (import.meta.main) {
  const mark = digest();
  if (markOf(MADE) !== mark) make(mark);
}
