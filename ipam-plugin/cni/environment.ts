// SPDX-License-Identifier: Apache-2.0
import { type CniError, cniError } from "./errors.ts";

/** What the runtime said in the environment. Variables that the command does not need may be empty. */
export interface Invocation {
  /** Not checked: an unknown one is refused after stdin was looked at, as in the reference. */
  readonly command: string;
  readonly containerID: string;
  readonly netns: string;
  readonly ifname: string;
  readonly args: string;
  /** CNI_NETNS_OVERRIDE: the sandbox may be the host's own namespace. */
  readonly netnsOverride: boolean;
}

interface Variable {
  readonly name: string;
  readonly requiredBy: readonly string[];
  /** Required by the reference and optional in the SPEC: named with others that are missing, but no reason by itself. */
  readonly wantedBy?: readonly string[];
  readonly check?: (value: string) => CniError | undefined;
}

/** Name of a network or container: it becomes a key, so nothing else gets in (SPEC section 2). */
const IDENTIFIER = /^[a-zA-Z0-9][a-zA-Z0-9_.-]*$/;
/** IFNAMSIZ of Linux is 16 with the closing zero. */
const LONGEST_IFNAME = 15;

const EVERY = ["ADD", "CHECK", "DEL", "GC", "STATUS"];
const ATTACHMENT = ["ADD", "CHECK", "DEL"];

/** In the order in which missing ones are named. GC and STATUS come with the attachment's variables empty. */
const VARIABLES: readonly Variable[] = [
  { name: "CNI_COMMAND", requiredBy: EVERY },
  { name: "CNI_CONTAINERID", requiredBy: ATTACHMENT, check: checkContainerID },
  { name: "CNI_NETNS", requiredBy: ["ADD", "CHECK"] },
  { name: "CNI_IFNAME", requiredBy: ATTACHMENT, check: checkInterface },
  { name: "CNI_PATH", requiredBy: ["GC"], wantedBy: EVERY },
];

export function isIdentifier(text: string): boolean {
  return IDENTIFIER.test(text);
}

/** Reads and checks the variables: bad values first, one at a time, then all that are missing in one message. */
export function readEnvironment(env: ReadonlyMap<string, string>): Invocation | CniError {
  const read = (name: string) => env.get(name) ?? "";
  const command = read("CNI_COMMAND");
  const missing: string[] = [];
  let refused = false;
  for (const { name, requiredBy, wantedBy = [], check } of VARIABLES) {
    const value = read(name);
    const required = requiredBy.includes(command);
    if (value !== "") {
      const problem = required ? check?.(value) : undefined;
      if (problem !== undefined) return problem;
    } else if (required || wantedBy.includes(command)) {
      missing.push(name);
      refused ||= required;
    }
  }
  if (refused)
    return cniError("INVALID_ENVIRONMENT", `required env variables [${missing.join(",")}] missing`);
  return {
    command,
    containerID: read("CNI_CONTAINERID"),
    netns: read("CNI_NETNS"),
    ifname: read("CNI_IFNAME"),
    args: read("CNI_ARGS"),
    netnsOverride: ["1", "TRUE"].includes(read("CNI_NETNS_OVERRIDE").toUpperCase()),
  };
}

function checkContainerID(value: string): CniError | undefined {
  if (isIdentifier(value)) return undefined;
  return cniError("INVALID_ENVIRONMENT", "invalid characters in containerID", value);
}

function checkInterface(value: string): CniError | undefined {
  if (Buffer.byteLength(value) > LONGEST_IFNAME) {
    const details = `interface name should be less than ${LONGEST_IFNAME + 1} characters`;
    return cniError("INVALID_ENVIRONMENT", "interface name is too long", details);
  }
  if (value === "." || value === "..") return cniError("INVALID_ENVIRONMENT", "interface name is . or ..");
  if (!/[/:]|\p{White_Space}/u.test(value)) return undefined;
  return cniError("INVALID_ENVIRONMENT", "interface name contains / or : or whitespace characters");
}
