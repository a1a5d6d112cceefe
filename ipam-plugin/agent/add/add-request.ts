// SPDX-License-Identifier: Apache-2.0

import { messageOf } from "../../../allocator/base/errors.ts";
import type { Address } from "../../../allocator/ip/address.ts";
import { type CniArgs, readArgs } from "../../cni/args.ts";
import { networkKeyOf, readVersion } from "../../cni/config.ts";
import { type CniError, cniError, isCniError } from "../../cni/errors.ts";
import { type IpamConfig, readIpam } from "../../cni/ipam-config.ts";
import { requestedAddresses } from "../../cni/requested-ips.ts";
import type { Dns } from "../../cni/result.ts";
import type { Version } from "../../cni/versions.ts";
import type { Attachment, AttachmentId } from "../journal/attachment.ts";
import type { AgentServices, Request } from "../services/services.ts";
import { parseResolvConf } from "./resolv-conf.ts";

/** An ADD, read and found to make sense. */
export interface AddRequest extends AttachmentId {
  readonly version: Version;
  readonly args: CniArgs;
  readonly ipam: IpamConfig;
  /** Each once, whatever the source. */
  readonly requested: readonly Address[];
  /** Of the configuration, for addresses that bring none of their own. */
  readonly dns: Dns;
  readonly netns: string;
  readonly netnsSeen: boolean;
  readonly startNs: bigint;
}

export function attachmentIdOf({ invocation, config }: Request): AttachmentId {
  return { scope: networkKeyOf(config), containerID: invocation.containerID, interface: invocation.ifname };
}

function readIpamFor(
  { call, invocation, config }: Request,
  version: Version,
  { networkWarnings, configurations }: Pick<AgentServices, "networkWarnings" | "configurations">,
): Pick<AddRequest, "args" | "ipam"> | CniError {
  const args = readArgs(invocation.args);
  if (isCniError(args)) return args;
  const read = () => readIpam(config.fields, version, args);
  // the version is the configuration's, too; an address that CNI_ARGS asks for is one pod's
  const ipam = args.ips.length > 0 ? read() : configurations.ipam(config.network, call.stdin, read);
  if (isCniError(ipam)) return ipam;
  networkWarnings.unread(config.network, ipam.unread);
  networkWarnings.beside(config.network, ipam.pools, ipam.besidePools ?? "");
  return { args, ipam };
}

/** The configuration alone, or what an ADD would say of it: whoever asks for STATUS names no attachment, and CNI_ARGS is one's. */
export async function readConfiguration(
  request: Request,
  version: Version,
  services: AgentServices,
): Promise<IpamConfig | CniError> {
  const read = readIpamFor(
    { ...request, invocation: { ...request.invocation, args: "" } },
    version,
    services,
  );
  if (isCniError(read)) return read;
  const dns = await readDns(read.ipam, services);
  return isCniError(dns) ? dns : read.ipam;
}

/** Everything that can refuse an ADD before anything is taken for it. */
export async function readAddRequest(
  request: Request,
  services: AgentServices,
): Promise<AddRequest | CniError> {
  const { call, invocation, config } = request;
  const version = readVersion(config, "ADD");
  if (isCniError(version)) return version;
  const read = readIpamFor(request, version, services);
  if (isCniError(read)) return read;
  const { args, ipam } = read;
  if (!invocation.netnsOverride && (await isHostNetns(invocation.netns, services))) {
    // The reference library looks only after its callback, when an address has been taken and printed.
    return cniError("INVALID_NETNS", "plugin's netns and netns from CNI_NETNS should not be the same");
  }
  const dns = await readDns(ipam, services);
  if (isCniError(dns)) return dns;
  return {
    ...attachmentIdOf(request),
    version,
    args,
    ipam,
    requested: requestedAddresses(ipam.requests),
    dns,
    netns: invocation.netns,
    netnsSeen: (await services.host.look(invocation.netns)) === "present",
    startNs: call.startNs,
  };
}

export type AddDecision =
  | { readonly kind: "fresh" }
  | { readonly kind: "repeat"; readonly attachment: Attachment }
  | { readonly kind: "refused"; readonly error: CniError };

/** What an ADD means, given what is known of its place. */
export function classifyAdd(
  known: Attachment | undefined,
  ask: Pick<AddRequest, "startNs" | "requested">,
): AddDecision {
  if (known === undefined) return { kind: "fresh" };
  if (known.state === "detached") return ask.startNs > known.deadlineNs ? { kind: "fresh" } : late();
  const held = known.result.addresses.map(({ address }) => address);
  const missing = ask.requested.find((address) => !held.includes(address));
  if (missing === undefined) return { kind: "repeat", attachment: known };
  const words = `${known.interface} of container ${known.containerID} has ${held.join(", ")} and asks for ${missing} now; delete it first`;
  return { kind: "refused", error: cniError("ATTACHMENT_DIFFERS", words) };
}

/** Its process outlived the sandbox; an address given now would stay taken, because no DEL will come any more. */
function late(): AddDecision {
  const error = cniError("SANDBOX_DELETED", "the sandbox was deleted while this ADD was under way");
  return { kind: "refused", error };
}

async function isHostNetns(path: string, { host, hostNetns }: AgentServices): Promise<boolean> {
  return hostNetns !== undefined && (await host.identity(path)) === hostNetns;
}

async function readDns({ resolvConf, dns }: IpamConfig, { host }: AgentServices): Promise<Dns | CniError> {
  if (resolvConf === "") return dns;
  try {
    return parseResolvConf(await host.read(resolvConf));
  } catch (error) {
    return cniError("IO_FAILURE", `ipam.resolvConf cannot be read: ${messageOf(error)}`);
  }
}
