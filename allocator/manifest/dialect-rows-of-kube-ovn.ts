// SPDX-License-Identifier: Apache-2.0
// kube-ovn's rows: of a pod's first interface, and of each by the NetworkAttachmentDefinition that makes it.

import { type DialectRow, POD } from "./dialect-row.ts";
import { readFamilyWord, readName, readOnePod, readOvnPool } from "./dialect-values.ts";
import { readMacWord } from "./mac-words.ts";
import {
  allocatedBeside,
  nicKey,
  onNic,
  readNicFamily,
  readNicMac,
  readNicPools,
  withFamilyBeside,
} from "./nic-keys.ts";

const FIRST: readonly Omit<DialectRow, "system">[] = [
  {
    key: "ovn.kubernetes.io/ip_address",
    on: POD,
    example: "10.16.0.15",
    means:
      "exactly these, with a comma between the families; with `ovn.kubernetes.io/allocated: true` it is what kube-ovn gave, and asks for nothing",
    read: readOnePod,
    asks: "addresses",
    unless: allocatedBeside,
  },
  {
    key: "ovn.kubernetes.io/ip_pool",
    on: POD,
    example: "10.16.0.15,10.16.0.16,10.16.0.17",
    means:
      "a list, by the ordinal in the pod's name wherever a StatefulSet begins, or shared by the pods of a Deployment; for other workloads' pods of one entry; between pods whose addresses are pairs stands `;`. What is no address is the name of a pool",
    read: readOvnPool,
    asks: "addresses",
    writtenOnNamespaces: true,
  },
  {
    key: "ovn.kubernetes.io/ip_family",
    on: POD,
    example: "ipv4",
    means: "of this family",
    read: readFamilyWord,
    ofFirst: true,
  },
  {
    key: "ovn.kubernetes.io/logical_switch",
    on: POD,
    example: "ovn-default",
    means: "any address of the pool that is called like this subnet",
    read: readName,
    asks: "pools",
    unless: allocatedBeside,
    writtenOnNamespaces: true,
  },
  {
    key: "ovn.kubernetes.io/mac_address",
    on: POD,
    example: "00:00:00:53:6B:B6",
    means: "this MAC address, beside what asks for an address",
    read: readMacWord,
    asks: "mac",
    unless: allocatedBeside,
  },
  {
    key: "ovn.kubernetes.io/vip",
    on: POD,
    example: "vip-dynamic-01",
    means: "the address of a Vip",
    refusal: "berth has no Vip; make an IPClaim of the pod's name with the address",
  },
];

/** Each may have `.<interface>` behind it. */
const NAMED: readonly Omit<DialectRow, "system">[] = [
  {
    key: "<nad>.<namespace>.kubernetes.io/ip_address",
    matches: nicKey("ip_address"),
    on: POD,
    example: "172.17.0.100",
    means:
      "as `ovn.kubernetes.io/ip_address`, for the interface of that NetworkAttachmentDefinition in `k8s.v1.cni.cncf.io/networks`; where the pod has it several times, `ip_address.<interface>`. The same goes for the four keys below",
    read: onNic(readOnePod),
    asks: "addresses",
    unless: allocatedBeside,
  },
  {
    key: "<nad>.<namespace>.kubernetes.io/ip_pool",
    matches: nicKey("ip_pool"),
    on: POD,
    example: "172.17.0.101,172.17.0.102,172.17.0.103",
    means: "as `ovn.kubernetes.io/ip_pool`",
    read: onNic(withFamilyBeside(readOvnPool)),
    asks: "addresses",
  },
  {
    key: "<nad>.<namespace>.kubernetes.io/logical_switch",
    matches: nicKey("logical_switch"),
    on: POD,
    example: "macvlan",
    means: "any address of the pool that is called like this subnet, on each interface of that network",
    read: onNic(readNicPools),
    asks: "pools",
    unless: allocatedBeside,
  },
  {
    key: "<nad>.<namespace>.kubernetes.io/ip_family",
    matches: nicKey("ip_family"),
    on: POD,
    example: "ipv4",
    means:
      "of this family of the pool that is named beside it; refused without one, unless it is that of the address",
    read: readNicFamily,
  },
  {
    key: "<nad>.<namespace>.kubernetes.io/mac_address",
    matches: nicKey("mac_address"),
    on: POD,
    example: "00:00:00:53:6B:B8",
    means: "this MAC address, beside what asks for an address of that interface",
    read: readNicMac,
    asks: "mac",
    unless: allocatedBeside,
  },
  {
    key: "<nad>.<namespace>.kubernetes.io/vip",
    matches: nicKey("vip"),
    on: POD,
    example: "vip-dynamic-02",
    means: "the address of a Vip",
    refusal: "berth has no Vip; write berth.dev/ips with the interface: 10.30.0.51@net1",
  },
];

export const KUBE_OVN: readonly DialectRow[] = [...FIRST, ...NAMED].map((row) => ({
  ...row,
  system: "kubeOvn",
}));
