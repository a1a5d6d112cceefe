// SPDX-License-Identifier: Apache-2.0
import { readArgs } from "../../cni/args.ts";
import { readVersion } from "../../cni/config.ts";
import { type CniError, cniError, isCniError } from "../../cni/errors.ts";
import { readIpam } from "../../cni/ipam-config.ts";
import { type PreviousAddress, readPrevious } from "../../cni/prev-result.ts";
import type { ResultAddress } from "../../cni/result.ts";
import { staticAddresses } from "../../cni/static.ts";
import { attachmentIdOf } from "../add/add-request.ts";
import type { Answer } from "../rpc/connection.ts";
import { errorVersion, fail, succeed } from "../rpc/reply.ts";
import type { AgentServices, CniRequest } from "../services/services.ts";

/** What the attachment should have, and whether prevResult must be there to prove it. */
interface Expected {
  readonly addresses: readonly ResultAddress[];
  readonly written: boolean;
}

/** Whether the addresses are still the pod's, and are those of prevResult. Others may have been added to it since. */
export async function check(request: CniRequest, services: AgentServices): Promise<Answer> {
  const problem = findProblem(request, services);
  return problem === undefined ? succeed() : fail(errorVersion(request.config.fields), problem);
}

function findProblem(request: CniRequest, services: AgentServices): CniError | undefined {
  const expected = readExpected(request, services);
  if (isCniError(expected)) return expected;
  const previous = readPrevious(request.config.fields);
  if (isCniError(previous)) return previous;
  if (previous === undefined) {
    return expected.written ? cniError("INVALID_CONFIG", "Required prevResult missing") : undefined;
  }
  return compare(expected, previous, request.invocation.ifname);
}

function readExpected(request: CniRequest, services: AgentServices): Expected | CniError {
  const { config, invocation } = request;
  const version = readVersion(config, "CHECK");
  if (isCniError(version)) return version;
  const args = readArgs(invocation.args);
  if (isCniError(args)) return args;
  const ipam = readIpam(config.fields, version, args);
  if (isCniError(ipam)) return ipam;
  const known = services.attachments.get(attachmentIdOf(request));
  if (known?.state === "attached") {
    return { addresses: known.result.addresses, written: known.source === "static" };
  }
  // Addresses that the configuration writes out are reserved nowhere: it is the configuration that must still agree.
  const written = ipam.rangeSets.length > 0 ? [] : staticAddresses(ipam, version, args);
  if (isCniError(written)) return written;
  if (written.length > 0) return { addresses: written, written: true };
  const { containerID, ifname } = invocation;
  const words = `Failed to find address added by container ${containerID} for ${ifname} in network ${config.network}`;
  return cniError("NOT_ATTACHED", words);
}

function compare(
  { addresses, written }: Expected,
  previous: readonly PreviousAddress[],
  ifname: string,
): CniError | undefined {
  for (const { address, gateway } of addresses) {
    const found = previous.find((entry) => entry.address === address);
    if (found === undefined)
      return cniError("ATTACHMENT_DIFFERS", `${address} of ${ifname} is missing in prevResult`);
    if (written && gateway !== undefined && found.gateway !== gateway) {
      return cniError("ATTACHMENT_DIFFERS", `Failed to match addr ${address} on interface ${ifname}`);
    }
  }
  return undefined;
}
