// SPDX-License-Identifier: Apache-2.0
// Berth's processes as their image runs them: plain JavaScript, as a pod with a service account.
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { residentOf } from "../bench/running-stack.ts";
import { chartProgram } from "../support/chart-program.ts";
import { eventually } from "../support/eventually.ts";
import { run, type Started, start } from "../support/process.ts";
import type { ControlPlane } from "./plane.ts";

const ROOT = join(import.meta.dirname, "../..");
const PROBE = join(import.meta.dirname, "scale-probe.cjs");
const MIB = 2 ** 20;
/** The service account is where the kubelet puts it, in a mount namespace of the process's own. */
const AS_POD = `mount -t tmpfs none /run && mkdir -p /run/secrets/kubernetes.io &&
  ln -s "$ACCOUNT" /run/secrets/kubernetes.io/serviceaccount && exec "$@"`;

/** Whether a process can be given a mount namespace here. */
export async function canBePod(): Promise<boolean> {
  const { rc } = await run("/usr/bin/unshare", ["-m", "/bin/true"]).catch(() => ({ rc: -1 }));
  return rc === 0;
}

/** Berth as plain JavaScript, in a folder that finds the packages; whoever calls this removes it. */
export async function buildDist(): Promise<string> {
  mkdirSync(join(ROOT, "build"), { recursive: true });
  const folder = mkdtempSync(join(ROOT, "build/scale-"));
  const env = { PATH: `${join(ROOT, "node_modules/.bin")}:/usr/bin:/bin` };
  const { rc, stdout, stderr } = await run("/bin/bash", [join(ROOT, "scripts/dist.sh"), folder], { env });
  if (rc !== 0) throw new Error(`dist.sh: ${stdout}${stderr}`);
  return folder;
}

/** How Node.js is started. */
export interface Program {
  readonly flags: readonly string[];
  /** Absolute. */
  readonly file: string;
  /** Variables that say how memory is taken. */
  readonly memory?: Readonly<Record<string, string>>;
}

/** As the chart's pods have it, of a folder that `buildDist` made; its event loop is measured. */
export function programIn(dist: string, kind: "webhook" | "agent"): Program {
  const { flags, script, memory } = chartProgram(kind);
  return { flags: [...flags, "--require", PROBE], file: join(dist, script), memory };
}

/** A process that takes itself for a pod. */
export class PodProcess {
  readonly #started: Started;
  readonly #probe: string;
  #log = "";

  private constructor(started: Started, probe: string) {
    this.#started = started;
    this.#probe = probe;
    started.child.stderr?.on("data", (text: string) => {
      this.#log += text;
    });
  }

  /** With the token of that user. */
  static start(of: {
    program: Program;
    plane: ControlPlane;
    user: string;
    folder: string;
    env: Readonly<Record<string, string>>;
  }): PodProcess {
    const { program, plane, user, folder } = of;
    const account = join(folder, "account");
    mkdirSync(account, { recursive: true });
    writeFileSync(join(account, "ca.crt"), plane.ca);
    writeFileSync(join(account, "token"), plane.kubeConfig(user).token);
    const probe = join(folder, "probe");
    const { hostname, port } = new URL(plane.url);
    const { flags, file, memory } = program;
    const env = { KUBERNETES_SERVICE_HOST: hostname, KUBERNETES_SERVICE_PORT: port, ...memory, ...of.env };
    const node = [process.execPath, ...flags, file];
    const shell = ["/bin/sh", "-c", AS_POD, "pod", ...node];
    const started = start("/usr/bin/unshare", ["-m", "--", ...shell], {
      env: { PATH: "/usr/bin:/bin", ACCOUNT: account, SCALE_PROBE: probe, ...env },
    });
    return new PodProcess(started, probe);
  }

  /** What it wrote to standard error. */
  get log(): string {
    return this.#log;
  }

  get pid(): number {
    return this.#started.child.pid ?? 0;
  }

  /** Resident memory in MiB. */
  resident(): number {
    return residentOf(this.pid).resident / MIB;
  }

  /** That which is the process's own, in MiB. */
  anonymous(): number {
    return residentOf(this.pid).anonymous / MIB;
  }

  /** Milliseconds of processor time of the longest turn of its event loop since this was asked last. */
  async longestTurn(): Promise<number> {
    rmSync(this.#probe, { force: true });
    this.#started.child.kill("SIGUSR2");
    const read = () => (existsSync(this.#probe) ? readFileSync(this.#probe, "utf8") : "") || undefined;
    return Number(await eventually("the probe answers", read, 60_000));
  }

  async end(): Promise<void> {
    this.#started.child.kill("SIGTERM");
    const late = setTimeout(() => this.#started.child.kill("SIGKILL"), 15_000);
    await this.#started.ended;
    clearTimeout(late);
  }
}
