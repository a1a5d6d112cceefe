// SPDX-License-Identifier: Apache-2.0

import { messageOf } from "../../../allocator/base/errors.ts";
import type { Address } from "../../../allocator/ip/address.ts";
import { type CniArgs, readArgs } from "../../cni/args.ts";
import { type NetworkConfig, networkKeyOf, readVersion } from "../../cni/config.ts";
import { type CniError, cniError, isCniError } from "../../cni/errors.ts";
import { type IpamConfig, readIpam } from "../../cni/ipam-config.ts";
import { readMac, requestedAddresses } from "../../cni/requested.ts";
import type { Dns } from "../../cni/result.ts";
import type { Version } from "../../cni/versions.ts";
import { flatFilesOf, withFlatFile } from "../../cni/whereabouts.ts";
import type { Attachment, AttachmentId } from "../journal/attachment.ts";
import { processIn } from "../journal/host.ts";
import type { AgentServices, CniRequest } from "../services/services.ts";

/** An ADD, read and found to make sense. */
export interface AddRequest extends AttachmentId {
  readonly version: Version;
  readonly args: CniArgs;
  readonly ipam: IpamConfig;
  /** Each once, whatever the source. */
  readonly requested: readonly Address[];
  /** That the interface is going to have; absent: nobody says one. */
  readonly mac?: string;
  /** Of the configuration, for addresses that bring none of their own. */
  readonly dns: Dns;
  readonly netns: string;
  readonly netnsSeen: Attachment["netnsSeen"];
  readonly startNs: bigint;
}

export function attachmentIdOf({ invocation, config }: CniRequest): AttachmentId {
  return { scope: networkKeyOf(config), containerID: invocation.containerID, interface: invocation.ifname };
}

async function readIpamFor(
  request: CniRequest,
  version: Version,
  services: Pick<AgentServices, "networkWarnings" | "configurations" | "host">,
): Promise<Pick<AddRequest, "args" | "ipam"> | CniError> {
  const { networkWarnings, configurations } = services;
  const args = readArgs(request.invocation.args);
  if (isCniError(args)) return args;
  const full = await withDefaults(request, services);
  if (isCniError(full)) return full;
  const { config, stdin } = full;
  const read = () => readIpam(config.fields, version, args);
  // the version is the configuration's, too; an address that CNI_ARGS asks for is one pod's
  const ipam = args.ips.length > 0 ? read() : configurations.ipam(config.network, stdin, read);
  if (isCniError(ipam)) return ipam;
  networkWarnings.unread(config.network, ipam.unread);
  networkWarnings.beside(config.network, ipam.pools, ipam.besidePools ?? "");
  return { args, ipam };
}

/** What the node has for every network of a plugin, in a file of its own. The bytes are all that the configuration depends on. */
async function withDefaults(
  { call: { stdin }, config }: CniRequest,
  { host }: Pick<AgentServices, "host">,
): Promise<{ readonly config: NetworkConfig; readonly stdin: Buffer } | CniError> {
  const files = flatFilesOf(config);
  if (isCniError(files)) return files;
  for (const file of files) {
    const text = await host.read(file).catch((error: unknown) => {
      const isAbsent = error instanceof Error && "code" in error && error.code === "ENOENT";
      return isAbsent ? undefined : cniError("IO_FAILURE", `${file} cannot be read: ${messageOf(error)}`);
    });
    if (isCniError(text)) return text;
    if (text === undefined) continue;
    const full = withFlatFile(stdin.toString("utf8"), text, file);
    return isCniError(full) ? full : { config: full, stdin: Buffer.concat([stdin, Buffer.from(text)]) };
  }
  return { config, stdin };
}

/** The configuration alone, or what an ADD would say of it: whoever asks for STATUS names no attachment, and CNI_ARGS is one's. */
export async function readConfiguration(
  request: CniRequest,
  version: Version,
  services: AgentServices,
): Promise<IpamConfig | CniError> {
  const read = await readIpamFor(
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
  request: CniRequest,
  services: AgentServices,
): Promise<AddRequest | CniError> {
  const { call, invocation, config } = request;
  const version = readVersion(config, "ADD");
  if (isCniError(version)) return version;
  const read = await readIpamFor(request, version, services);
  if (isCniError(read)) return read;
  const { args, ipam } = read;
  const netns = await services.host.identity(invocation.netns);
  if (!invocation.netnsOverride && netns !== undefined && netns === services.hostNetns) {
    // The reference library looks only after its callback, when an address has been taken and printed.
    return cniError("INVALID_NETNS", "plugin's netns and netns from CNI_NETNS should not be the same");
  }
  const dns = await readDns(ipam, services);
  if (isCniError(dns)) return dns;
  const mac = readMac(config.fields, args);
  if (isCniError(mac)) return mac;
  return {
    ...attachmentIdOf(request),
    version,
    args,
    ipam,
    requested: requestedAddresses(ipam.requests),
    ...(mac && { mac }),
    dns,
    netns: processIn(invocation.netns) ?? invocation.netns, // a link to it goes while its process lives, as scripts for ip netns do
    netnsSeen: netns ?? false,
    startNs: call.startNs,
  };
}

type AddDecision =
  | { readonly kind: "fresh" }
  | { readonly kind: "repeat"; readonly attachment: Attachment }
  | { readonly kind: "refused"; readonly error: CniError };

/** What an ADD means, given what is known of its place. */
export function classifyAdd(
  known: Attachment | undefined,
  addRequest: Pick<AddRequest, "startNs" | "requested">,
): AddDecision {
  if (known === undefined) return { kind: "fresh" };
  if (known.state === "detached") return addRequest.startNs > known.deadlineNs ? { kind: "fresh" } : late();
  const held = known.result.addresses.map(({ address }) => address);
  const missing = addRequest.requested.find((address) => !held.includes(address));
  if (missing === undefined) return { kind: "repeat", attachment: known };
  const words = `${known.interface} of container ${known.containerID} has ${held.join(", ")} and asks for ${missing} now; delete it first`;
  return { kind: "refused", error: cniError("ATTACHMENT_DIFFERS", words) };
}

/** Its process outlived the sandbox; an address given now would stay taken, because no DEL will come any more. */
function late(): AddDecision {
  const error = cniError("SANDBOX_DELETED", "the sandbox was deleted while this ADD was under way");
  return { kind: "refused", error };
}

async function readDns({ resolvConf, dns }: IpamConfig, { host }: AgentServices): Promise<Dns | CniError> {
  if (resolvConf === "") return dns;
  try {
    return parseResolvConf(await host.read(resolvConf));
  } catch (error) {
    return cniError("IO_FAILURE", `ipam.resolvConf cannot be read: ${messageOf(error)}`);
  }
}

/**
 * The contents of a resolv.conf as host-local reads them: of `domain` the last, of everything else all of them, also
 * what resolv.conf(5) would ignore.
 */
export function parseResolvConf(text: string): Dns {
  const lines = text.split("\n").map((line) => line.trim().split(/\s+/));
  const valuesOf = (keyword: string) =>
    lines.filter(([key]) => key === keyword).map(([, ...values]) => values);
  const nameservers = valuesOf("nameserver").flatMap(([first]) => first ?? []);
  const domain = valuesOf("domain").findLast(([first]) => first !== undefined)?.[0];
  const search = valuesOf("search").flat();
  const options = valuesOf("options").flat();
  return {
    ...(nameservers.length === 0 ? {} : { nameservers }),
    ...(domain === undefined ? {} : { domain }),
    ...(search.length === 0 ? {} : { search }),
    ...(options.length === 0 ? {} : { options }),
  };
}
