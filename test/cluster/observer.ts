// SPDX-License-Identifier: Apache-2.0
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import type { Machine } from "./machine.ts";
import { kill, look } from "./processes.ts";

/** A network namespace with a running process, and the addresses that it has. */
interface Sandbox {
  readonly node: string;
  /** `net:[inode]` */
  readonly namespace: string;
  readonly pid: number;
}

const EVERY_MS = 200;

/** Looks into every sandbox of the nodes all the time: no two may have one address. */
export class Observer {
  readonly #sandboxes: Sandboxes;
  readonly #stop = new AbortController();
  readonly #doubles = new Set<string>();
  readonly #running: Promise<void>;
  #looks = 0;
  #most = 0;

  constructor(machines: readonly Machine[]) {
    this.#sandboxes = new Sandboxes(machines);
    this.#running = this.#run();
  }

  /** What was seen: addresses that two sandboxes had at the same time, and how hard it looked. */
  async close(): Promise<{
    readonly doubles: readonly string[];
    readonly looks: number;
    readonly most: number;
  }> {
    this.#stop.abort();
    await this.#running;
    return { doubles: [...this.#doubles], looks: this.#looks, most: this.#most };
  }

  async #run(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      this.#look();
      await pause(EVERY_MS, undefined, { signal: this.#stop.signal }).catch(() => undefined);
    }
  }

  #look(): void {
    const holders = new Map<string, Sandbox>(); // address -> who has it
    const sandboxes = this.#sandboxes.look();
    for (const sandbox of sandboxes) {
      for (const address of addressesOf(sandbox.pid)) {
        const other = holders.get(address);
        // looked at again, both: one may have given it up by now, and a number be that of another process
        if (other !== undefined && has(other, address) && has(sandbox, address)) {
          this.#found(address, other, sandbox);
        }
        holders.set(address, sandbox);
      }
    }
    this.#looks++;
    this.#most = Math.max(this.#most, sandboxes.length);
  }

  #found(address: string, one: Sandbox, other: Sandbox): void {
    const words = [one, other].map(({ node, namespace, pid }) => `${node} ${namespace} pid ${pid}`);
    this.#doubles.add(`${address}: ${words.join(" and ")}`);
  }
}

function has({ pid, namespace }: Sandbox, address: string): boolean {
  return linkOf(pid, "net") === namespace && addressesOf(pid).includes(address);
}

/** Processes take their places within a moment of their start, and stay there. */
const SETTLED_MS = 5_000;

interface Known {
  readonly since: number;
  /** undefined: it is none of the machines' pods'. */
  readonly sandbox: Sandbox | undefined;
}

/** Finds the sandboxes of machines, without looking at every process of this host every time. */
export class Sandboxes {
  readonly #machines: readonly Machine[];
  #known: ReadonlyMap<string, Known> = new Map(); // pid -> what it is

  constructor(machines: readonly Machine[]) {
    this.#machines = machines;
  }

  /** Each network namespace of the machines' pods, by one of its processes. */
  look(): readonly Sandbox[] {
    const found = new Map<string, Sandbox>(); // network namespace -> its sandbox
    const known = new Map<string, Known>();
    const now = performance.now();
    for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
      const before = this.#known.get(pid);
      const isSettled = before !== undefined && now - before.since > SETTLED_MS;
      const sandbox = isSettled ? before.sandbox : this.#classify(Number(pid));
      known.set(pid, { since: before?.since ?? now, sandbox });
      if (sandbox !== undefined && !found.has(sandbox.namespace)) found.set(sandbox.namespace, sandbox);
    }
    this.#known = known;
    return [...found.values()];
  }

  /** The one that has the address. */
  of(address: string): Sandbox | undefined {
    return this.look().find(({ pid }) => addressesOf(pid).includes(address));
  }

  /** Kills all processes in it. Gives what tells another sandbox from it: the kernel gives the number of a namespace again. */
  kill({ namespace }: Sandbox): (next: Sandbox) => boolean {
    this.look();
    const killed = new Set<number>();
    for (const [pid, { sandbox }] of this.#known) {
      if (sandbox?.namespace !== namespace) continue;
      killed.add(Number(pid));
      const seen = look(Number(pid));
      // some go with the one before them
      if (seen !== undefined) kill(seen);
    }
    return (next) => next.namespace !== namespace || !killed.has(next.pid);
  }

  /** By its cgroup: that of the pods is the node's own. */
  #classify(pid: number): Sandbox | undefined {
    const [, node] = /\/berth-cluster-([^/\n]+)\//.exec(read(`/proc/${pid}/cgroup`)) ?? [];
    const machine = this.#machines.find(({ name }) => name === node);
    const namespace = machine && linkOf(pid, "net");
    if (machine === undefined || namespace === undefined) return undefined;
    return { node: machine.name, namespace, pid };
  }
}

function linkOf(pid: number, what: string): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/ns/${what}`);
  } catch {
    return undefined;
  }
}

/** Global addresses, as the kernel prints them; none of a process that is gone. */
export function addressesOf(pid: number): readonly string[] {
  return [...localIPv4(read(`/proc/${pid}/net/fib_trie`)), ...globalIPv6(read(`/proc/${pid}/net/if_inet6`))];
}

/** Of /proc/PID/net/fib_trie. */
export function localIPv4(trie: string): readonly string[] {
  const found = trie.matchAll(/\|-- (\d+\.\d+\.\d+\.\d+)\n\s+\/32 host LOCAL/g);
  return [...new Set([...found].map(([, address = ""]) => address))].filter((one) => !one.startsWith("127."));
}

/** Of /proc/PID/net/if_inet6: lines of address, interface's number, prefix length, scope (00: global), flags, interface. */
export function globalIPv6(table: string): readonly string[] {
  const lines = table.split("\n").map((line) => line.trim().split(/\s+/));
  return lines.flatMap(([address = "", , , scope]) => (scope === "00" ? [address] : []));
}

function read(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
