// SPDX-License-Identifier: Apache-2.0
import { BerthError } from "../../allocator/base/errors.ts";
import { parseDuration } from "../../allocator/base/go-duration.ts";

/** One flag of a command, as it is read and as the help shows it. */
export interface Flag {
  readonly type: "string" | "boolean";
  readonly short?: string;
  readonly multiple?: boolean;
  /** What stands for the value in the help: DIR, FILE, N. */
  readonly value?: string;
  readonly about: string;
}

/** Long name -> flag. */
export type Flags = Readonly<Record<string, Flag>>;

export const DATA: Flag = {
  type: "string",
  value: "DIR",
  about: "data folder (default: $BERTH_DATA, else /var/lib/berth for root, ~/.local/share/berth for others)",
};
export const WAIT: Flag = {
  type: "string",
  value: "DURATION",
  about:
    "on a data folder, how long to wait for its stack to be ready; 0 not at all (default: 30s; to read an empty folder, 5s)",
};
/** How an etcd is reached that many hosts share. */
export const ETCD_FLAGS: Flags = {
  etcd: {
    type: "string",
    value: "URL[,URL]",
    about: "the etcd that hosts without Kubernetes share (default: $BERTH_ETCD)",
  },
  "etcd-cacert": {
    type: "string",
    value: "FILE",
    about: "PEM file of the authority that etcd's certificates are checked with",
  },
  "etcd-cert": { type: "string", value: "FILE", about: "PEM file of the client certificate for etcd" },
  "etcd-key": { type: "string", value: "FILE", about: "PEM file of its key" },
  "etcd-user": { type: "string", value: "NAME", about: "user of etcd, if it has users with passwords" },
  "etcd-password-file": { type: "string", value: "FILE", about: "file of the user's password" },
};

/** What chooses between a data folder and a cluster, for commands that work on both. */
export const TARGET_FLAGS: Flags = {
  data: DATA,
  kubeconfig: {
    type: "string",
    value: "FILE",
    about:
      "the cluster of this kubeconfig (default: $KUBECONFIG, else ~/.kube/config, else this pod's account)",
  },
  wait: WAIT,
  context: { type: "string", value: "NAME", about: "a context of the kubeconfig (default: its current one)" },
  ...ETCD_FLAGS,
};
export const DRY_RUN: Flag = { type: "boolean", about: "say what would happen and write nothing" };
export const NAMESPACE: Flag = {
  type: "string",
  short: "n",
  value: "NS",
  about: "namespace (default: that of the kubeconfig's context, else default)",
};
export const WAIT_MS = 30_000;
const HELP: Flag = { type: "boolean", short: "h", about: "print this" };

/** Called wrongly: exit code 2. */
export function usageError(message: string): BerthError {
  return new BerthError("CONFIG_INVALID", message);
}

export function needlessArgument(given: string): BerthError {
  return usageError(`${JSON.stringify(given)} is one argument too many`);
}

export function noEtcd(): BerthError {
  return usageError("there is no URL of etcd; give it with --etcd, or set BERTH_ETCD");
}

/** Of an address that somebody typed and that is none. */
export function noAddress(text: string, flag = ""): BerthError {
  const said = `${flag}${flag === "" ? "" : " "}${JSON.stringify(text)}`;
  return usageError(`${said} is not an IP address; write 10.20.0.51 or fd00:20::51, no prefix`);
}

/** Throws a misuse for NAMESPACE/NAME with another namespace in `-n`: only one of them can be meant. */
export function refuseTwoNamespaces(operand: string, given: string | undefined): void {
  const [namespace = "", ...name] = operand.split("/");
  if (given === undefined || name.length !== 1 || namespace === "" || namespace === given) return;
  if (/^(?:pod|ipclaim|claim)s?$/.test(namespace))
    throw usageError(`name it without ${namespace}/: ${name[0]} -n ${given}`);
  throw usageError("give the namespace once: in front of the name, or with -n");
}

/** Milliseconds of `WAIT`; throws a misuse for what is no duration. */
export function waitMsOf(text: string | undefined): number {
  const ms = text === undefined ? WAIT_MS : parseDuration(text);
  if (ms !== undefined) return ms;
  throw usageError(`--wait ${JSON.stringify(text)} is no duration such as 30s or 2m`);
}

/** The flags of a command, with the one that every command has. */
export function withHelp(flags: Flags): Flags {
  return { ...flags, help: HELP };
}
