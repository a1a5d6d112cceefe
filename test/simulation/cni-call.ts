// SPDX-License-Identifier: Apache-2.0

import type { Labels } from "../../allocator/base/ports.ts";
import type { Address } from "../../allocator/ip/address.ts";
import type { Answer } from "../../ipam-plugin/agent/rpc/connection.ts";
import type { Call } from "../../ipam-plugin/agent/rpc/frame.ts";
import type { Pod } from "./pod.ts";

/** An interface of a pod's sandbox, mostly the only one. It uses its addresses from the answer to its ADD until the runtime takes it down. */
export interface Sandbox {
  readonly id: string;
  readonly containerID: string;
  readonly interface: string;
  readonly pod: Pod;
  phase: "starting" | "up" | "down";
  /** Its addresses are of a block of its node, and no claim's. */
  fromBlock: boolean;
  addresses: readonly Address[];
}

/** One CNI call on its way, as the runtime sees it. */
export interface CniCall {
  readonly verb: "ADD" | "DEL";
  readonly sandbox: Sandbox;
  readonly call: Call;
  /** Ends the client. */
  readonly abort: AbortController;
  /** The runtime still waits for the answer. */
  heard: boolean;
}

const PLUGIN = { cniVersion: "1.0.0", name: "net", type: "bridge", ipam: { type: "berth", pools: ["web"] } };

export function netnsOf({ containerID }: Sandbox): string {
  return `/run/netns/${containerID}`;
}

/** The call as the CNI binary passes it on. */
export function callOf(verb: CniCall["verb"], sandbox: Sandbox, startNs: bigint): CniCall {
  const { namespace, name, uid, annotations, tellsUid } = sandbox.pod;
  const args = `IgnoreUnknown=1;K8S_POD_NAMESPACE=${namespace};K8S_POD_NAME=${name}`;
  const env = new Map([
    ["CNI_COMMAND", verb],
    ["CNI_CONTAINERID", sandbox.containerID],
    ["CNI_IFNAME", sandbox.interface],
    ["CNI_NETNS", netnsOf(sandbox)],
    ["CNI_ARGS", tellsUid ? `${args};K8S_POD_UID=${uid}` : args],
    ["CNI_PATH", "/opt/cni/bin"],
  ]);
  const stdin = Buffer.from(JSON.stringify(configOf(annotations)));
  return { verb, sandbox, call: { startNs, env, stdin }, abort: new AbortController(), heard: true };
}

function configOf(annotations: Labels): object {
  return { ...PLUGIN, runtimeConfig: { "io.kubernetes.cri.pod-annotations": annotations } };
}

/** What a successful ADD gave. */
export function addressesIn(answer: Answer): readonly Address[] {
  const { ips }: { readonly ips: readonly { readonly address: string }[] } = JSON.parse(answer.stdout);
  return ips.map(({ address }) => address.slice(0, address.indexOf("/")) as Address);
}

/** The words of a failed call. */
export function failureIn(answer: Answer): string {
  const { code, msg }: { readonly code: number; readonly msg: string } = JSON.parse(answer.stdout);
  return `${code}: ${msg}`;
}

/** Whether the journal's attachment is of that interface. */
export function isPlace(
  one: { readonly containerID: string; readonly interface: string },
  { containerID, interface: name }: Sandbox,
): boolean {
  return one.containerID === containerID && one.interface === name;
}
