// SPDX-License-Identifier: Apache-2.0
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Attachment } from "../../ipam-plugin/agent/journal/attachment.ts";
import type { Run } from "./driver.ts";
import { CUT, FIRST_HOST, type FixedPod, nth } from "./stack-data.ts";

const BERTH = fileURLToPath(new URL("../../build/berth", import.meta.url));
const NETWORK = "bench";
/** Of the node-local range: 65,533 addresses to give away. */
const SUBNET = "10.128.0.0/16";

export type Verb = "ADD" | "DEL";

/** One sandbox of a pod, as a container runtime calls a plugin for it. */
export interface Sandbox {
  readonly containerID: string;
  readonly pod: { readonly namespace: string; readonly name: string; readonly uid: string };
}

/** A pod that asks for no fixed address, in its sandbox. */
export function dynamicSandbox(name: string): Sandbox {
  return { containerID: name, pod: { namespace: "bench", name, uid: `uid-of-${name}` } };
}

export function fixedSandbox({ namespace, name, uid }: FixedPod, containerID: string): Sandbox {
  return { containerID, pod: { namespace, name, uid } };
}

/**
 * A node's network, for both plugins: one configuration, of which only `ipam.type` differs and where addresses are kept, and
 * one number of addresses that are taken. No node has a network that both serve: what one writes, the other does not read.
 */
export class Network {
  /** Exists, so that both sides see a sandbox; no namespace is needed where no interface is made. */
  readonly netns: string;
  readonly #folder: string;
  readonly #dataDirs: Readonly<Record<"berth" | "host-local", string>>;

  constructor(folder: string) {
    this.#folder = folder;
    this.#dataDirs = { berth: join(folder, "berth-networks"), "host-local": join(folder, "networks") };
    this.netns = join(folder, "netns");
    writeFileSync(this.netns, "");
    const ranges = [[{ subnet: SUBNET }]];
    for (const type of ["berth", "host-local"] as const) {
      const ipam = { type, ranges, dataDir: this.#dataDirs[type] };
      this.#configure(type, ipam);
    }
    this.#configure("fixed", { type: "berth" });
    this.#configure("block", { type: "berth", pools: [CUT.name] });
  }

  /** What the agent calls the network's space. */
  get scope(): Attachment["scope"] {
    return { network: NETWORK, dataDir: this.#dataDirs.berth };
  }

  get cidr(): string {
    return SUBNET;
  }

  /** What host-local has on disk when so many addresses are taken. */
  fillHostLocal(count: number): void {
    const folder = join(this.#dataDirs["host-local"], NETWORK);
    mkdirSync(folder, { recursive: true });
    for (let i = 0; i < count; i++) {
      writeFileSync(join(folder, nth(SUBNET, FIRST_HOST + i)), `before-${i}\r\neth0`);
    }
    if (count > 0) writeFileSync(join(folder, "last_reserved_ip.0"), nth(SUBNET, FIRST_HOST + count - 1));
  }

  /** build/berth, served from the node-local range. */
  berth(tag: string, verb: Verb, sandbox: Sandbox, socket: string): Run {
    return { tag, program: BERTH, input: this.#file("berth"), env: this.#env(verb, sandbox, socket) };
  }

  /** build/berth for a pod that has a claim; the configuration names no range. */
  fixed(tag: string, verb: Verb, sandbox: Sandbox, socket: string): Run {
    return { tag, program: BERTH, input: this.#file("fixed"), env: this.#env(verb, sandbox, socket) };
  }

  /** build/berth for a pod that asks for nothing, served out of the node's blocks of a pool. */
  block(tag: string, verb: Verb, sandbox: Sandbox, socket: string): Run {
    return { tag, program: BERTH, input: this.#file("block"), env: this.#env(verb, sandbox, socket) };
  }

  hostLocal(tag: string, verb: Verb, sandbox: Sandbox, program: string): Run {
    return { tag, program, input: this.#file("host-local"), env: this.#env(verb, sandbox, "") };
  }

  /** The same binary without a call to the agent: what starting a process costs here. */
  floor(tag: string): Run {
    return { tag, program: BERTH, input: this.#file("berth"), env: { CNI_COMMAND: "VERSION" } };
  }

  #env(verb: Verb, { containerID, pod }: Sandbox, socket: string): Run["env"] {
    const args = [
      "IgnoreUnknown=1",
      `K8S_POD_NAMESPACE=${pod.namespace}`,
      `K8S_POD_NAME=${pod.name}`,
      `K8S_POD_INFRA_CONTAINER_ID=${containerID}`,
      `K8S_POD_UID=${pod.uid}`,
    ];
    return {
      CNI_COMMAND: verb,
      CNI_CONTAINERID: containerID,
      CNI_NETNS: this.netns,
      CNI_IFNAME: "eth0",
      CNI_ARGS: args.join(";"),
      CNI_PATH: "/usr/lib/cni",
      ...(socket === "" ? {} : { BERTH_SOCKET: socket }),
    };
  }

  #configure(name: string, ipam: object): void {
    const config = { cniVersion: "1.0.0", name: NETWORK, type: "bridge", bridge: "cni0", ipam };
    writeFileSync(this.#file(name), JSON.stringify(config));
  }

  #file(name: string): string {
    return join(this.#folder, `${name}.json`);
  }
}

/** The address in what an ADD printed. */
export function addressIn(printed: string): string {
  return /"address":\s*"([^"]+)"/.exec(printed)?.[1] ?? "";
}
