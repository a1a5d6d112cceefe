// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { fileURLToPath } from "node:url";
import type { Kept } from "./api-server.ts";
import type { NetworkHost } from "./netns.ts";
import { type Ended, type Started, type StartOptions, start } from "./process.ts";
import type { StackFolder } from "./stack-folder.ts";

const BERTH = fileURLToPath(new URL("../../build/berth", import.meta.url));

export interface PodName {
  readonly namespace: string;
  readonly name: string;
  /** Empty: the runtime does not say. */
  readonly uid: string;
}

/** What a runtime knows of one sandbox. */
export interface Sandbox {
  readonly containerID: string;
  readonly interface: string;
  /** A path; one that does not exist is a sandbox of which nothing can be seen. */
  readonly netns: string;
  readonly pod?: PodName;
  /** Passed on as `io.kubernetes.cri.pod-annotations` if present. */
  readonly annotations?: Readonly<Record<string, string>>;
}

/** The parts of a result that tests look at. */
export interface Result {
  readonly cniVersion: string;
  readonly ips: readonly { readonly address: string; readonly gateway?: string }[];
  readonly routes?: readonly { readonly dst: string; readonly gw?: string }[];
  readonly dns?: object;
}

export type CniAnswer =
  | { readonly kind: "succeeded"; readonly result: Result | undefined }
  | { readonly kind: "failed"; readonly code: number; readonly msg: string; readonly details: string };

/** What a DEL or CHECK that succeeds answers: nothing. */
export const DONE: CniAnswer = { kind: "succeeded", result: undefined };

type Verb = "ADD" | "DEL" | "CHECK" | "GC";

export interface NetworkConfig {
  readonly cniVersion: string;
  readonly name: string;
  readonly type: string;
  readonly ipam: Readonly<Record<string, unknown>>;
  readonly [field: string]: unknown;
}

export interface RuntimeOptions {
  readonly socket: string;
  /** Absent: the IPAM plugin is called by itself, as the main plugin calls it. */
  readonly host?: NetworkHost;
  readonly network: NetworkConfig;
  /** A folder of further plugins. */
  readonly plugins?: string;
}

/** How one call is different from the others. */
export interface CallOptions {
  /** More pairs for CNI_ARGS. */
  readonly args?: string;
  /** Fields that replace or add to the network's. */
  readonly network?: Readonly<Record<string, unknown>>;
  readonly stdio?: StartOptions["stdio"];
  /** The caller writes the configuration and closes stdin. */
  readonly stdin?: "later";
}

/** The network of a cluster without a main plugin's particulars. */
export function networkOf(
  ipam: Readonly<Record<string, unknown>> = {},
  more: Partial<NetworkConfig> = {},
): NetworkConfig {
  return { cniVersion: "1.0.0", name: "net", type: "bridge", ...more, ipam: { type: "berth", ...ipam } };
}

/** A new sandbox of a pod: another container id, and nothing to see at its path unless one is given. */
export function sandboxOf(pod: PodName | Kept | undefined, more: Partial<Sandbox> = {}): Sandbox {
  const containerID = randomBytes(32).toString("hex");
  const named = pod === undefined ? {} : { pod: "metadata" in pod ? nameOf(pod) : pod };
  return { containerID, interface: "eth0", netns: `/nowhere/netns/${containerID}`, ...named, ...more };
}

function nameOf({ metadata }: Kept): PodName {
  return { namespace: metadata.namespace ?? "", name: metadata.name, uid: metadata.uid };
}

/** A container runtime with one network: calls its plugin as containerd does. */
export class Runtime {
  readonly #options: RuntimeOptions;

  constructor(options: RuntimeOptions) {
    this.#options = options;
  }

  async add(sandbox: Sandbox, options: CallOptions = {}): Promise<CniAnswer> {
    return read(await this.start("ADD", sandbox, options).ended);
  }

  /** An ADD that must succeed: the addresses with their prefix lengths. */
  async attach(sandbox: Sandbox, options: CallOptions = {}): Promise<readonly string[]> {
    const answer = await this.add(sandbox, options);
    assert.equal(answer.kind, "succeeded", answer.kind === "failed" ? answer.msg : "");
    return addressesIn(answer);
  }

  /** A DEL, which always succeeds and prints nothing. */
  async detach(sandbox: Sandbox, options: CallOptions = {}): Promise<void> {
    const { rc, stdout, stderr } = await this.start("DEL", sandbox, options).ended;
    assert.equal(`${rc} ${stdout}`, "0 ", stderr);
  }

  async check(sandbox: Sandbox, options: CallOptions = {}): Promise<CniAnswer> {
    return read(await this.start("CHECK", sandbox, options).ended);
  }

  /** A GC, which must succeed, with the sandboxes that are still there. */
  async collect(valid: readonly Sandbox[]): Promise<void> {
    const list = valid.map((one) => ({ containerID: one.containerID, ifname: one.interface }));
    const nobody = { containerID: "", interface: "", netns: "" };
    const call = this.start("GC", nobody, { network: { "cni.dev/valid-attachments": list } });
    const { rc, stdout, stderr } = await call.ended;
    assert.equal(`${rc} ${stdout}`, "0 ", stderr);
  }

  /** A call that its caller may kill. */
  start(verb: Verb, sandbox: Sandbox, { args, network = {}, stdio, stdin: when }: CallOptions = {}): Started {
    const { socket, host, plugins } = this.#options;
    const path = host?.cniPath ?? "/usr/lib/cni";
    const [command, ...rest] = host === undefined ? [BERTH] : host.command(this.#options.network.type);
    const config = JSON.stringify({ ...this.#options.network, ...capabilitiesFor(sandbox), ...network });
    const env = {
      CNI_COMMAND: verb,
      CNI_CONTAINERID: sandbox.containerID,
      CNI_NETNS: sandbox.netns,
      CNI_IFNAME: sandbox.interface,
      CNI_ARGS: [argsFor(sandbox), args].filter((part) => part !== undefined).join(";"),
      CNI_PATH: plugins === undefined ? path : `${plugins}:${path}`,
      BERTH_SOCKET: socket,
      PATH: "/usr/sbin:/usr/bin:/sbin:/bin",
    };
    return start(command, rest, {
      env,
      stdin: when ?? { text: config },
      ...(stdio === undefined ? {} : { stdio }),
    });
  }
}

function argsFor({ pod, containerID }: Sandbox): string {
  const pairs = [
    "IgnoreUnknown=1",
    ...(pod === undefined ? [] : [`K8S_POD_NAMESPACE=${pod.namespace}`, `K8S_POD_NAME=${pod.name}`]),
    `K8S_POD_INFRA_CONTAINER_ID=${containerID}`,
    ...(pod === undefined || pod.uid === "" ? [] : [`K8S_POD_UID=${pod.uid}`]),
  ];
  return pairs.join(";");
}

function capabilitiesFor({ annotations }: Sandbox): object {
  if (annotations === undefined) return {};
  return {
    capabilities: { "io.kubernetes.cri.pod-annotations": true },
    runtimeConfig: { "io.kubernetes.cri.pod-annotations": annotations },
  };
}

function read({ rc, stdout, stderr }: Ended): CniAnswer {
  if (rc === 0)
    return { kind: "succeeded", result: stdout === "" ? undefined : (JSON.parse(stdout) as Result) };
  if (stdout === "") assert.fail(`the plugin failed (${rc}) without a word on stdout: ${stderr}`);
  const { code, msg, details = "" } = JSON.parse(stdout) as { code: number; msg: string; details?: string };
  return { kind: "failed", code, msg, details };
}

/** Addresses of a result with their prefix lengths; none when the call failed. */
export function addressesIn(answer: CniAnswer): readonly string[] {
  return answer.kind === "succeeded" ? (answer.result?.ips ?? []).map(({ address }) => address) : [];
}

/** The error of a call that must fail. */
export function failureOf(answer: CniAnswer): { readonly code: number; readonly msg: string } {
  if (answer.kind === "failed") return { code: answer.code, msg: answer.msg };
  return assert.fail(`it succeeded: ${addressesIn(answer).join(", ")}`);
}

/** Sends a DEL for everything that is attached; answers with the containers. */
export async function detachAll(stack: StackFolder): Promise<readonly string[]> {
  const left = await stack.read(async ({ attachments }) => attachments());
  for (const { scope, containerID, interface: name } of left) {
    const runtime = new Runtime({ socket: stack.socket, network: networkOf({}, { name: scope.network }) });
    await runtime.detach({ containerID, interface: name, netns: "" });
  }
  return left.map(({ containerID }) => containerID);
}
