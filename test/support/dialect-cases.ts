// SPDX-License-Identifier: Apache-2.0
// A pod for each annotation of other systems that Berth reads, with the example of that system's own documents, and what it is to get.

import { addressOfMac, parseMac } from "../../allocator/ip/mac.ts";
import { READ_ROWS, type ReadRow } from "../../allocator/manifest/dialects.ts";
import type { PoolRecord } from "../../allocator/pool/pool.ts";
import { poolRecord } from "./fixtures.ts";

export interface DialectCase {
  readonly key: string;
  readonly place: "pod" | "namespace";
  /** Where the key stands, with what has to stand beside it. */
  readonly annotations: Readonly<Record<string, string>>;
  /** It is this ordinal of a StatefulSet that begins with ordinal 1; absent: a pod by itself. */
  readonly ordinal?: number;
  /** Its addresses, or CIDRs that they are of, one each. */
  readonly gets: readonly string[];
  readonly keeps?: "Retain";
  readonly interface?: string;
  /** The MAC address that is reserved with them. */
  readonly mac?: string;
}

/** Those of the examples, each in a range of its maker's. */
const MACS = [
  "1c:0c:0a:c0:ff:ee",
  "00:00:00:53:6b:b6",
  "00:00:00:53:6b:b7",
  "00:00:00:53:6b:b8",
  "e2:9c:30:38:52:61",
  "c2:b0:57:49:47:f1",
  "c2:b0:57:49:47:f2",
].map((mac) => addressOfMac(parseMac(mac) ?? mac));

/** Called as in the examples. */
export const DIALECT_POOLS: readonly PoolRecord[] = [
  poolRecord("pool-1", ["192.168.0.0/24", "fd00::1:0/120"]),
  poolRecord("ovn-default", ["10.16.0.0/24", "fd00:10:16::/120"]),
  poolRecord("pool1", "10.2.0.0/24"),
  poolRecord("demo-v4-ippool1", "172.22.40.0/24"),
  poolRecord("demo-v6-ippool2", "fd00:172:22::/120"),
  poolRecord("demo-v6-ippool1", "fd00:172:21::/120"),
  poolRecord("subnet-demo-v4", "172.22.41.0/24"),
  poolRecord("ns-v4-ippool1", "172.22.42.0/24"),
  poolRecord("ns-v4-ippool2", "172.22.43.0/24"),
  poolRecord("ns-v6-ippool1", "fd00:172:42::/120"),
  poolRecord("pool-2", "192.168.1.0/24"),
  poolRecord("network1", "192.168.55.0/24"),
  poolRecord("subnet1", "192.168.56.0/24"),
  poolRecord("green-pool", ["10.20.0.0/24", "fd00:20::/120"]),
  poolRecord("green-v4-pool", ["10.21.0.0/24", "fd00:21::/120"]),
  poolRecord("green-v6-pool", ["10.22.0.0/24", "fd00:22::/120"]),
  poolRecord("macvlan", "10.10.0.0/16"),
  poolRecord("static", "172.31.0.0/16"),
  poolRecord("kube-ipam", "10.188.0.0/16"),
  poolRecord("underlay", "172.17.0.0/24"),
  poolRecord("macs", [], {
    ranges: MACS.map((address) => ({ cidr: "fe80::/64", from: address, to: address })),
    reserved: MACS,
  }),
];

interface Expected {
  readonly with?: Readonly<Record<string, string>>;
  readonly ordinal?: number;
  readonly gets: readonly string[];
  readonly keeps?: "Retain";
  /** The interface that gets them; absent: the first. */
  readonly interface?: string;
  readonly mac?: string;
  /** The key as it is written, of one with names in it. */
  readonly as?: string;
}

const CALICO = "cni.projectcalico.org";
const OVN = "ovn.kubernetes.io";
const SPIDER = "ipam.spidernet.io";
const HYBRID = "networking.alibaba.com";
const CILIUM = "ipam.cilium.io";
const NIC = "<nad>.<namespace>.kubernetes.io";
const LAN = "macvlan.default.kubernetes.io";
const NETWORKS = "k8s.v1.cni.cncf.io/networks";
const DEFAULT_NETWORK = "v1.multus-cni.io/default-network";
const OF_LAN = { [NETWORKS]: "default/macvlan" };
const GREEN = { [`${CILIUM}/ip-pool`]: "green-pool" };
const DEMO = { [`${SPIDER}/ippool`]: '{"ipv4":["demo-v4-ippool1"]}' };

/** Key -> what it comes to; of one with a second row for MAC addresses that one has `mac` before it. */
const EXPECTED: Readonly<Record<string, Expected>> = {
  [`${CALICO}/ipAddrs`]: { gets: ["192.168.0.1"] },
  [`${CALICO}/hwAddr`]: {
    with: { [`${CALICO}/ipAddrs`]: '["192.168.0.2"]' },
    gets: ["192.168.0.2"],
    mac: "1c:0c:0a:c0:ff:ee",
  },
  [`${CALICO}/ipv4pools`]: { gets: ["192.168.0.0/24"] },
  [`${CALICO}/ipv6pools`]: { gets: ["fd00::1:0/120"] },
  [`${CALICO}/ipFamilies`]: {
    with: { [`${CALICO}/ipv4pools`]: '["pool-1"]', [`${CALICO}/ipv6pools`]: '["pool-1"]' },
    gets: ["192.168.0.0/24", "fd00::1:0/120"],
  },
  [`${OVN}/ip_address`]: { gets: ["10.16.0.15"] },
  [`${OVN}/ip_pool`]: { ordinal: 2, gets: ["10.16.0.17"] },
  [`${OVN}/ip_family`]: { with: { [`${OVN}/logical_switch`]: "ovn-default" }, gets: ["10.16.0.0/24"] },
  [`${OVN}/logical_switch`]: { gets: ["10.16.0.0/24", "fd00:10:16::/120"] },
  [`${OVN}/mac_address`]: {
    with: { [`${OVN}/ip_address`]: "10.16.0.25" },
    gets: ["10.16.0.25"],
    mac: "00:00:00:53:6b:b6",
  },
  [`${NIC}/ip_address`]: {
    as: `${LAN}/ip_address`,
    with: { ...OF_LAN, [`${OVN}/ip_address`]: "10.16.0.26" },
    gets: ["172.17.0.100"],
    interface: "net1",
  },
  [`${NIC}/ip_pool`]: {
    as: `${LAN}/ip_pool.lan0`,
    with: { [NETWORKS]: "default/macvlan@lan0,default/macvlan" },
    ordinal: 2,
    gets: ["172.17.0.103"],
    interface: "lan0",
  },
  [`${NIC}/logical_switch`]: {
    as: `${LAN}/logical_switch`,
    with: OF_LAN,
    gets: ["10.10.0.0/16"],
    interface: "net1",
  },
  [`${NIC}/ip_family`]: {
    as: `${LAN}/ip_family`,
    with: { ...OF_LAN, [`${LAN}/logical_switch`]: "green-pool" },
    gets: ["10.20.0.0/24"],
    interface: "net1",
  },
  [`${NIC}/mac_address`]: {
    as: `${LAN}/mac_address`,
    with: { ...OF_LAN, [`${LAN}/ip_address`]: "172.17.0.110" },
    gets: ["172.17.0.110"],
    interface: "net1",
    mac: "00:00:00:53:6b:b8",
  },
  "ipam.antrea.io/ippools": { gets: ["10.2.0.0/24"] },
  "ipam.antrea.io/pod-ips": { with: { "ipam.antrea.io/ippools": "pool1" }, gets: ["10.2.0.15"] },
  [`${SPIDER}/ippool`]: { gets: ["172.22.40.0/24", "fd00:172:21::/120"] },
  [`${SPIDER}/ippools`]: { gets: ["172.22.40.0/24"] },
  [`${SPIDER}/subnet`]: { gets: ["172.22.41.0/24"] },
  [`${SPIDER}/subnets`]: { gets: ["172.22.41.0/24"] },
  [`${SPIDER}/ippool-ip-number`]: { with: DEMO, gets: ["172.22.40.0/24"] },
  [`${SPIDER}/ippool-reclaim`]: { with: DEMO, gets: ["172.22.40.0/24"], keeps: "Retain" },
  [`${SPIDER}/default-ipv4-ippool`]: { gets: ["172.22.42.0/24"] },
  [`${SPIDER}/default-ipv6-ippool`]: { gets: ["fd00:172:42::/120"] },
  [`${HYBRID}/ip-pool`]: { ordinal: 1, gets: ["192.168.56.102"] },
  [`${HYBRID}/ip-retain`]: {
    with: { [`${HYBRID}/specified-subnet`]: "subnet1" },
    gets: ["192.168.56.0/24"],
    keeps: "Retain",
  },
  [`${HYBRID}/ip-family`]: {
    with: { [`${HYBRID}/specified-subnet`]: "green-pool" },
    gets: ["10.20.0.0/24", "fd00:20::/120"],
  },
  [`${HYBRID}/mac-pool`]: {
    with: { [`${HYBRID}/ip-pool`]: "192.168.56.111,192.168.56.112" },
    ordinal: 1,
    gets: ["192.168.56.112"],
    mac: "00:00:00:53:6b:b7",
  },
  [`${HYBRID}/specified-network`]: { gets: ["192.168.55.0/24"] },
  [`${HYBRID}/specified-subnet`]: {
    with: { [`${HYBRID}/specified-network`]: "network1" },
    gets: ["192.168.56.0/24"],
  },
  [`${CILIUM}/ip-pool`]: { gets: ["10.20.0.0/24", "fd00:20::/120"] },
  [`${CILIUM}/ipv4-pool`]: { gets: ["10.21.0.0/24"] },
  [`${CILIUM}/ipv6-pool`]: { gets: ["fd00:22::/120"] },
  [`${CILIUM}/require-pool-match`]: { with: GREEN, gets: ["10.20.0.0/24", "fd00:20::/120"] },
  "cni.cilium.io/mac-address": {
    with: GREEN,
    gets: ["10.20.0.0/24", "fd00:20::/120"],
    mac: "e2:9c:30:38:52:61",
  },
  [DEFAULT_NETWORK]: { gets: ["10.10.1.20"] },
  [NETWORKS]: { gets: ["10.10.1.21"], interface: "net1" },
  [`mac ${DEFAULT_NETWORK}`]: {
    with: { "ipam.antrea.io/ippools": "pool1" },
    gets: ["10.2.0.0/24"],
    mac: "c2:b0:57:49:47:f2",
  },
  [`mac ${NETWORKS}`]: {
    with: { "berth.dev/pools": "macvlan@net1" },
    gets: ["10.10.0.0/16"],
    interface: "net1",
    mac: "c2:b0:57:49:47:f1",
  },
  "static-ipam.ipv4": { gets: ["172.31.204.12"] },
  "kube-ipam.ip": { gets: ["10.188.0.216"] },
};

/** One for each place that a row may stand in; a row that has none here fails. */
export const DIALECT_CASES: readonly DialectCase[] = READ_ROWS.flatMap((row) =>
  row.on.map((place) => {
    const { with: beside = {}, as = row.key, ...more } = expectedOf(row);
    return { key: as, place, annotations: { ...beside, [as]: row.example }, ...more };
  }),
);

function expectedOf({ key, asks }: ReadRow): Expected {
  const expected = (asks === "mac" ? EXPECTED[`mac ${key}`] : undefined) ?? EXPECTED[key];
  if (expected === undefined || (asks === "mac") !== (expected.mac !== undefined))
    throw new Error(`no case for ${key}`);
  return expected;
}
