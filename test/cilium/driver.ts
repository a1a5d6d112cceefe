// SPDX-License-Identifier: Apache-2.0
// Cilium's own code of an agent's addresses (test/cilium/agent), as a process for one node.
import { once } from "node:events";
import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { createInterface, type Interface } from "node:readline";
import type { Family } from "../../allocator/ip/address.ts";
import type { ControlPlane } from "../api/plane.ts";
import { type Started, start } from "../support/process.ts";
import { CILIUM } from "./definitions.ts";

/** What build.sh has made; undefined: nobody has called it for this version. */
export function driverFile(): string | undefined {
  const folder = join(process.env["XDG_CACHE_HOME"] || join(homedir(), ".cache"), "berth/cilium");
  const found = existsSync(folder)
    ? readdirSync(folder).filter((name) => name.startsWith(`agent-${CILIUM}-`))
    : [];
  const [file] = found;
  return file === undefined ? undefined : join(folder, file);
}

export interface DriverOptions {
  readonly node: string;
  readonly mode: string;
  /** The least time between two writes of the CiliumNode. */
  readonly every?: string;
  /** IPv4, if absent. */
  readonly families?: readonly Family[];
}

/** Cilium's operator, as far as it gives nodes addresses. Whoever calls this ends it. */
export function startOperator(
  plane: ControlPlane,
  file: string,
  { mode, cidrs }: { readonly mode: string; readonly cidrs: readonly string[] },
): { end(): Promise<void> } {
  const flags = ["-operator", "-kubeconfig", kubeconfigIn(plane), "-mode", mode, "-cidrs", cidrs.join()];
  const { child, ended } = start(file, flags, { env: { HOME: plane.folder }, stdin: "later" });
  return {
    async end() {
      child.kill("SIGKILL");
      await ended;
    },
  };
}

function kubeconfigIn(plane: ControlPlane): string {
  const path = join(plane.folder, "cilium.kubeconfig");
  writeFileSync(path, plane.kubeConfig().exportConfig(), { mode: 0o600 });
  return path;
}

export class Driver {
  readonly node: string;
  /** Addresses that pods have. */
  readonly used = new Set<string>();
  readonly #process: Started;
  readonly #lines: Interface;
  readonly #answers: AsyncIterableIterator<string>;

  private constructor(node: string, started: Started) {
    this.node = node;
    this.#process = started;
    if (started.child.stdout === null) throw new Error("the driver has no output");
    this.#lines = createInterface({ input: started.child.stdout });
    this.#answers = this.#lines[Symbol.asyncIterator]();
  }

  /** Begins; whoever calls this ends it. */
  static start(plane: ControlPlane, file: string, options: DriverOptions): Driver {
    const { node, mode, every = "1s", families = ["IPv4"] } = options;
    const flags = ["-kubeconfig", kubeconfigIn(plane), "-node", node, "-mode", mode, "-every", every];
    for (const family of ["IPv4", "IPv6"] as const)
      flags.push(`-${family.toLowerCase()}=${families.includes(family)}`);
    return new Driver(node, start(file, flags, { env: { HOME: plane.folder }, stdin: "later" }));
  }

  /** Answers once its allocator is there, which waits for its first addresses, and what ran before is restored. */
  async begin(restored: readonly string[] = []): Promise<void> {
    await this.#line("ready");
    for (const address of restored) {
      const answer = await this.#ask(`restore ${address} restored`);
      if (answer.includes(" ! ")) throw new Error(answer);
      this.used.add(address);
    }
    await this.#ask("begin");
  }

  /** The first of its addresses, one of each family. Undefined: it has none; a kubelet tries again. */
  async add(owner: string): Promise<string | undefined> {
    const answer = await this.#ask(`add ${owner}`);
    if (answer.includes(" ! ")) return undefined;
    const [, , ...addresses] = answer.split(" ");
    for (const address of addresses) this.used.add(address);
    return addresses[0];
  }

  async del(address: string): Promise<void> {
    const answer = await this.#ask(`del ${address}`);
    if (answer.includes(" ! ")) throw new Error(answer);
    this.used.delete(address);
  }

  /** As a node's power goes, or its agent is upgraded: what pods have they keep. */
  async kill(): Promise<void> {
    this.#process.child.kill("SIGKILL");
    await this.#process.ended;
    this.#lines.close();
  }

  async #ask(words: string): Promise<string> {
    this.#process.child.stdin?.write(`${words}\n`);
    return await this.#line(words.split(" ")[0] ?? "");
  }

  async #line(wanted: string): Promise<string> {
    const { done, value } = await this.#answers.next();
    if (done !== true && value.startsWith(wanted)) return value;
    if (done === true && this.#process.child.exitCode === null) await once(this.#process.child, "exit");
    const said = done === true ? (await this.#process.ended).stderr.slice(-2_000) : value;
    throw new Error(`the agent of ${this.node} says no "${wanted}": ${said}`);
  }
}
