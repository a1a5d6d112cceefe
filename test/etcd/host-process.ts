// SPDX-License-Identifier: Apache-2.0
import { mkdir, mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { NetworkHost } from "../support/netns.ts";
import { compileCache, type Ended, run, type Started } from "../support/process.ts";
import { type NetworkConfig, Runtime, type Sandbox, sandboxOf } from "../support/runtime.ts";
import { startUp } from "../support/stack.ts";
import { BERTHCTL } from "../support/stack-folder.ts";

export interface HostProcessOptions {
  readonly node: string;
  readonly urls: readonly string[];
  /** Of the runtime; more with `runtimeOf`. */
  readonly network: NetworkConfig;
  /** Where main plugins run; absent: the IPAM plugin is called by itself. */
  readonly host?: NetworkHost;
  /** More of `berthctl up`. */
  readonly flags?: readonly string[];
}

const PLUGIN = fileURLToPath(new URL("../../build/berth", import.meta.url));
const ENV = { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", ...compileCache() };

/** `berthctl up --etcd` as a process of its own, and a runtime that calls its plugin. */
export class HostProcess {
  readonly node: string;
  readonly folder: string;
  readonly runtime: Runtime;
  readonly #urls: readonly string[];
  readonly #network: NetworkHost | undefined;
  readonly #flags: readonly string[];
  #running: Started | undefined;
  #log = "";

  private constructor(folder: string, { node, urls, network, host, flags = [] }: HostProcessOptions) {
    this.node = node;
    this.folder = folder;
    this.#urls = urls;
    this.#network = host;
    this.#flags = flags;
    this.runtime = this.runtimeOf(network);
  }

  /** One with another network, whose plugin may be called `etcd` or `ipam-etcd`. */
  runtimeOf(network: NetworkConfig): Runtime {
    const host = this.#network;
    const at = { network, socket: this.socket, plugins: join(this.folder, "bin") };
    return new Runtime(host === undefined ? at : { ...at, host });
  }

  static async start(options: HostProcessOptions): Promise<HostProcess> {
    const folder = await mkdtemp(join(tmpdir(), "host-"));
    for (const name of ["data", "bin"]) await mkdir(join(folder, name), { mode: 0o700 });
    for (const name of ["etcd", "ipam-etcd"]) await symlink(PLUGIN, join(folder, "bin", name));
    const host = new HostProcess(folder, options);
    await host.up();
    return host;
  }

  get socket(): string {
    return join(this.folder, "data", "agent.sock");
  }

  /** A new container on it, of which nothing can be seen unless it has a namespace. */
  container(netns?: string): Sandbox {
    return sandboxOf(undefined, netns === undefined ? {} : { netns: `/run/netns/${netns}` });
  }

  async up(): Promise<void> {
    const flags = ["--etcd", this.#urls.join(","), "--data", join(this.folder, "data")];
    const more = ["--node", this.node, "--log-level", "error", ...this.#flags];
    await startUp([...flags, ...more], ENV, (running) => {
      this.#running = running;
      running.child.stderr?.on("data", (text: string) => {
        this.#log += text;
      });
    });
  }

  /** What its processes have logged, of the level error. */
  get log(): string {
    return this.#log;
  }

  /** As the kernel does when memory is short. */
  async kill9(): Promise<void> {
    const running = this.#running;
    this.#running = undefined;
    running?.child.kill("SIGKILL");
    await running?.ended;
  }

  async remove(): Promise<void> {
    await this.kill9();
    await rm(this.folder, { recursive: true, force: true });
  }
}

/** `berthctl ARGS` on an etcd. */
export async function berthctl(urls: readonly string[], ...args: readonly string[]): Promise<Ended> {
  return await run(BERTHCTL, ["--etcd", urls.join(","), ...args], { env: ENV });
}

/** What `berthctl get KIND -o json` lists. */
export async function listed(
  urls: readonly string[],
  kind: string,
  flags: readonly string[] = [],
): Promise<readonly string[]> {
  const { rc, stdout, stderr } = await berthctl(urls, ...flags, "get", kind, "-o", "json");
  if (rc !== 0) throw new Error(stderr);
  const { items }: { readonly items: readonly { readonly metadata: { readonly name: string } }[] } =
    JSON.parse(stdout);
  return items.map(({ metadata }) => metadata.name);
}
