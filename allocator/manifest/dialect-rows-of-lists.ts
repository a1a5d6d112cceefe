// SPDX-License-Identifier: Apache-2.0
// The rows of systems whose pods are told apart by lists, or by pools of a workload.

import { type DialectRow, NAMESPACE, POD } from "./dialect-row.ts";
import {
  readFamilyWord,
  readHybridNames,
  readHybridPool,
  readIpNumber,
  readListOf,
  readName,
  readReclaim,
  readRetain,
  readSpiderList,
  readSpiderObject,
} from "./dialect-values.ts";
import { readMacList } from "./mac-words.ts";

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
      means:
        "the same of each interface that an element names; of a single element without one, of the first",
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
      means: "the same of each interface, as `ippools`",
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
        "a list by the ordinal of a StatefulSet's pod, the first entry being that of 0 wherever the StatefulSet begins, or shared by the pods of a Deployment; one pod's two addresses are `v4/v6`",
      read: readHybridPool,
      asks: "addresses",
    },
    {
      key: "ip-retain",
      on: POD,
      example: "true",
      means: "`true` as `berth.dev/sticky`, beside what asks Berth; by itself it names no pool of Berth's",
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
      ofFirst: true,
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
      names: readName,
      asks: "pools",
      alsoLabel: true,
    },
    {
      key: "specified-subnet",
      on: POD,
      example: "subnet1",
      means: "any address of the pool that is called like this subnet; of two with `/` between them",
      read: readHybridNames,
      asks: "pools",
      alsoLabel: true,
    },
    {
      key: "ip",
      on: POD,
      example: "192.168.56.101",
      means: "an address, in the spelling of its first releases",
      refusal: "HybridNet itself reads ip-pool by now; write networking.alibaba.com/ip-pool",
      gives: true,
    },
    {
      key: "mac-pool",
      on: POD,
      example: "00:00:00:53:6B:B6,00:00:00:53:6B:B7",
      means: "a list of MAC addresses by the same number, beside what asks for addresses",
      read: readMacList,
      asks: "mac",
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
