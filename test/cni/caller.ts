// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import type { ChildProcess } from "node:child_process";
import { readdirSync, readlinkSync } from "node:fs";
import { eventually } from "../support/eventually.ts";
import { type Run, startPlugin } from "./plugin.ts";

type Env = Readonly<Record<string, string>>;

/** How a call differs from the usual one: container `c1`, interface `eth0`, network `net`. */
export interface Said {
  readonly cid?: string;
  readonly ifname?: string;
  readonly netns?: string;
  readonly args?: string;
  /** More variables, or other values. */
  readonly env?: Env;
  /** Instead of the caller's `ipam`. */
  readonly ipam?: unknown;
  /** More fields of the configuration, or other values. */
  readonly conf?: object;
  /** Instead of a configuration. */
  readonly stdin?: string;
}

/** A call whose plugin runs, has begun its call to the agent, and was not told its configuration yet. */
export interface Begun {
  readonly child: ChildProcess;
  /** Tells it the configuration and waits for its end. */
  finish(): Promise<Run>;
}

/** A runtime that calls build/berth as its IPAM plugin, of a node without main plugins. */
export class Caller {
  readonly socket: string;
  readonly #begun: ChildProcess[] = [];
  ipam: unknown = { subnet: "10.1.2.0/24" };
  cniVersion = "1.1.0";
  network = "net";

  constructor(socket: string) {
    this.socket = socket;
  }

  call(command: string, said: Said = {}): Promise<Run> {
    return startPlugin(this.socket, this.environment(command, said)).finish(this.stdin(said));
  }

  async begin(command: string, said: Said = {}): Promise<Begun> {
    const { child, finish } = startPlugin(this.socket, this.environment(command, said));
    this.#begun.push(child);
    await eventually("the plugin knocks at the agent", () => hasSocket(child.pid) || undefined);
    return { child, finish: () => finish(this.stdin(said)) };
  }

  /** An ADD that must succeed: its addresses, with their prefix lengths. */
  async add(said: Said = {}): Promise<readonly string[]> {
    return addressesOf(await this.call("ADD", said));
  }

  /** A call that must succeed without a word, as every call but ADD does. */
  async silently(command: string, said: Said = {}): Promise<void> {
    assert.deepEqual(await this.call(command, said), { rc: 0, stdout: "", stderr: "" });
  }

  del(said: Said = {}): Promise<void> {
    return this.silently("DEL", said);
  }

  /** A call that must fail: `code msg`. */
  async refused(command: string, said: Said = {}): Promise<string> {
    return errorOf(await this.call(command, said));
  }

  /** Ends what a test that failed has left. */
  close(): void {
    for (const child of this.#begun) child.kill("SIGKILL");
  }

  environment(command: string, said: Said = {}): Record<string, string> {
    const { cid = "c1", ifname = "eth0", netns = `/nowhere/netns/${cid}`, args = "", env = {} } = said;
    return {
      CNI_COMMAND: command,
      CNI_CONTAINERID: cid,
      CNI_NETNS: netns,
      CNI_IFNAME: ifname,
      CNI_ARGS: args,
      CNI_PATH: "/opt/cni/bin",
      ...env,
    };
  }

  stdin({ ipam = this.ipam, conf = {}, stdin }: Said = {}): string {
    const usual = { cniVersion: this.cniVersion, name: this.network, type: "bridge", ipam };
    return stdin ?? JSON.stringify({ ...usual, ...conf });
  }
}

/** CNI_ARGS as a container runtime writes them for a pod. */
export function argsOf(pod: {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}): string {
  const { namespace, name, uid } = pod;
  return `IgnoreUnknown=1;K8S_POD_NAMESPACE=${namespace};K8S_POD_NAME=${name};K8S_POD_UID=${uid}`;
}

export function addressesOf(run: Run): readonly string[] {
  assert.deepEqual([run.rc, run.stderr], [0, ""], run.stdout);
  const { ips = [] }: { readonly ips?: readonly { readonly address: string }[] } = JSON.parse(run.stdout);
  return ips.map(({ address }) => address);
}

export function errorOf(run: Run): string {
  assert.deepEqual([run.rc, run.stderr], [1, ""], run.stdout);
  const { code, msg }: { readonly code: number; readonly msg: string } = JSON.parse(run.stdout);
  return `${code} ${msg}`;
}

/** Node.js makes pipes of sockets: what comes behind the three of them is the plugin's own. */
function hasSocket(pid: number | undefined): boolean {
  const folder = `/proc/${pid}`;
  try {
    if (!readlinkSync(`${folder}/exe`).includes("/build/berth")) return false;
    const own = readdirSync(`${folder}/fd`).filter((fd) => Number(fd) > 2);
    return own.some((fd) => readlinkSync(`${folder}/fd/${fd}`).startsWith("socket:"));
  } catch {
    return false; // it is just becoming what it will be
  }
}
