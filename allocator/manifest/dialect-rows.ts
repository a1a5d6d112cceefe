// SPDX-License-Identifier: Apache-2.0
// The annotations of other systems, one row each. The chart's conditions and docs/dialects.md are written from them by
// `node scripts/dialects.ts --write`.

import { readAddressArray } from "./annotation-values.ts";
import { BOTH, type DialectRow, POD } from "./dialect-row.ts";
import { HYBRIDNET, KUBE_OVN, SPIDERPOOL } from "./dialect-rows-of-lists.ts";
import {
  readDefaultNetwork,
  readFamilyList,
  readListOf,
  readName,
  readNameOf,
  readNames,
  readOnePod,
  readTruth,
} from "./dialect-values.ts";

/** Calico takes any pool then. */
/** A list with nothing in it. */
export const EMPTY_LIST = /^\s*\[\s*\]\s*$/;

const CALICO: readonly DialectRow[] = (
  [
    {
      key: "ipAddrs",
      on: POD,
      example: '["192.168.0.1"]',
      means: "exactly these, one of each family",
      read: readAddressArray,
      asks: "addresses",
    },
    {
      key: "ipv4pools",
      on: BOTH,
      example: '["pool-1","pool-2"]',
      means: "an IPv4 address of the first of these pools that has one; and none of IPv6",
      read: readListOf("IPv4"),
      empty: EMPTY_LIST,
      asks: "pools",
    },
    {
      key: "ipv6pools",
      on: BOTH,
      example: '["fd00::1:0/120"]',
      means: "the same of IPv6; with `ipv4pools` one of each",
      read: readListOf("IPv6"),
      empty: EMPTY_LIST,
      asks: "pools",
    },
    {
      key: "ipFamilies",
      on: BOTH,
      example: '["IPv4","IPv6"]',
      means: "of these families",
      read: readFamilyList,
    },
    {
      key: "ipAddrsNoIpam",
      on: POD,
      example: '["10.0.0.1"]',
      means: "an address that no IPAM knows",
      refusal: "berth gives no address that no pool has; put it into a pool and write berth.dev/ips",
    },
    {
      key: "hwAddr",
      on: POD,
      example: "1c:0c:0a:c0:ff:ee",
      means: "a MAC address",
      beside: "it asks for a MAC address",
    },
    {
      key: "floatingIPs",
      on: POD,
      example: '["10.0.0.1"]',
      means: "addresses that lead to the pod's",
      beside: "Calico's data plane makes floating IPs",
    },
    {
      key: "allowedSourcePrefixes",
      on: POD,
      example: '["10.0.0.0/8"]',
      means: "which sources the pod may send from",
      beside: "Calico's data plane lets sources through",
    },
  ] satisfies readonly Omit<DialectRow, "system">[]
).map((row) => ({ ...row, system: "calico", key: `cni.projectcalico.org/${row.key}` }));

const ANTREA: readonly DialectRow[] = (
  [
    {
      key: "ippools",
      on: BOTH,
      example: "pool1",
      means: "any address of these pools, with commas",
      read: readNames,
      asks: "pools",
    },
    {
      key: "pod-ips",
      on: POD,
      example: "10.2.0.15",
      means: "exactly these, with a comma between the families; `ippools` need not stand beside it",
      read: readOnePod,
      asks: "addresses",
    },
  ] satisfies readonly Omit<DialectRow, "system">[]
).map((row) => ({ ...row, system: "antrea", key: `ipam.antrea.io/${row.key}` }));

const CILIUM: readonly DialectRow[] = (
  [
    {
      key: "ip-pool",
      on: BOTH,
      example: "green-pool",
      means: "any address of this pool",
      read: readName,
      asks: "pools",
    },
    {
      key: "ipv4-pool",
      on: BOTH,
      example: "green-v4-pool",
      means: "an IPv4 address of this pool; and none of IPv6",
      read: readNameOf("IPv4"),
      asks: "pools",
    },
    {
      key: "ipv6-pool",
      on: BOTH,
      example: "green-v6-pool",
      means: "the same of IPv6; with `ipv4-pool` one of each",
      read: readNameOf("IPv6"),
      asks: "pools",
    },
    {
      key: "require-pool-match",
      on: BOTH,
      example: "true",
      means: "no other pool but the one that is named, which with Berth is always so",
      read: readTruth,
    },
  ] satisfies readonly Omit<DialectRow, "system">[]
).map((row) => ({ ...row, system: "cilium", key: `ipam.cilium.io/${row.key}` }));

const OTHERS: readonly DialectRow[] = [
  {
    system: "multus",
    key: "v1.multus-cni.io/default-network",
    on: POD,
    example: '[{"name":"macvlan-conf","ips":["10.10.1.20/16"]}]',
    means:
      "the first interface has exactly the `ips` of the element, if it has any; what follows `/` counts for nothing",
    read: readDefaultNetwork,
    asks: "addresses",
    containing: '"ips"',
  },
  {
    system: "multus",
    key: "k8s.v1.cni.cncf.io/networks",
    on: POD,
    example: '[{"name":"macvlan-conf","ips":["10.10.1.20/16"]}]',
    means: "addresses of further interfaces, if an element has `ips`",
    containing: '"ips"',
    refusal: `berth does not read addresses of further interfaces in it; write them into berth.dev/ips, as 10.10.1.20@net1`,
  },
  {
    system: "staticIpam",
    key: "static-ipam.ipv4",
    on: POD,
    example: "172.31.204.12",
    means: "exactly this",
    read: readOnePod,
    asks: "addresses",
  },
  {
    system: "kubeIpam",
    key: "kube-ipam.ip",
    on: POD,
    example: "10.188.0.216",
    means: "exactly this",
    read: readOnePod,
    asks: "addresses",
  },
  {
    system: "kubeIpam",
    key: "kube-ipam.netmask",
    on: POD,
    example: "255.255.0.0",
    means: "the subnet's mask",
    beside: "the range of the pool says the mask",
  },
  {
    system: "kubeIpam",
    key: "kube-ipam.gateway",
    on: POD,
    example: "10.188.0.1",
    means: "the subnet's gateway",
    beside: "the range of the pool says the gateway",
  },
];

/** Of one system together. A key that Berth does not know and that asks for an address is a row that is missing. */
export const DIALECT_ROWS: readonly DialectRow[] = [
  ...CALICO,
  ...KUBE_OVN,
  ...ANTREA,
  ...SPIDERPOOL,
  ...HYBRIDNET,
  ...CILIUM,
  ...OTHERS,
];
