// SPDX-License-Identifier: Apache-2.0
// The annotations of other systems, one row each. The chart's conditions and docs/dialects.md are written from them by
// `node scripts/dialects.ts --write`.

import { readAddressArray } from "./annotation-values.ts";
import { readCiliumPool } from "./cilium-pools.ts";
import { BOTH, type DialectRow, POD } from "./dialect-row.ts";
import { KUBE_OVN } from "./dialect-rows-of-kube-ovn.ts";
import { HYBRIDNET, SPIDERPOOL } from "./dialect-rows-of-lists.ts";
import {
  readFamilyList,
  readListOf,
  readName,
  readNameOf,
  readNames,
  readOnePod,
  readTruth,
} from "./dialect-values.ts";
import { readMacWord } from "./mac-words.ts";
import { elementKeysIn, isWithout } from "./network-attachments.ts";
import { readDefaultNetwork, readNetworkMacs, readNetworks } from "./network-values.ts";

/** A list with nothing in it: Calico takes any pool then. */
export const EMPTY_LIST = /^\s*\[\s*\]\s*$/;
/** Only the JSON form of Multus has these, and each element may have none. */
const WITHOUT_IPS = { test: (value: string) => isWithout("ips", value) };
const WITHOUT_CLAIM_REFERENCE = {
  test: (value: string) => elementKeysIn(value).every((key) => key !== "ipam-claim-reference"),
};
const WITHOUT_MAC = { test: (value: string) => isWithout("mac", value) };

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
      ofFirst: true,
    },
    {
      key: "ipAddrsNoIpam",
      on: POD,
      example: '["10.0.0.1"]',
      means: "an address that no IPAM knows",
      refusal: "berth gives no address that no pool has; put it into a pool and write berth.dev/ips",
      gives: true,
    },
    {
      key: "hwAddr",
      on: POD,
      example: "1c:0c:0a:c0:ff:ee",
      means:
        "this MAC address, beside what asks for an address; the runtime has to say it, and Calico's own main plugin, which reads it here, is refused",
      read: readMacWord,
      asks: "mac",
    },
    {
      key: "floatingIPs",
      on: POD,
      example: '["10.0.0.1"]',
      means: "addresses that lead to the pod's",
      beside: "Calico's data plane makes floating IPs",
      gives: true,
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
      means:
        "any address of this pool; where one of the two keys below names a pool, an address of the other family",
      read: readCiliumPool,
      names: readName,
      asks: "pools",
    },
    {
      key: "ipv4-pool",
      on: BOTH,
      example: "green-v4-pool",
      means:
        "an IPv4 address of this pool; and none of IPv6, where no key of Cilium's beside it names a pool for that",
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

const CILIUM_MAC: DialectRow = {
  system: "cilium",
  key: "cni.cilium.io/mac-address",
  on: POD,
  example: "e2:9c:30:38:52:61",
  means: "this MAC address, beside what asks for an address",
  read: readMacWord,
  asks: "mac",
};

const OTHERS: readonly DialectRow[] = [
  {
    system: "multus",
    key: "v1.multus-cni.io/default-network",
    on: POD,
    example: '[{"name":"macvlan-conf","ips":["10.10.1.20/16"]}]',
    means:
      "the first interface has exactly the `ips` of the element, if it has any; what follows `/` counts for nothing, but must be the length of a prefix",
    read: readDefaultNetwork,
    asks: "addresses",
    containing: "ips",
    empty: WITHOUT_IPS,
  },
  {
    system: "multus",
    key: "k8s.v1.cni.cncf.io/networks",
    on: POD,
    example: '[{"name":"macvlan-conf","ips":["10.10.1.21/16"]}]',
    means:
      "the interface of each element has exactly its `ips`, if it has any: `interface`, or `net1`, `net2` and so on by its place in the list. What follows `/` counts for nothing, but must be the length of a prefix",
    read: readNetworks,
    asks: "addresses",
    containing: "ips",
    empty: WITHOUT_IPS,
  },
  {
    system: "multus",
    key: "k8s.v1.cni.cncf.io/networks",
    on: POD,
    example: '[{"name":"macvlan-conf","mac":"c2:b0:57:49:47:f1"}]',
    means:
      "the interface of each element has its `mac`, if it has any, beside what asks for an address of it",
    read: readNetworkMacs,
    asks: "mac",
    containing: "mac",
    empty: WITHOUT_MAC,
  },
  {
    system: "multus",
    key: "v1.multus-cni.io/default-network",
    on: POD,
    example: '[{"name":"macvlan-conf","mac":"c2:b0:57:49:47:f2"}]',
    means: "the same of the first interface",
    read: readNetworkMacs,
    asks: "mac",
    containing: "mac",
    empty: WITHOUT_MAC,
  },
  {
    system: "multus",
    key: "k8s.v1.cni.cncf.io/networks",
    on: POD,
    example: '[{"name":"macvlan-conf","ipam-claim-reference":"web-0.tenant"}]',
    means: "the address of an IPAMClaim, if an element has `ipam-claim-reference`",
    containing: "ipam-claim-reference",
    empty: WITHOUT_CLAIM_REFERENCE,
    beside:
      "an IPAMClaim is for that network's own IPAM; berth.dev/sticky keeps what an interface first gets of Berth",
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
  CILIUM_MAC,
  ...OTHERS,
];
