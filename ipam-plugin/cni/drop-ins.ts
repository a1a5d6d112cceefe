// SPDX-License-Identifier: Apache-2.0
// Configurations of other IPAM plugins, by `ipam.type`. docs/drop-ins.md shows this table (scripts/drop-ins.ts).
import {
  FAMILIES,
  type Family,
  familyOf,
  lastOf,
  parseAddress,
  parseCidr,
  toNumber,
} from "../../allocator/ip/address.ts";
import { fullInterval } from "../../allocator/ip/ip-range.ts";
import { type DropIn, invalid, type Want } from "./drop-in.ts";
import { type CniError, isCniError } from "./errors.ts";
import { RANGE_KEYS } from "./ipam-keys.ts";
import type { Fields } from "./json-fields.ts";
import { type RangeSet, readRangeSets } from "./range-set.ts";
import { readWhereabouts } from "./whereabouts.ts";

/** A network's `ipam` as its own plugin's documents show it, and what Berth takes it for. */
export interface DropInRow {
  readonly type: string;
  /** Without `type`. */
  readonly example: Readonly<Record<string, unknown>>;
  readonly means: string;
  /** Keys that decide on addresses. */
  readonly keys: readonly string[];
  /** Keys that are known, and change nothing of what a pod gets. */
  readonly idle: readonly string[];
  readonly read: (ipam: Fields) => DropIn | CniError;
}

const COMMON = ["type", "name", "routes", "dns"];
const LOGS = ["log_file", "log_level", "log_file_path", "log_file_max_size", "log_file_max_age"];

export const DROP_INS: readonly DropInRow[] = [
  {
    type: "whereabouts",
    example: {
      range: "192.168.2.225/28",
      exclude: ["192.168.2.229/30", "192.168.2.236/32"],
      gateway: "192.168.2.1",
    },
    means:
      "an address of a pool that lies in the range, without what is excluded, and has its network (and its gateway, if that is in the network); with `ipRanges` one of each family",
    keys: ["range", "range_start", "range_end", "exclude", "ipRanges", "gateway", "addresses", "enable_l3"],
    idle: [
      ...["datastore", "kubernetes", "configuration_path", "network_name", "sleep_for_race", ...LOGS],
      ...["enable_overlapping_ranges", "overlapping_ranges", "node_slice_size"],
      ...[
        "etcd_host",
        "etcd_username",
        "etcd_password",
        "etcd_key_file",
        "etcd_cert_file",
        "etcd_ca_cert_file",
      ],
      ...["leader_lease_duration", "leader_renew_deadline", "leader_retry_period"],
      "reconciler_cron_expression",
    ],
    read: readWhereabouts,
  },
  {
    type: "antrea",
    example: { ippools: ["ipv4-pool-1", "ipv6-pool-1"] },
    means:
      "an address of each family of the pools that are called like these; without `ippools` of whichever serve the pod",
    keys: ["ippools", "addresses"],
    idle: [],
    read: readAntrea,
  },
  {
    type: "spiderpool",
    example: {
      default_ipv4_ippool: ["default-v4-ippool", "backup-v4-ippool"],
      default_ipv6_ippool: ["default-v6-ippool"],
    },
    means:
      "an address of each family that is listed, of the first of its pools that has one; without lists of whichever serve the pod",
    keys: ["default_ipv4_ippool", "default_ipv6_ippool"],
    idle: [...LOGS, "log_file_max_count", "ipam_unix_socket_path", "match_master_subnet"],
    read: readSpiderpool,
  },
  {
    type: "calico-ipam",
    example: {
      assign_ipv4: "true",
      assign_ipv6: "false",
      ipv4_pools: ["10.0.0.0/24", "20.0.0.0/16", "default-ipv4-ippool"],
    },
    means:
      "an address of each family that is assigned (IPv4 unless said otherwise), of the first of its pools that has one; a CIDR is every pool that lies in it",
    keys: ["assign_ipv4", "assign_ipv6", "ipv4_pools", "ipv6_pools"],
    idle: [],
    read: readCalico,
  },
  {
    type: "kube-ipam",
    example: {
      kubeConfig: "/etc/kubernetes/pki/kubectl.kubeconfig",
      etcdConfig: { etcdURL: "https://192.168.1.50:2379" },
      subnet: "10.188.0.0/16",
      rangeStart: "10.188.0.10",
      rangeEnd: "10.188.0.200",
      gateway: "10.188.0.1",
    },
    means: "an address of a pool that lies in the range; where the agents serve networks in etcd, as `etcd`",
    keys: ["etcdConfig", "ranges", ...RANGE_KEYS, "resolvConf"],
    idle: ["kubeConfig"],
    read: readKubeIpam,
  },
  {
    type: "static-ipam",
    example: {
      addresses: [{ address: "172.31.204.19/16", gateway: "172.31.0.1" }],
      routes: [{ dst: "0.0.0.0/0" }],
    },
    means:
      "the address that the pod's annotation `static-ipam.ipv4` named at admission; a pod without one is refused",
    keys: ["addresses"],
    idle: [],
    read: readStaticIpam,
  },
];

/** Names that read as `type: berth` does, with the same keys. */
const SAME_AS_BERTH: readonly string[] = ["host-local", "static", "etcd", "ipam-etcd"];

/** What the plugin may be called besides `berth`. */
export const ALIASES: readonly string[] = [...SAME_AS_BERTH, ...DROP_INS.map(({ type }) => type)];

export function dropInOf(type: string | undefined): DropInRow | undefined {
  return DROP_INS.find((row) => row.type === type);
}

/** Every key that the row's plugin knows. */
export function keysOf({ keys, idle }: DropInRow): readonly string[] {
  return [...COMMON, ...keys, ...idle];
}

function readAntrea(ipam: Fields): DropIn | CniError {
  const names = ipam.texts("ippools");
  if (names.length === 0 || ipam.list("addresses").length === 0)
    return { type: "antrea", wants: names.map((name) => ({ field: "ipam.ippools", of: [name] })) };
  const words =
    "ipam.addresses beside ipam.ippools is not served: a pod gets of one of them alone; take one out";
  return invalid(words);
}

function readSpiderpool(ipam: Fields): DropIn {
  const listed = byFamily((family) => [
    `default_ip${family}_ippool`,
    ipam.texts(`default_ip${family}_ippool`),
  ]);
  const wants = listed.filter(({ of }) => of.length > 0);
  const families = wants.flatMap(({ family }) => family ?? []);
  return { type: "spiderpool", wants, ...(families.length > 0 && { families }) };
}

function readCalico(ipam: Fields): DropIn | CniError {
  const assigned: Family[] = [];
  for (const [key, family, otherwise] of [
    ["assign_ipv4", "IPv4", "true"],
    ["assign_ipv6", "IPv6", "false"],
  ] as const) {
    const text = ipam.text(key) || otherwise;
    if (text !== "true" && text !== "false") return invalid(`ipam.${key} is neither "true" nor "false"`);
    if (text === "true") assigned.push(family);
  }
  if (assigned.length === 0)
    return invalid("ipam.assign_ipv4 and ipam.assign_ipv6 are both false; assign one");
  const wants: Want[] = [];
  for (const want of byFamily((v) => [`ip${v}_pools`, ipam.texts(`ip${v}_pools`)])) {
    if (want.of.length === 0 || want.family === undefined || !assigned.includes(want.family)) continue;
    const of = want.of.map((one) => networkOf(String(one)) ?? one);
    const other = of.find((one) => typeof one !== "string" && one.cidr.family !== want.family);
    if (other !== undefined) return invalid(`${want.field} has a CIDR that is not ${want.family}`);
    wants.push({ ...want, of });
  }
  return { type: "calico-ipam", wants, families: assigned };
}

function byFamily(
  of: (version: "v4" | "v6") => readonly [key: string, names: readonly string[]],
): readonly Want[] {
  return FAMILIES.map((family) => {
    const [key, names] = of(family === "IPv4" ? "v4" : "v6");
    return { field: `ipam.${key}`, family, of: names };
  });
}

function networkOf(text: string) {
  const cidr = parseCidr(text);
  return cidr && { cidr, open: [fullInterval(cidr)] };
}

function readKubeIpam(ipam: Fields): DropIn | CniError {
  const single = ipam.text("subnet") ? [[ipam]] : [];
  const listed = [...single, ...ipam.sectionLists("ranges")];
  const turned = listed.flat().find(isTurned);
  if (turned !== undefined)
    return invalid(
      `${turned.nameOf("rangeEnd")} is before rangeStart; write the first address as rangeStart`,
    );
  const sets = readRangeSets(listed);
  if (isCniError(sets)) return sets;
  const gateway = parseAddress(ipam.text("gateway") ?? "");
  const wants = sets.map((set, i): Want => {
    const field = i === 0 && single.length > 0 ? "ipam.subnet" : "ipam.ranges";
    return {
      field,
      family: set[0].family,
      of: networksOf(set, field === "ipam.subnet" ? gateway : undefined),
    };
  });
  if (wants.length === 0) return invalid("ipam.subnet is missing; write for example 10.188.0.0/16");
  return { type: "kube-ipam", wants, families: wants.flatMap(({ family }) => family ?? []) };
}

/** host-local's words of it are that the end is not in the network. */
function isTurned(set: Fields): boolean {
  const ends = ["rangeStart", "rangeEnd"].map((key) => parseAddress(set.text(key) ?? ""));
  const [first, last] = ends;
  if (first === undefined || last === undefined || familyOf(first) !== familyOf(last)) return false;
  return toNumber(last) < toNumber(first);
}

function networksOf(set: RangeSet, gateway: ReturnType<typeof parseAddress>): Want["of"] {
  return set.map(({ cidr, bounds }) => ({
    ...{ cidr, open: [bounds], isWhole: true, ...(gateway && { gateway }) },
  }));
}

/** Of `addresses` its own plugin takes prefix length and gateway alone, which are the pool's here. */
function readStaticIpam(ipam: Fields): DropIn | CniError {
  const [first] = ipam.sections("addresses");
  const cidr = parseCidr(first?.text("address") ?? "");
  if (cidr === undefined) return invalid("ipam.addresses has no address such as 172.31.204.19/16");
  const gateway = parseAddress(first?.text("gateway") ?? "");
  const open = [{ first: cidr.base, last: lastOf(cidr) }];
  const network = { cidr, open, isWhole: true, ...(gateway && { gateway }) };
  const want = { field: "ipam.addresses", family: cidr.family, of: [network] };
  return { type: "static-ipam", wants: [want], families: [cidr.family], annotation: "static-ipam.ipv4" };
}
