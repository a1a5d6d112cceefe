// SPDX-License-Identifier: Apache-2.0
import { dirname } from "node:path";
import {
  type Address,
  bitsOf,
  type Cidr,
  familyOf,
  fromNumber,
  lastOf,
  parseAddress,
  parseCidr,
  toNumber,
} from "../../allocator/ip/address.ts";
import { contains, type Interval, intersection, merge, without } from "../../allocator/ip/ip-range.ts";
import { type NetworkConfig, readConfig } from "./config.ts";
import { type DropIn, invalid, type Want } from "./drop-in.ts";
import { type CniError, isCniError } from "./errors.ts";
import { type Fields, parseFields } from "./json-fields.ts";
import { usualBounds } from "./range-set.ts";

/**
 * `range` and each of `ipRanges`. A range begins at its network's first address, whatever host bits it is written with, unless it is
 * `first-last/length` or has `range_start` and `range_end` beside it.
 */
export function readWhereabouts(ipam: Fields): DropIn | CniError {
  if (ipam.list("addresses").length > 0)
    return invalid(
      "ipam.addresses beside ranges is not served: a pod's fixed address is asked for with berth.dev/ips; take it out",
    );
  if (ipam.flag("enable_l3"))
    return invalid(
      "ipam.enable_l3 is not served: berth gives no pod the first or last address of a network; take it out, and make a pool with the range that is to be given",
    );
  const gateway = parseAddress(ipam.text("gateway") ?? "");
  const entries = [...(ipam.text("range") ? [ipam] : []), ...ipam.sections("ipRanges")];
  if (ipam.problem !== undefined) return ipam.problem;
  if (entries.length === 0)
    return invalid("ipam.range and ipam.ipRanges are missing; write for example 192.168.2.0/24");
  const wants: Want[] = [];
  for (const entry of entries) {
    const want = readRange(entry, gateway);
    if (isCniError(want)) return want;
    const twin = wants.find(({ family }) => family === want.family);
    if (twin !== undefined)
      return invalid(
        `${twin.field} and ${want.field} are both ${want.family ?? ""}, and berth gives an interface one address of each family; take one out`,
      );
    wants.push(want);
  }
  return { type: "whereabouts", wants, families: wants.flatMap(({ family }) => family ?? []) };
}

interface Bounds {
  readonly cidr: Cidr;
  readonly first: bigint;
  readonly last: bigint;
}

function readRange(entry: Fields, gateway: Address | undefined): Want | CniError {
  const field = entry.nameOf("range");
  const text = entry.text("range") ?? "";
  const bounds = readBounds(text, field, entry);
  if (isCniError(bounds)) return bounds;
  const { cidr, first, last } = bounds;
  const whole = { first: cidr.base, last: lastOf(cidr) };
  const exclude: string[] = [];
  const holes: Interval[] = [];
  for (const one of entry.texts("exclude")) {
    const hole = parseCidr(one) ?? parseCidr(`${one}/${bitsOf(cidr.family)}`);
    if (hole?.family !== cidr.family)
      return invalid(`${entry.nameOf("exclude")}: ${one} is no ${cidr.family} address or CIDR`);
    const interval = { first: hole.base, last: lastOf(hole) };
    // it takes nothing out, and a pool that is made with it is refused
    if (intersection(interval, whole) === undefined) continue;
    exclude.push(hole.text);
    holes.push(interval);
  }
  if (entry.problem !== undefined) return entry.problem;
  // whereabouts' own example has a gateway that is outside of the range's network, where no kernel reaches it
  const reached = gateway !== undefined && isIn(cidr, gateway) ? { gateway } : {};
  const { family } = cidr;
  const network = {
    ...{ cidr, isWhole: true, exclude, ...reached },
    open: without([{ first, last }], merge(holes)),
    from: fromNumber(first, family),
    to: fromNumber(last, family),
  };
  return { field, family, of: [network] };
}

/** `first-last/length`, or a network, with `range_start` and `range_end`. */
function readBounds(text: string, field: string, entry: Fields): Bounds | CniError {
  const [, head, tail = ""] = /^([^-/]+)-(.+)$/.exec(text) ?? [];
  const cidr = parseCidr(head === undefined ? text : tail);
  if (cidr === undefined) return invalid(`${field}: ${text} is no CIDR such as 192.168.2.0/24`);
  const usual = usualBounds(cidr);
  if (usual === undefined) return invalid(`${field}: ${text} is too small to give addresses of`);
  const ends = {
    first: readEnd(entry, "range_start", head),
    last: readEnd(entry, "range_end", head && tail.split("/")[0]),
  };
  if (isCniError(ends.first)) return ends.first;
  if (isCniError(ends.last)) return ends.last;
  const outside = [ends.first, ends.last].find((end) => end !== undefined && !isIn(cidr, end));
  if (outside !== undefined) return invalid(`${field}: ${outside} is not in ${cidr.text}`);
  const first = ends.first === undefined ? usual.first : toNumber(ends.first);
  const last = ends.last === undefined ? usual.last : toNumber(ends.last);
  return first <= last ? { cidr, first, last } : invalid(`${field} ends before it begins`);
}

function readEnd(entry: Fields, key: string, inRange: string | undefined): Address | undefined | CniError {
  const text = entry.text(key) || inRange;
  if (!text) return undefined;
  return parseAddress(text) ?? invalid(`${entry.nameOf(key)}: ${text} is no address`);
}

function isIn(cidr: Cidr, address: Address): boolean {
  return (
    familyOf(address) === cidr.family && contains({ first: cidr.base, last: lastOf(cidr) }, toNumber(address))
  );
}

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
