// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { isRefusal } from "../../../allocator/base/errors.ts";
import { type Pool, parsePool } from "../../../allocator/pool/pool.ts";
import type { PoolChoice } from "../../../allocator/pool/pool-choice.ts";
import { ipamOf } from "../../cni/testing/ipam-parts.ts";
import type { SharedNetworks } from "../claims/shared-networks.ts";
import { poolsOfDropIn, servedIpam, withFamilies } from "./drop-in-pools.ts";

function pool(name: string, cidrs: readonly string[], more: object = {}): Pool {
  const read = parsePool({ name, spec: { ranges: cidrs.map((cidr) => ({ cidr })), ...more } });
  assert.ok(!isRefusal(read), isRefusal(read) ? read.message : "");
  return read;
}

/** Names of the pools, or why there are none. */
function poolsFor(ipam: object, ...pools: readonly Pool[]): string {
  const { dropIn } = ipamOf(ipam);
  assert.ok(dropIn);
  const found = poolsOfDropIn(dropIn, "net", pools);
  return isRefusal(found) ? found.message : found.join();
}

describe("pools that a network of another plugin means", () => {
  const range = { type: "whereabouts", range: "10.0.0.0/24" };

  it("are all that give nothing else, those that come first by priority before", () => {
    const low = pool("low", ["10.0.0.0/24"]);
    const high = pool("high", ["10.0.0.0/24"], { priority: 5 });
    const wide = pool("wide", ["10.0.0.0/23"]);
    const other = pool("other", ["10.0.0.0/24"], { networks: ["lan"] });
    assert.equal(poolsFor(range, low, wide, other, high), "high,low");
    assert.match(
      poolsFor(range, wide, other),
      /\(pool "other" is for networks lan; pool "wide" has 10\.0\.0\.255-10\.0\.1\.254 besides\); make an IPPool with ranges: \[\{cidr: "10\.0\.0\.0\/24"/,
    );
  });

  it("are made as the refusal says, whatever lies outside of the range", () => {
    const exclude = ["10.0.0.8/29", "192.168.0.0/16", "10.0.1.5"];
    const advice = poolsFor({ ...range, exclude });
    assert.match(advice, /"10\.0\.0\.254", exclude: \["10\.0\.0\.8\/29"\]\}\]/);
    const made = parsePool({
      name: "made",
      spec: { ranges: [{ cidr: "10.0.0.0/24", exclude: ["10.0.0.8/29"] }] },
    });
    assert.ok(!isRefusal(made));
    assert.equal(poolsFor({ ...range, exclude }, made), "made");
  });

  it("may have reserved addresses elsewhere", () => {
    const ends = { ...range, range_end: "10.0.0.100" };
    assert.match(
      poolsFor(ends, pool("lan", ["10.0.0.0/24"])),
      /pool "lan" has 10\.0\.0\.101-10\.0\.0\.254 besides/,
    );
    const reserved = ["10.0.0.101-10.0.0.254"];
    assert.equal(poolsFor(ends, pool("lan", ["10.0.0.0/24"], { reserved })), "lan");
  });

  it("have no family that other pools are meant for", () => {
    const lists = { type: "spiderpool", default_ipv4_ippool: ["both"], default_ipv6_ippool: ["six"] };
    const both = pool("both", ["10.0.0.0/24", "fd00::/64"]);
    const six = pool("six", ["fd00:6::/64"]);
    assert.match(
      poolsFor(lists, both, six),
      /pool "both" of ipam\.default_ipv4_ippool has IPv6 addresses, too/,
    );
    assert.equal(poolsFor({ ...lists, default_ipv6_ippool: ["both"] }, both), "both");
    assert.equal(poolsFor({ type: "spiderpool", default_ipv4_ippool: ["both"] }, both), "both");
  });

  it("serve the families that are meant, and all of them", () => {
    const both = pool("both", ["10.0.0.0/24", "fd00::/64"]);
    const choice: PoolChoice = { by: "network", pools: [both], families: ["IPv4", "IPv6"] };
    const served = (more: object, of = choice) => {
      const left = withFamilies(of, ipamOf({ type: "calico-ipam", ...more }).dropIn);
      return isRefusal(left) ? left.message : left.families.join();
    };
    assert.equal(served({}), "IPv4");
    assert.equal(served({ assign_ipv6: "true" }), "IPv4,IPv6");
    assert.match(served({ assign_ipv6: "true" }, { ...choice, families: ["IPv4"] }), /means an IPv6 address/);
  });

  it("are a cluster's, or a single host's", () => {
    const of = (ipam: object, sharedNetworks?: Pick<SharedNetworks, "hasOwn">) => {
      const parts = {
        pools: () => [pool("lan", ["10.0.0.0/24"])],
        sharedNetworks: sharedNetworks as SharedNetworks,
      };
      const served = servedIpam("net", ipamOf(ipam), parts);
      return isRefusal(served) ? served.message : `${served.pools.join()} ${served.etcd?.url ?? ""}`;
    };
    assert.equal(of(range), "lan ");
    assert.match(of(range, { hasOwn: true }), /hosts that share an etcd take type etcd/);
    const kube = { type: "kube-ipam", subnet: "10.0.0.0/24", etcdConfig: { etcdURL: "https://e:2379" } };
    assert.equal(of(kube), "lan ");
    for (const hasOwn of [true, false]) assert.equal(of(kube, { hasOwn }), " https://e:2379");
  });
});
