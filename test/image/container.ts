// SPDX-License-Identifier: Apache-2.0
import { randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Ended, type Env, run, type Started, start } from "../support/process.ts";
import type { Archive } from "./archive.ts";

const PATH = "/usr/sbin:/usr/bin:/sbin:/bin";
const MASKED = ["/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/timer_list", "/sys/firmware"];

/** A folder of the host in a container, as a hostPath volume. */
export interface Volume {
  readonly from: string;
  readonly to: string;
  readonly readOnly?: boolean;
}

export interface ContainerOptions {
  readonly args: readonly string[];
  readonly uid: number;
  readonly env?: Env;
  readonly volumes?: readonly Volume[];
}

/** Why no container can be run here; undefined when one can. */
export async function whyNoContainer(): Promise<string | undefined> {
  if (process.platform !== "linux" || process.getuid?.() !== 0) return "containers need Linux and root";
  const found = await run("sh", ["-c", "command -v runc"], { env: { PATH } });
  if (found.rc !== 0) return "no runc (Debian: runc)";
  const allowed = await run("unshare", ["--mount", "--pid", "--fork", "true"], { env: { PATH } });
  return allowed.rc === 0 ? undefined : "mount namespaces cannot be made";
}

/**
 * A container of the image as the kubelet has it run with `hostNetwork`, `readOnlyRootFilesystem` and `drop: [ALL]`:
 * its own processes and mounts, the host's network.
 */
export class Container {
  readonly #folder = mkdtempSync(join(tmpdir(), "berth-container-"));
  readonly #id = `berth-test-${randomBytes(6).toString("hex")}`;
  readonly #started: Started;
  #log = "";

  constructor(image: Archive, options: ContainerOptions) {
    mkdirSync(join(this.#folder, "state"));
    writeFileSync(join(this.#folder, "config.json"), JSON.stringify(specOf(image, options)));
    const args = [...this.#global, "run", "--bundle", this.#folder, this.#id];
    this.#started = start("runc", args, { env: { PATH } });
    this.#started.child.stderr?.on("data", (text: string) => {
      this.#log += text;
    });
  }

  /** What it has written to standard error. */
  get log(): string {
    return this.#log;
  }

  get ended(): Promise<Ended> {
    return this.#started.ended;
  }

  /** Tells it to end, as the kubelet does, and waits for it. */
  async stop(): Promise<Ended> {
    await this.#runc("kill", this.#id, "TERM");
    return await this.ended;
  }

  /** Ends it whatever it does, and leaves nothing. May be called twice. */
  async remove(): Promise<void> {
    await this.#runc("delete", "--force", this.#id);
    await this.ended;
    rmSync(this.#folder, { recursive: true, force: true });
  }

  get #global(): readonly string[] {
    return ["--root", join(this.#folder, "state")];
  }

  #runc(...args: readonly string[]): Promise<Ended> {
    return run("runc", [...this.#global, ...args], { env: { PATH } });
  }
}

/** Runs a container to its end. */
export async function runContainer(image: Archive, options: ContainerOptions): Promise<Ended> {
  const container = new Container(image, options);
  try {
    return await container.ended;
  } finally {
    await container.remove();
  }
}

function specOf(image: Archive, { args, uid, env = {}, volumes = [] }: ContainerOptions): object {
  const { Env: own, WorkingDir: cwd } = image.config.config;
  const given = Object.entries(env).map(([name, value]) => `${name}=${value}`);
  return {
    ociVersion: "1.0.2",
    root: { path: image.root, readonly: true },
    process: {
      args,
      cwd,
      env: [...own, ...given],
      user: { uid, gid: uid },
      noNewPrivileges: true,
      capabilities: { bounding: [], effective: [], permitted: [], inheritable: [], ambient: [] },
    },
    mounts: [
      { destination: "/proc", type: "proc", source: "proc" },
      { destination: "/dev", type: "tmpfs", source: "tmpfs", options: ["nosuid", "mode=755", "size=65536k"] },
      ...volumes.map(volumeMount),
    ],
    linux: {
      namespaces: ["pid", "mount", "ipc", "uts"].map((type) => ({ type })),
      rootfsPropagation: "rslave",
      maskedPaths: MASKED,
      readonlyPaths: ["/proc/sys"],
    },
  };
}

function volumeMount({ from, to, readOnly = false }: Volume): object {
  const options = ["rbind", "rslave", readOnly ? "ro" : "rw"];
  return { destination: to, type: "bind", source: from, options };
}
