// SPDX-License-Identifier: Apache-2.0
import { dirname } from "node:path";
import { type NetworkConfig, readConfig } from "./config.ts";
import { invalid } from "./drop-in.ts";
import { type CniError, isCniError } from "./errors.ts";
import { parseFields } from "./json-fields.ts";

/** Where whereabouts has what networks' configurations leave out, in the order in which it looks. */
const FLAT_FILES: readonly string[] = [
  "/etc/kubernetes/cni/net.d/whereabouts.d/whereabouts.conf",
  "/etc/cni/net.d/whereabouts.d/whereabouts.conf",
];

/**
 * Paths of the files of which the first that is there holds defaults for `ipam`; none: the network's plugin has no such file. Whoever
 * may write a network's configuration reads no other file of the host by it.
 */
export function flatFilesOf({ fields }: NetworkConfig): readonly string[] | CniError {
  const ipam = fields.section("ipam");
  if (ipam?.text("type") !== "whereabouts") return [];
  const own = ipam.text("configuration_path") ?? "";
  const folders = FLAT_FILES.map((file) => dirname(file));
  if (own === "") return FLAT_FILES;
  if (folders.includes(dirname(own)) && !own.endsWith("/..")) return [own, ...FLAT_FILES];
  return invalid(`ipam.configuration_path is read from ${folders.join(" and ")} alone; put the file there`);
}

/** The configuration with the file's keys where its own `ipam` has none. Both are JSON objects. */
export function withFlatFile(stdin: string, text: string, path: string): NetworkConfig | CniError {
  const flat = parseFields(text);
  if (isCniError(flat)) return { ...flat, msg: `${path} cannot be read: ${flat.msg}` };
  const config = objectOf(stdin);
  const ipam = objectOf(JSON.stringify(config["ipam"] ?? {}));
  const said = Object.keys(ipam).map((key) => key.toLowerCase());
  const defaults = Object.entries(objectOf(text)).filter(([key]) => !said.includes(key.toLowerCase()));
  return readConfig(JSON.stringify({ ...config, ipam: { ...Object.fromEntries(defaults), ...ipam } }));
}

function objectOf(text: string): Readonly<Record<string, unknown>> {
  const value: unknown = JSON.parse(text);
  return typeof value === "object" && value !== null ? { ...value } : {};
}
