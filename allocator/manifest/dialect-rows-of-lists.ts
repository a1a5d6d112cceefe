// SPDX-License-Identifier: Apache-2.0
// The rows of systems whose pods are told apart by lists, by pools of a workload, or by their interfaces.

import { type DialectRow, NAMESPACE, POD } from "./dialect-row.ts";
import {
  readFamilyWord,
  readHybridPool,
  readIpNumber,
  readListOf,
  readName,
  readNames,
  readOnePod,
  readOvnPool,
  readReclaim,
  readRetain,
  readSpiderList,
  readSpiderObject,
} from "./dialect-values.ts";

const OVN_RESULT = "ovn.kubernetes.io/allocated";

export const KUBE_OVN: readonly DialectRow[] = (
  [
    {
      key: "ovn.kubernetes.io/ip_address",
      on: POD,
      example: "10.16.0.15",
      means:
        "exactly these, with a comma between the families; with `ovn.kubernetes.io/allocated: true` it is what kube-ovn gave, and asks for nothing",
      read: readOnePod,
      asks: "addresses",
      unless: OVN_RESULT,
    },
    {
      key: "ovn.kubernetes.io/ip_pool",
      on: POD,
      example: "10.16.0.15,10.16.0.16,10.16.0.17",
      means:
        "a list, by the ordinal in the pod's name wherever a StatefulSet begins, or shared by the pods of a Deployment; between pods whose addresses are pairs stands `;`. What is no address is the name of a pool",
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
    },
    {
      key: "ovn.kubernetes.io/logical_switch",
      on: POD,
      example: "ovn-default",
      means: "any address of the pool that is called like this subnet",
      read: readName,
      asks: "pools",
      unless: OVN_RESULT,
      writtenOnNamespaces: true,
    },
    {
      key: "ovn.kubernetes.io/mac_address",
      on: POD,
      example: "00:00:00:53:6B:B6",
      means: "a MAC address",
      beside: "it asks for a MAC address",
    },
    {
      key: "ovn.kubernetes.io/vip",
      on: POD,
      example: "vip-dynamic-01",
      means: "the address of a Vip",
      refusal: "berth has no Vip; make an IPClaim of the pod's name with the address",
    },
    {
      key: "<nad>.<namespace>.kubernetes.io/ip_address",
      matches: /^[^/.]+[.][^/]+[.]kubernetes[.]io\/(ip_address|ip_pool|ip_family|logical_switch)([.][^/]+)?$/,
      on: POD,
      example: "172.17.0.100",
      means:
        "the same for a further interface; also `ip_pool`, `ip_family`, `logical_switch`, and each with `.<interface>` behind it",
      refusal:
        "it is for a further interface, for which berth does not read it; write the address into berth.dev/ips, as 172.17.0.100@net1",
    },
    {
      key: "<nad>.<namespace>.kubernetes.io/mac_address",
      matches: /^[^/.]+[.][^/]+[.]kubernetes[.]io\/mac_address([.][^/]+)?$/,
      on: POD,
      example: "00:00:00:53:6B:B6",
      means: "the MAC address of a further interface",
      beside: "it asks for a MAC address",
    },
  ] satisfies readonly Omit<DialectRow, "system">[]
).map((row) => ({ ...row, system: "kubeOvn" }));

export const SPIDERPOOL: readonly DialectRow[] = (
  [
    {
      key: "ippool",
      on: POD,
      example: '{"ipv4":["demo-v4-ippool1"],"ipv6":["demo-v6-ippool1","demo-v6-ippool2"]}',
      means: "an address of each family that is named, of the first of its pools that has one",
      read: readSpiderObject,
      asks: "pools",
    },
    {
      key: "ippools",
      on: POD,
      example: '[{"interface":"eth0","ipv4":["demo-v4-ippool1"]}]',
      means: "the same in a list of one element, that of eth0; of several interfaces it is refused",
      read: readSpiderList,
      asks: "pools",
      note: (value) =>
        value.includes('"cleangateway"')
          ? "cleangateway is no matter of berth's; routes are spec.routes of the pool"
          : undefined,
    },
    {
      key: "subnet",
      on: POD,
      example: '{"ipv4":["subnet-demo-v4"]}',
      means: "the same of pools that are called like these subnets; berth makes no pool for one workload",
      read: readSpiderObject,
      asks: "pools",
    },
    {
      key: "subnets",
      on: POD,
      example: '[{"interface":"eth0","ipv4":["subnet-demo-v4"]}]',
      means: "the same in a list of one element",
      read: readSpiderList,
      asks: "pools",
    },
    {
      key: "ippool-ip-number",
      on: POD,
      example: "+1",
      means:
        "as many as there are pods, and so many more: each pod has one as long as the pool does. A number without + is refused",
      read: readIpNumber,
    },
    {
      key: "ippool-reclaim",
      on: POD,
      example: "false",
      means: "as `berth.dev/when-deleted`: `true` is Release, `false` Retain",
      read: readReclaim,
    },
    {
      key: "routes",
      on: POD,
      example: '[{"dst":"10.0.0.0/16","gw":"192.168.1.1"}]',
      means: "routes",
      beside: "routes are spec.routes of the pool",
    },
    {
      key: "default-route-nic",
      on: POD,
      example: "net1",
      means: "which interface has the default route",
      beside: "routes are spec.routes of the pool",
    },
    {
      key: "default-ipv4-ippool",
      on: NAMESPACE,
      example: '["ns-v4-ippool1","ns-v4-ippool2"]',
      means: "for pods that do not ask: an IPv4 address of the first of these pools that has one",
      read: readListOf("IPv4"),
      asks: "pools",
    },
    {
      key: "default-ipv6-ippool",
      on: NAMESPACE,
      example: '["ns-v6-ippool1"]',
      means: "the same of IPv6",
      read: readListOf("IPv6"),
      asks: "pools",
    },
  ] satisfies readonly Omit<DialectRow, "system">[]
).map((row) => ({ ...row, system: "spiderpool", key: `ipam.spidernet.io/${row.key}` }));

export const HYBRIDNET: readonly DialectRow[] = (
  [
    {
      key: "ip-pool",
      on: POD,
      example: "192.168.56.101,192.168.56.102",
      means:
        "a list by the number at the end of the pod's name, wherever a StatefulSet begins, or shared by the pods of a Deployment; one pod's two addresses are `v4/v6`",
      read: readHybridPool,
      asks: "addresses",
    },
    {
      key: "ip-retain",
      on: POD,
      example: "true",
      means: "`true` as `berth.dev/sticky`",
      read: readRetain,
      note: (value) =>
        value === "false"
          ? "the address of an ordinal stays its own, for no other pod could have it meanwhile"
          : undefined,
    },
    {
      key: "ip-family",
      on: POD,
      example: "DualStack",
      means: "of these families, in any letter case",
      read: readFamilyWord,
    },
    {
      key: "specified-network",
      on: POD,
      example: "network1",
      means:
        "any address of the pool that is called like this network; with `specified-subnet` it says nothing more",
      read: (value, key, annotations) =>
        annotations["networking.alibaba.com/specified-subnet"] === undefined
          ? readName(value, key, annotations)
          : {},
      asks: "pools",
    },
    {
      key: "specified-subnet",
      on: POD,
      example: "subnet1",
      means: "any address of the pool that is called like this subnet; of two with `/` between them",
      read: readNames,
      asks: "pools",
    },
    {
      key: "mac-pool",
      on: POD,
      example: "00:00:00:53:6B:B6",
      means: "MAC addresses",
      beside: "it asks for MAC addresses",
    },
    {
      key: "network-type",
      on: POD,
      example: "Underlay",
      means: "which kind of network",
      beside: "which network a pod has is its main plugin's matter",
    },
  ] satisfies readonly Omit<DialectRow, "system">[]
).map((row) => ({ ...row, system: "hybridnet", key: `networking.alibaba.com/${row.key}` }));
