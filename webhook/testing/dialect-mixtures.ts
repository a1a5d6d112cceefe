// SPDX-License-Identifier: Apache-2.0
// Mixtures of systems' annotations, and whether what was given is what all of them say, judged from their text alone.
import assert from "node:assert/strict";
import fc from "fast-check";
import type { Labels } from "../../allocator/base/ports.ts";
import { familyOf, parseAddress } from "../../allocator/ip/address.ts";
import { isIn, partOf } from "../../allocator/planning/pool-sources.ts";
import { DIALECT_POOLS } from "../../test/support/dialect-cases.ts";
import { addr, parsed } from "../../test/support/fixtures.ts";

const MULTUS = "k8s.v1.cni.cncf.io/networks";
const OURS = ["10.20.0.7", "10.20.0.8", "fd00:20::7"];
const THEIRS = ["10.99.0.7", "fd00:99::7"];
const POOLS = ["green-pool", "green-v4-pool", "theirs"];
const address = fc.constantFrom(...OURS, ...THEIRS);
const name = fc.constantFrom(...POOLS);
const OUR_MAC = "e2:9c:30:38:52:61";
const mac = fc.constantFrom(OUR_MAC, "02:00:00:00:00:99");
const NIC = "lan.shop.kubernetes.io";
export const names = fc.uniqueArray(name, { minLength: 1, maxLength: 2 });

/** A value, and whether addresses and pools are what it asks for. */
const VALUES: Readonly<Record<string, fc.Arbitrary<string>>> = {
  "cni.projectcalico.org/ipAddrs": address.map((one) => JSON.stringify([one])),
  "cni.projectcalico.org/ipv4pools": names.map((list) => JSON.stringify(list)),
  "cni.projectcalico.org/ipv6pools": names.map((list) => JSON.stringify(list)),
  "cni.projectcalico.org/ipFamilies": fc.constantFrom('["IPv4"]', '["IPv6"]', '["IPv4","IPv6"]'),
  "ovn.kubernetes.io/ip_address": address,
  "ovn.kubernetes.io/logical_switch": name,
  "ovn.kubernetes.io/ip_family": fc.constantFrom("ipv4", "ipv6", "dual"),
  "ipam.antrea.io/pod-ips": address,
  "ipam.antrea.io/ippools": names.map((list) => list.join(",")),
  "ipam.spidernet.io/ippool": names.map((list) => JSON.stringify({ ipv4: list })),
  "networking.alibaba.com/ip-pool": address,
  "networking.alibaba.com/specified-subnet": name,
  "ipam.cilium.io/ip-pool": name,
  "ipam.cilium.io/ipv6-pool": name,
  "static-ipam.ipv4": address,
  "kube-ipam.ip": address,
  "berth.dev/pools": names.map((list) => list.join(",")),
  "berth.dev/ips": address,
  [`${NIC}/ip_address`]: address,
  [`${NIC}/logical_switch`]: name,
  "cni.projectcalico.org/hwAddr": mac,
  "ovn.kubernetes.io/mac_address": mac,
  [MULTUS]: address.map((one) => JSON.stringify([{ name: "lan", ips: [`${one}/24`] }])),
};

/** Elements whose addresses are of no pool, however they are written, and a key of such a network. */
export const foreign = fc.constantFrom<Labels>(
  {},
  { [MULTUS]: '[{"name":"x","ips":["10.99.0.7"]}]' },
  { [MULTUS]: '[{"name":"x","ips":["10.99.0.7","10.99.0.8"]}]' },
  { [MULTUS]: '[{"name":"x","ips":["dhcp"]}]' },
  { [MULTUS]: '[{"name":"x","ips":["fd00:99::7"]},{"name":"y","ips":["fd00:99::7"]}]' },
  { [MULTUS]: "x", "x.shop.kubernetes.io/ip_address": "10.99.0.7" },
);
export const pair = ["10.20.0.7", "10.20.0.8"];
const OUR_PAIR = ["00:00:00:53:6b:b6", "00:00:00:53:6b:b7"];
/** What a StatefulSet of two asks of Berth, and what a template may say of MAC addresses. */
export const lists = fc.constantFrom<Labels>(
  { "berth.dev/ips": pair.join(";") },
  { "berth.dev/ips": pair.join(";"), "berth.dev/fallback": "any" },
  { "ovn.kubernetes.io/ip_pool": pair.join() },
  { "networking.alibaba.com/ip-pool": pair.join() },
);
export const macsOfSet = fc.constantFrom("", OUR_PAIR.join(";"), OUR_PAIR.toReversed().join(";"));

export const mixtures = fc
  .subarray(Object.keys(VALUES), { minLength: 1, maxLength: 3 })
  .chain((keys) => fc.record(Object.fromEntries(keys.map((key) => [key, VALUES[key] ?? fc.constant("")]))))
  // the network that kube-ovn's keys of an interface name
  .map((all): Labels => (Object.keys(all).some(isNic) ? { [MULTUS]: "lan", ...all } : all));

/** One address of an interface, in two systems' words. */
export const twiceSaid = fc.constantFrom<Labels>(
  { [MULTUS]: '[{"name":"lan","ips":["10.20.0.7/24"]}]', [`${NIC}/ip_address`]: "10.20.0.7" },
  { [MULTUS]: '[{"name":"lan","ips":["10.20.0.7"]}]', "berth.dev/ips": "10.20.0.7@net1" },
  { "static-ipam.ipv4": "10.20.0.7", "kube-ipam.ip": "10.20.0.7" },
);

/** What a namespace asks for its pods, in whoever's words. */
export const defaults = fc.constantFrom<Labels>(
  {},
  { "berth.dev/pools": "green-pool" },
  { "berth.dev/sticky": "true", "berth.dev/pools": "green-pool" },
  { "cni.projectcalico.org/ipv4pools": '["green-pool"]' },
  { "ipam.cilium.io/ip-pool": "green-pool" },
);

function isNic(key: string): boolean {
  return key.startsWith(NIC);
}

const isMac = (key: string) => /hwAddr|mac_address/.test(key);

const FAMILY_ONLY: Readonly<Record<string, string>> = {
  "cni.projectcalico.org/ipv4pools": "IPv4",
  "cni.projectcalico.org/ipv6pools": "IPv6",
  "ipam.spidernet.io/ippool": "IPv4",
  "ipam.cilium.io/ipv6-pool": "IPv6",
};

/** Of a family by its name, or because another key is of the other one. */
function familyOnly(key: string, annotations: Labels): string | undefined {
  const isLeft = key === "ipam.cilium.io/ip-pool" && annotations["ipam.cilium.io/ipv6-pool"] !== undefined;
  return isLeft ? "IPv4" : FAMILY_ONLY[key];
}

/** Whether the addresses are what the annotation asks for, judged from its text, and the family that it is of, alone. */
function isServed(
  [key, value]: readonly [string, string],
  only: string | undefined,
  addresses: readonly string[],
  isExact: boolean,
): boolean {
  const named = [...value.matchAll(/[\da-f]*[.:][\da-f.:]+/g)].map(([text]) => text);
  const families = new Set(addresses.map((one) => String(familyOf(addr(one)))));
  if (/famil/i.test(key)) {
    const wanted = ["IPv4", "IPv6"].filter(
      (one) => value === "dual" || value.toLowerCase().includes(one.toLowerCase()),
    );
    return wanted.length === families.size && wanted.every((one) => families.has(one));
  }
  if (named.some((one) => parseAddress(one) !== undefined))
    return named.every((one) => addresses.includes(one));
  const pools = DIALECT_POOLS.filter((one) => new RegExp(`(^|[",])${one.name}($|[",])`).test(value)).map(
    parsed,
  );
  const inPool = (one: string) => pools.some((pool) => isIn(partOf(pool, pool.name), addr(one)));
  const of = addresses.filter((one) => only === undefined || familyOf(addr(one)) === only);
  // beside addresses by name, pools say where these are
  return (isExact || of.length > 0) && of.every(inPool);
}

/** A MAC address of a pool is the pod's, with its addresses; any other is told of. */
export function judgeMacs(all: Labels, given: readonly string[] | undefined, reported: string): void {
  for (const [key, value] of Object.entries(all).filter(([one]) => isMac(one))) {
    const has = given?.some((one) => one.endsWith("@mac-eth0")) === true;
    assert.ok(
      value === OUR_MAC ? has : reported.includes(key),
      `${key}=${value} got ${given?.join()}: ${reported}`,
    );
  }
}

/** All that is asked for is served, or nothing of it is Berth's and each annotation is told of. */
export function judge(all: Labels, given: readonly string[] | undefined, reported: string): void {
  const { [MULTUS]: networks = "lan", ...others } = all;
  const annotations = Object.fromEntries(Object.entries(others).filter(([key]) => !isMac(key)));
  const isOurs = OURS.some((one) => networks.includes(`"${one}/`));
  const isOn = (one: string, name: string) => !one.includes("@") || one.endsWith(`@${name}`);
  const addressesOf = (name: string) =>
    given?.filter((one) => isOn(one, name)).map((one) => one.split("@")[0] ?? "");
  if (networks !== "lan") {
    const has = addressesOf("net1")?.some((one) => networks.includes(`"${one}/`)) === true;
    assert.equal(has, isOurs, `${networks} got ${given?.join()}`);
    assert.ok(isOurs || reported.includes(MULTUS), `${networks} is not told of: ${reported}`);
  }
  const eth0 = addressesOf("eth0");
  const addresses = eth0?.length === 0 ? undefined : eth0;
  const named = given?.filter((one) => one.endsWith("@net1")).map((one) => one.split("@")[0] ?? "");
  const ofNet1 = named?.length === 0 ? undefined : named;
  const isExact = Object.values(annotations).some((value) => /\d\.\d|::/.test(value));
  for (const [key, value] of Object.entries(annotations)) {
    const served = isNic(key) ? ofNet1 : addresses;
    if (served !== undefined) {
      const only = familyOnly(key, annotations);
      assert.ok(isServed([key, value], only, served, isExact), `${key}=${value} got ${served.join()}`);
      continue;
    }
    assert.ok(reported.includes(key), `${key} is not told of: ${reported}`);
    assert.ok(!/green/.test(value) && !OURS.some((one) => value.includes(one)), `${key}=${value} was left`);
  }
}
