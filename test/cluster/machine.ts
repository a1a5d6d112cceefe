// SPDX-License-Identifier: Apache-2.0
import { spawn } from "node:child_process";
import { closeSync, existsSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { eventually } from "../support/eventually.ts";
import { type Ended, run } from "../support/process.ts";
import { kill, processesWith, type Seen } from "./processes.ts";
import type { MachineRecord, StateFolder } from "./state.ts";

export const PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/** In the environment of everything that a cluster starts: the folder of its state. */
export const MARK = "BERTH_CLUSTER_OF";

const BOOT_MS = 10_000;
const ENDING_MS = 10_000;
/** The first process of a machine: prepares its file systems, then takes in whatever lost its parent. */
const INIT = `
set -e
hostname "$2"
ip link set lo up
mount -t tmpfs machine /run
mkdir -p /run/machine /run/netns /run/lock
. "$3"
mount --make-rshared /
: >/run/machine/ready
trap : TERM INT HUP
while :; do sleep 86400 & wait $!; done`;

/**
 * A machine on this one: namespaces for its interfaces, mounts, processes and name. All of it lives as long as its
 * first process and goes with it, as with the power of a real one; what is on its disk stays in the state's folder.
 */
export class Machine {
  readonly name: string;
  readonly #state: StateFolder;

  constructor(name: string, state: StateFolder) {
    this.name = name;
    this.#state = state;
  }

  /** What it keeps without power. */
  disk(...names: readonly string[]): string {
    return this.#state.folder(this.name, ...names);
  }

  get isOn(): boolean {
    return this.#first() !== undefined;
  }

  /** Of its first process, as this host counts. Throws when the machine is off. */
  get pid(): number {
    const first = this.#first();
    if (first === undefined) throw new Error(`machine ${this.name} is off`);
    return first.pid;
  }

  /** Switches it on. `mounts` is a file of shell lines that mount what it sees elsewhere than this host does. */
  async on(mounts: string, record: MachineRecord): Promise<void> {
    const log = openSync(join(this.#state.folder("logs"), `${this.name}.log`), "a");
    const namespaces = [
      "--mount",
      "--net",
      "--uts",
      "--ipc",
      "--pid",
      "--fork",
      "--kill-child",
      "--mount-proc",
    ];
    const args = [...namespaces, "bash", "-c", INIT, "berth-machine", record.token, this.name, mounts];
    const env = { PATH, [MARK]: this.#state.path };
    const child = spawn("unshare", args, { env, cwd: "/", detached: true, stdio: ["ignore", log, log] });
    closeSync(log);
    child.unref();
    let code: number | null | undefined;
    child.once("exit", (status) => {
      code = status;
    });
    await eventually(
      `machine ${this.name} starts`,
      () => {
        if (code !== undefined) throw new Error(`machine ${this.name} ended with ${code}; see ${this.log()}`);
        return this.isOn && existsSync(this.see("/run/machine/ready")) ? true : undefined;
      },
      BOOT_MS,
    );
  }

  /** Takes the power away: no process of it says another word. */
  async off(): Promise<void> {
    const all = this.#all();
    for (const seen of all) kill(seen);
    await eventually(`machine ${this.name} ends`, () => this.#all().length === 0 || undefined, ENDING_MS);
  }

  /** Where this host finds a file of the machine. */
  see(path: string): string {
    return `/proc/${this.pid}/root${path}`;
  }

  log(daemon = ""): string {
    return join(
      this.#state.folder("logs"),
      daemon === "" ? `${this.name}.log` : `${this.name}-${daemon}.log`,
    );
  }

  /** Runs a command there, to its end. */
  async run(command: readonly string[], stdin = ""): Promise<Ended> {
    const env = { PATH, HOME: "/root", [MARK]: this.#state.path };
    return await run("nsenter", [...this.#enter(), ...command], { env, stdin: { text: stdin } });
  }

  /** Runs a command there; throws what it printed when it fails. */
  async must(command: readonly string[], stdin = ""): Promise<string> {
    const { rc, stdout, stderr } = await this.run(command, stdin);
    if (rc === 0) return stdout;
    throw new Error(`${this.name}: ${command.join(" ")}: ${(stderr + stdout).trim().slice(-2_000)}`);
  }

  /** Starts a process that goes on when this one ends. */
  async start(daemon: string, command: readonly string[]): Promise<void> {
    if (this.isRunning(daemon)) return;
    const log = openSync(this.log(daemon), "a");
    const note = `echo $$ >/run/machine/${daemon}.pid; exec "$@"`;
    const args = [...this.#enter(), "setsid", "--fork", "sh", "-c", note, "sh", ...command];
    const env = { PATH, HOME: "/root", [MARK]: this.#state.path };
    const child = spawn("nsenter", args, { env, cwd: "/", stdio: ["ignore", log, log] });
    closeSync(log);
    await new Promise<void>((resolve, reject) => {
      child.once("error", reject);
      child.once("exit", (code) => (code === 0 ? resolve() : reject(new Error(`${daemon}: exit ${code}`))));
    });
    await eventually(`${daemon} starts on ${this.name}`, () => this.isRunning(daemon) || undefined);
  }

  isRunning(daemon: string): boolean {
    return this.#daemonPid(daemon) !== undefined;
  }

  /** Ends the process and waits for that; what does not end in time is killed. */
  async stop(daemon: string, signal: "TERM" | "KILL" = "TERM"): Promise<void> {
    const pid = this.#daemonPid(daemon);
    if (pid === undefined) return;
    await this.run(["kill", `-${signal}`, String(pid)]);
    const gone = () => this.#daemonPid(daemon) === undefined || undefined;
    try {
      await eventually(`${daemon} ends`, gone, ENDING_MS);
    } catch {
      await this.run(["kill", "-KILL", String(pid)]);
      await eventually(`${daemon} ends when it is killed`, gone, ENDING_MS);
    }
  }

  /** The end of what a daemon wrote. */
  tail(daemon: string, lines = 15): string {
    const file = this.log(daemon);
    return existsSync(file) ? readFileSync(file, "utf8").trimEnd().split("\n").slice(-lines).join("\n") : "";
  }

  #enter(): readonly string[] {
    return ["-t", String(this.pid), "-m", "-n", "-u", "-i", "-p", "--wd=/", "--"];
  }

  #daemonPid(daemon: string): number | undefined {
    const first = this.#first();
    if (first === undefined) return undefined;
    const root = `/proc/${first.pid}/root`;
    try {
      const pid = Number.parseInt(readFileSync(`${root}/run/machine/${daemon}.pid`, "utf8"), 10);
      const stat = readFileSync(`${root}/proc/${pid}/stat`, "utf8");
      return /\) [ZX] /.test(stat) ? undefined : pid;
    } catch {
      return undefined;
    }
  }

  /** In its own namespaces, and on this host what waits for it. */
  #all(): readonly Seen[] {
    return this.#state
      .read()
      .machines.filter(({ name }) => name === this.name)
      .flatMap(({ token }) => processesWith(token));
  }

  #first(): Seen | undefined {
    return this.#all().find(({ args }) => args[0] === "bash");
  }
}
