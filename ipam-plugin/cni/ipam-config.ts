// SPDX-License-Identifier: Apache-2.0
import { parseAddress } from "../../allocator/ip/address.ts";
import type { CniArgs } from "./args.ts";
import { type DropIn, invalid } from "./drop-in.ts";
import { type DropInRow, dropInOf, keysOf } from "./drop-ins.ts";
import { type CniError, isCniError } from "./errors.ts";
import { type EtcdConfig, readEtcdConfig } from "./etcd-config.ts";
import { ADDRESS_KEYS, IPAM_KEYS, misreadKey, RANGE_KEYS, unreadKeys } from "./ipam-keys.ts";
import type { Fields } from "./json-fields.ts";
import { type RangeSet, readRangeSets } from "./range-set.ts";
import { parseHost, type Requests, readRequests } from "./requested.ts";
import type { Dns, ResultAddress, Route } from "./result.ts";
import { atLeast, type Version } from "./versions.ts";

/** `ipam` and what else of a configuration an ADD goes by. */
export interface IpamConfig {
  /** Where a pod that asked for nothing gets its address from. */
  readonly pools: readonly string[];
  /** runtimeConfig.ipRanges, then the old single range, then `ranges`; empty: this node hands out none. */
  readonly rangeSets: readonly RangeSet[];
  /** static's `addresses`. */
  readonly addresses: readonly ResultAddress[];
  readonly requests: Requests;
  readonly routes: readonly Route[];
  readonly dns: Dns;
  /** A file whose contents replace `dns`; empty: none. */
  readonly resolvConf: string;
  readonly annotations: Readonly<Record<string, string>> | undefined;
  /** Keys of `ipam` that nobody reads here: `ipam.comment`. */
  readonly unread: readonly string[];
  /** What stands beside `pools` and serves only where they do not; absent: nothing. */
  readonly besidePools?: "ranges" | "subnet";
  /** Where the addresses of `rangeSets` or `pools` are kept for many hosts; absent: where this host keeps its own. */
  readonly etcd?: EtcdConfig;
  /** What the configuration means that was written for another plugin; `pools` are found by it. */
  readonly dropIn?: DropIn;
}

const ANNOTATIONS = "io.kubernetes.cri.pod-annotations";

/** Reads the whole `ipam` section or says the first thing that is wrong with it. */
export function readIpam(fields: Fields, version: Version, args: CniArgs): IpamConfig | CniError {
  const ipam = fields.section("ipam");
  if (ipam === undefined) return fields.problem ?? invalid("IPAM config missing 'ipam' key");
  const row = dropInOf(ipam.text("type"));
  const keys = row === undefined ? IPAM_KEYS : keysOf(row);
  const misspelt = misreadKey(ipam, keys, row?.type);
  if (misspelt !== undefined) return misspelt;
  for (const key of ["type", "dataDir"]) ipam.text(key); // must be text, though it is of use elsewhere
  const requests = readRequests(fields, args);
  if (isCniError(requests)) return requests;
  const sources = readSources(fields, ipam, row);
  if (isCniError(sources)) return sources;
  const routes = readRoutes(ipam);
  if (isCniError(routes)) return routes;
  const several = checkFamilies(
    version,
    sources.rangeSets.map(([first]) => first.family),
  );
  const config = {
    pools: ipam.texts("pools"),
    requests,
    routes,
    dns: readDns(ipam),
    resolvConf: ipam.text("resolvConf") ?? "",
    annotations: fields.section("runtimeConfig")?.labels(ANNOTATIONS),
    unread: unreadKeys(ipam, keys).map((key) => ipam.nameOf(key)),
    ...besidePools(ipam),
    ...sources,
  };
  return fields.problem ?? several ?? config;
}

/** Where the configuration says that addresses come from, so far as its plugin has such keys. */
function readSources(
  fields: Fields,
  ipam: Fields,
  row: DropInRow | undefined,
): Pick<IpamConfig, "rangeSets" | "addresses" | "etcd" | "dropIn"> | CniError {
  const dropIn = row?.read(ipam);
  if (isCniError(dropIn)) return dropIn;
  const has = (key: string) => row === undefined || row.keys.includes(key);
  const rangeSets = has("subnet") ? readAllRanges(fields, ipam) : [];
  if (isCniError(rangeSets)) return rangeSets;
  const etcd = has("etcdConfig") ? readEtcdConfig(ipam) : undefined;
  if (isCniError(etcd)) return etcd;
  const addresses = has("addresses") && dropIn?.annotation === undefined ? readAddresses(ipam) : [];
  if (isCniError(addresses)) return addresses;
  const twice = row === undefined ? contradiction(ipam) : undefined;
  return twice ?? { rangeSets, addresses, ...(etcd && { etcd }), ...(dropIn && { dropIn }) };
}

/** Up to 0.2.0 a result has room for one address of each family. */
export function checkFamilies(version: Version, families: readonly string[]): CniError | undefined {
  if (atLeast(version, "0.3.0") || new Set(families).size === families.length) return undefined;
  return invalid(`CNI version ${version} does not support more than 1 address per family`);
}

function readAllRanges(fields: Fields, ipam: Fields): readonly RangeSet[] | CniError {
  const runtime = fields.section("runtimeConfig")?.sectionLists("ipRanges") ?? [];
  const single = ipam.text("subnet") === undefined ? [] : [[ipam]];
  const ranges = ipam.sectionLists("ranges");
  const sets = [...runtime, ...single, ...ranges];
  const misspelt = [...runtime, ...ranges].flat().flatMap((entry) => misreadKey(entry, RANGE_KEYS) ?? []);
  return misspelt[0] ?? fields.problem ?? readRangeSets(sets);
}

/** An interface has its addresses from one of these, and the other would be dropped without a word. */
function contradiction(ipam: Fields): CniError | undefined {
  if (ipam.list("addresses").length === 0) return undefined;
  const other = ["subnet", "ranges", "etcdConfig", "pools"].find((key) => isSaid(ipam, key));
  if (other === undefined) return undefined;
  return invalid(
    `ipam.addresses and ipam.${other} stand side by side, and a pod gets of one of them alone; take one out`,
  );
}

/** Both mean something: the pools come first. */
function besidePools(ipam: Fields): Pick<IpamConfig, "besidePools"> {
  if (ipam.list("pools").length === 0) return {};
  const other = (["subnet", "ranges"] as const).find((key) => isSaid(ipam, key));
  return other === undefined ? {} : { besidePools: other };
}

function isSaid(ipam: Fields, key: string): boolean {
  if (key === "subnet") return Boolean(ipam.text(key));
  return key === "etcdConfig" ? ipam.section(key) !== undefined : ipam.list(key).length > 0;
}

function readAddresses(ipam: Fields): readonly ResultAddress[] | CniError {
  const addresses: ResultAddress[] = [];
  for (const entry of ipam.sections("addresses")) {
    const misread = misreadKey(entry, ADDRESS_KEYS);
    if (misread !== undefined) return misread;
    const text = entry.text("address") ?? "";
    const gatewayText = entry.text("gateway") ?? "";
    if (entry.problem !== undefined) return entry.problem;
    const host = parseHost(text);
    if (host === undefined)
      return invalid(`the 'address' field is expected to be in CIDR notation, got: '${text}'`);
    const gateway = parseAddress(gatewayText);
    if (gateway === undefined && gatewayText !== "") return invalid(`invalid IP address: ${gatewayText}`);
    addresses.push(gateway === undefined ? host : { ...host, gateway });
  }
  return ipam.problem ?? addresses;
}

/** Next hop and metrics are the main plugin's business; a route without `dst` is nobody's (host-local prints `<nil>`). */
function readRoutes(ipam: Fields): readonly Route[] | CniError {
  const routes: Route[] = [];
  for (const [i, entry] of ipam.sections("routes").entries()) {
    const [dstText, gwText] = [entry.text("dst") ?? "", entry.text("gw") ?? ""];
    const host = parseHost(dstText);
    const gw = parseAddress(gwText);
    if (dstText === "")
      return entry.problem ?? invalid(`ipam.routes[${i}] has no dst; write a network such as 0.0.0.0/0`);
    if (host === undefined) return invalid(`invalid CIDR address: ${dstText}`);
    if (gw === undefined && gwText !== "") return invalid(`invalid IP address: ${gwText}`);
    const dst = `${host.address}/${host.prefixLength}`;
    routes.push({ dst, ...(gw === undefined ? {} : { gw }), ...readMetrics(entry) });
  }
  return ipam.problem ?? routes;
}

function readMetrics(entry: Fields): Omit<Route, "dst" | "gw"> {
  const keys = ["mtu", "advmss", "priority", "table", "scope"] as const;
  const pairs = keys.map((key) => [key, entry.integer(key)] as const);
  return Object.fromEntries(pairs.filter(([, value]) => value !== undefined));
}

function readDns(ipam: Fields): Dns {
  const dns = ipam.section("dns");
  if (dns === undefined) return {};
  const lists = (["nameservers", "search", "options"] as const).map((key) => [key, dns.texts(key)] as const);
  const domain = dns.text("domain");
  return {
    ...Object.fromEntries(lists.filter(([, list]) => list.length > 0)),
    ...(domain ? { domain } : {}),
  };
}
