// SPDX-License-Identifier: Apache-2.0
import { posix } from "node:path";
import { isIdentifier } from "./environment.ts";
import { type CniError, cniError, isCniError } from "./errors.ts";
import { type Fields, parseFields } from "./json-fields.ts";
import { negotiate, OLDEST, type Version } from "./versions.ts";

/** host-local's default. Nothing is written there: it only names a space of addresses. */
const DEFAULT_DATA_DIR = "/var/lib/cni/networks";

/** A network configuration of which only the name is known to be good: all that a DEL may need. */
export interface NetworkConfig {
  readonly network: string;
  readonly fields: Fields;
}

/**
 * The space in which attachments and addresses are unique: as with host-local, two `dataDir`s are two worlds even
 * if their networks have one name.
 */
export interface NetworkKey {
  readonly network: string;
  /** Normal form: absolute, no closing slash. */
  readonly dataDir: string;
}

/** One entry of the list that GC is given. */
export interface ValidAttachment {
  readonly containerID: string;
  readonly ifname: string;
}

/** Reads stdin as far as every command needs it: one JSON object with a name. */
export function readConfig(stdin: string): NetworkConfig | CniError {
  const fields = parseFields(stdin);
  if (isCniError(fields)) return fields;
  const network = fields.text("name") ?? "";
  if (fields.problem !== undefined) return prefixed("error unmarshall network config", fields.problem);
  if (network === "") return cniError("INVALID_CONFIG", "missing network name");
  if (isIdentifier(network)) return { network, fields };
  return cniError("INVALID_CONFIG", "invalid characters found in network name", network);
}

/** The version to answer in; none and "" mean 0.1.0. */
export function readVersion({ fields }: NetworkConfig, command: string): Version | CniError {
  const text = fields.text("cniVersion") || OLDEST;
  if (fields.problem !== undefined) return prefixed("decoding version from network config", fields.problem);
  return negotiate(command, text);
}

/** A `dataDir` that cannot be read counts as absent here: with such a one nothing was ever attached. */
export function networkKeyOf({ network, fields }: NetworkConfig): NetworkKey {
  const dataDir = fields.section("ipam")?.text("dataDir") || DEFAULT_DATA_DIR;
  return { network, dataDir: posix.resolve("/", dataDir) };
}

/**
 * What GC may keep; undefined when the list is absent, which is no word about any attachment. null and [] say that
 * none is valid. `cni.dev/attachments` is what spec-v1.1.0 was tagged with: older runtimes send only that one.
 */
export function readValidAttachments(fields: Fields): readonly ValidAttachment[] | CniError | undefined {
  const key = ["cni.dev/valid-attachments", "cni.dev/attachments"].find((name) => fields.has(name));
  if (key === undefined) return undefined;
  const valid = fields.sections(key).map((entry) => ({
    containerID: entry.text("containerID") ?? "",
    ifname: entry.text("ifname") ?? "",
  }));
  if (fields.problem !== undefined) return fields.problem;
  const nameless = valid.findIndex((entry) => entry.containerID === "" || entry.ifname === "");
  if (nameless < 0) return valid;
  return cniError("INVALID_CONFIG", `${key}[${nameless}] needs containerID and ifname; nothing was freed`);
}

function prefixed(words: string, problem: CniError): CniError {
  return { ...problem, msg: `${words}: ${problem.msg}` };
}
