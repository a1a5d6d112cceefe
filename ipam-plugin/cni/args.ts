// SPDX-License-Identifier: Apache-2.0
import { type Address, parseAddress } from "../../allocator/ip/address.ts";
import { type CniError, cniError } from "./errors.ts";

/** The pod that a sandbox belongs to. `uid` is empty when the runtime does not say; of a static pod it is a hash. */
interface PodArgs {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

/** What CNI_ARGS says to an IPAM plugin. */
export interface CniArgs {
  /** `IP=`, as written: `address[/prefix]` each. */
  readonly ips: readonly string[];
  readonly gateways: readonly Address[];
  /** `MAC=`, which main plugins read. */
  readonly mac?: string;
  /** Absent unless namespace and name are there: cnitool and others send neither. */
  readonly pod?: PodArgs;
  /** A container's name without a namespace, as podman says it. */
  readonly name?: string;
}

const KNOWN = new Set([
  "IgnoreUnknown",
  "IP",
  "GATEWAY",
  "MAC",
  "K8S_POD_NAMESPACE",
  "K8S_POD_NAME",
  "K8S_POD_INFRA_CONTAINER_ID",
  "K8S_POD_UID",
]);

/**
 * Reads `K=V;K=V` (CONVENTIONS, CNI_ARGS). Pairs come in any order and twice (the last wins), with empty values, with
 * `=` in the value (Multus), with a `;` too many (Calico); keys are case sensitive.
 */
export function readArgs(text: string): CniArgs | CniError {
  const pairs = new Map<string, string>(); // key -> value
  const unknown: string[] = [];
  let ignoreUnknown = false;
  for (const pair of text.split(";")) {
    if (pair === "") continue;
    const equals = pair.indexOf("=");
    if (equals < 0) return wrongArgs(`invalid pair ${JSON.stringify(pair)}`);
    const [key, value] = [pair.slice(0, equals), pair.slice(equals + 1)];
    if (!KNOWN.has(key)) unknown.push(JSON.stringify(pair));
    if (key === "IgnoreUnknown") {
      const flag = readFlag(value);
      if (flag === undefined) {
        return invalidArg(pair, `boolean unmarshal error: invalid input ${value.toLowerCase()}`);
      }
      ignoreUnknown = flag; // it may stand behind the pairs that it is about
    }
    pairs.set(key, value);
  }
  if (unknown.length > 0 && !ignoreUnknown) return wrongArgs(`unknown args [${unknown.join(" ")}]`);
  return assemble(pairs);
}

function assemble(pairs: ReadonlyMap<string, string>): CniArgs | CniError {
  const value = (key: string) => pairs.get(key) ?? "";
  const gateways: Address[] = [];
  for (const item of commaList(value("GATEWAY"))) {
    const gateway = parseAddress(item);
    if (gateway === undefined)
      return cniError("INVALID_ENVIRONMENT", `CNI_ARGS: invalid gateway address: ${item}`);
    gateways.push(gateway);
  }
  const pod = {
    namespace: value("K8S_POD_NAMESPACE"),
    name: value("K8S_POD_NAME"),
    uid: value("K8S_POD_UID"),
  };
  const mac = value("MAC");
  const args = { ips: commaList(value("IP")), gateways, ...(mac && { mac }) };
  if (pod.name === "") return args;
  return pod.namespace === "" ? { ...args, name: pod.name } : { ...args, pod };
}

function commaList(value: string): readonly string[] {
  return value
    .split(",")
    .map((item) => item.trim())
    .filter((item) => item !== "");
}

function readFlag(value: string): boolean | undefined {
  const folded = value.toLowerCase();
  if (folded === "1" || folded === "true") return true;
  return folded === "0" || folded === "false" ? false : undefined;
}

function wrongArgs(words: string): CniError {
  return cniError("INVALID_ENVIRONMENT", `ARGS: ${words}`, "CNI_ARGS");
}

/** The words of the reference, for those who search for them. */
export function invalidArg(pair: string, words: string): CniError {
  return wrongArgs(`error parsing value of pair ${JSON.stringify(pair)}: ${words}`);
}
