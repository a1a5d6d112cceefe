// SPDX-License-Identifier: Apache-2.0
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { eventually } from "../support/eventually.ts";
import { kubectl, startApi, startControllers, writeCredentials } from "./control-plane.ts";
import { cgroupsOf, changedSysctls, makeCgroup, removeCgroups, restoreSysctls, saveSysctls } from "./host.ts";
import { baseImages } from "./images.ts";
import { MARK, Machine } from "./machine.ts";
import { HOST_LINK, hasHostLink, unplugHost, whyNoRoom, wireNode, wireRouter } from "./network.ts";
import { importImage, nodeMounts, startKubelet, startRuntime } from "./node.ts";
import { isSame, kill, processesIn } from "./processes.ts";
import type { StateFolder } from "./state.ts";

/** As the API server calls them, and where they are. */
const NODES: ReadonlyMap<string, string> = new Map([
  ["node-a", "172.30.0.11"],
  ["node-b", "172.30.0.12"],
]); // name -> address

/** A control plane and two nodes, each a machine on this one. */
export class Cluster {
  readonly state: StateFolder;
  readonly control: Machine;
  readonly nodes: readonly Machine[];

  constructor(state: StateFolder) {
    this.state = state;
    this.control = new Machine("control", state);
    this.nodes = [...NODES.keys()].map((name) => new Machine(name, state));
  }

  /** Everything is there that `up` ends with. */
  get isUp(): boolean {
    return this.state.read().complete && [this.control, ...this.nodes].every((machine) => machine.isOn);
  }

  node(name: string): Machine {
    const found = this.nodes.find((node) => node.name === name);
    if (found === undefined) throw new Error(`no node is called ${name}`);
    return found;
  }

  /** Brings up what is not there yet, from nothing. */
  async up(say: (what: string) => void): Promise<void> {
    const why = await whyNoRoom();
    if (why !== undefined) throw new Error(why);
    saveSysctls(this.state);
    const machines = [this.control, ...this.nodes].map(({ name }) => ({ name, token: randomUUID() }));
    this.state.write({ machines, complete: false });
    await writeCredentials(this.state, [...NODES.keys()]);
    const images = await baseImages(this.state);
    await this.control.on("/dev/null", this.#record(this.control));
    await wireRouter(this.control);
    await startApi(this.control, this.state);
    say("the API server is ready");
    await startControllers(this.control, this.state);
    await Promise.all(
      this.nodes.map(async (node) => {
        await this.powerOn(node.name);
        await importImage(node, images);
      }),
    );
    await this.#registered();
    this.state.write({ complete: true });
    say(`nodes: ${[...NODES.keys()].join(", ")}`);
  }

  /** Switches a node on, with what is on its disk. */
  async powerOn(name: string): Promise<void> {
    const node = this.node(name);
    makeCgroup(name);
    await node.on(nodeMounts(node), this.#record(node));
    await wireNode(this.control, node, addressOf(name));
    await this.startDaemons(name);
  }

  /** What does not run of the node's containerd and kubelet. */
  async startDaemons(name: string): Promise<void> {
    await startRuntime(this.node(name));
    await startKubelet(this.node(name), this.state, addressOf(name));
  }

  /** Everything of the node ends at once, and its interfaces are gone. Its disk stays. */
  async powerOff(name: string): Promise<void> {
    await this.node(name).off();
    await emptied(name);
  }

  /** Takes everything away, however much of it there is. Gives what could not be, in words. */
  async down(): Promise<readonly string[]> {
    for (const machine of [...this.nodes, this.control]) await machine.off();
    for (const seen of processesIn(MARK, this.state.path)) if (seen.pid !== process.pid) kill(seen);
    for (const name of NODES.keys()) await emptied(name).catch(() => undefined);
    if (this.state.read().machines.length > 0) await unplugHost();
    restoreSysctls(this.state);
    const nothing = async () => (await this.left()).length === 0 || undefined;
    await eventually("everything goes", nothing).catch(() => undefined);
    const left = await this.left();
    if (left.length === 0) this.state.remove();
    return left;
  }

  /** What is there of it, outside its folder. */
  async left(): Promise<readonly string[]> {
    const processes = processesIn(MARK, this.state.path).filter(
      (seen) => seen.pid !== process.pid && isSame(seen),
    );
    const mounts = readFileSync("/proc/self/mountinfo", "utf8").split("\n");
    const mounted = mounts.filter((line) => line.includes(this.state.path)).map((line) => line.split(" ")[4]);
    return [
      ...processes.map(({ pid, args }) => `process ${pid}: ${args.join(" ").slice(0, 120)}`),
      ...mounted.map((path) => `mount ${path}`),
      ...[...NODES.keys()].flatMap((name) => cgroupsOf(name)).map((path) => `cgroup ${path}`),
      ...(hasHostLink() ? [`interface ${HOST_LINK}`] : []),
      ...changedSysctls(this.state),
    ];
  }

  #record(machine: Machine) {
    const record = this.state.read().machines.find(({ name }) => name === machine.name);
    if (record === undefined) throw new Error(`machine ${machine.name} was never written down`);
    return record;
  }

  async #registered(): Promise<void> {
    await eventually(
      "the nodes register",
      async () => {
        for (const node of this.nodes) {
          for (const part of ["containerd", "kubelet"]) {
            if (!node.isRunning(part)) throw new Error(`${part} of ${node.name} ended\n${node.tail(part)}`);
          }
        }
        const { stdout } = await kubectl(this.state, "get", "nodes", "-o", "name");
        return [...NODES.keys()].every((name) => stdout.includes(`node/${name}\n`)) || undefined;
      },
      60_000,
    );
  }
}

function addressOf(node: string): string {
  const address = NODES.get(node);
  if (address === undefined) throw new Error(`no node is called ${node}`);
  return address;
}

/** The last processes of a cgroup may take a moment to go. */
async function emptied(node: string): Promise<void> {
  await eventually(`the cgroups of ${node} go`, () => {
    removeCgroups(node);
    return cgroupsOf(node).length === 0 || undefined;
  });
}
