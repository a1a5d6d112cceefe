// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { isRefusal } from "../../../../allocator/base/errors.ts";
import { type PoolRecord, parsePool } from "../../../../allocator/pool/pool.ts";
import { isCniError } from "../../../cni/errors.ts";
import { Fields } from "../../../cni/json-fields.ts";
import { readRangeSets } from "../../../cni/range-set.ts";
import { containerName } from "./container-name.ts";
import { differsFrom, poolName, poolOfNetwork, unclearAddresses } from "./network-pool.ts";

const LAN = {
  subnet: "10.10.20.0/24",
  rangeStart: "10.10.20.50",
  rangeEnd: "10.10.20.70",
  gateway: "10.10.20.254",
};

function poolFor(...sets: readonly (readonly object[])[]): PoolRecord {
  const read = readRangeSets(sets.map((set) => set.map((entry) => new Fields(entry))));
  if (isCniError(read)) assert.fail(read.msg);
  const pool = poolOfNetwork("lan", read);
  if (isRefusal(pool)) assert.fail(pool.message);
  return pool;
}

function against(stored: PoolRecord, own: PoolRecord): string | undefined {
  const pool = parsePool(stored);
  if (isRefusal(pool)) assert.fail(pool.message);
  return differsFrom(pool, own)?.message;
}

describe("unclearAddresses", () => {
  const read = readRangeSets([[new Fields({ subnet: "10.10.20.0/24" })]]);

  it("is nothing where a network says in one way which addresses it has", () => {
    assert.ok(!isCniError(read));
    assert.equal(unclearAddresses("lan", { pools: ["db"], rangeSets: [] }), undefined);
    assert.equal(unclearAddresses("lan", { pools: [], rangeSets: read }), undefined);
  });

  it("refuses what says it not at all, and what says it twice", () => {
    assert.ok(!isCniError(read));
    assert.match(
      unclearAddresses("lan", { pools: [], rangeSets: [] })?.message ?? "",
      /says not which addresses: it needs ipam\.subnet, ipam\.ranges or ipam\.pools$/,
    );
    assert.equal(
      unclearAddresses("lan", { pools: ["db", "web"], rangeSets: read })?.message,
      "network lan is kept in etcd, and says in two ways which addresses: ipam.pools names db, web, and ipam.subnet or ipam.ranges stand beside it; take one out",
    );
  });
});

describe("poolOfNetwork", () => {
  it("is the ranges of the network, all of them for its containers, and nothing cools", () => {
    const ranges = [
      { cidr: "10.10.20.0/24", from: "10.10.20.50", to: "10.10.20.70", gateway: "10.10.20.254" },
    ];
    assert.deepEqual(poolFor([LAN]), {
      name: "lan",
      spec: { ranges, cooldown: "0s", limits: { perNamespace: 21 } },
    });
  });

  it("leaves out network and broadcast address, and takes a set of each family", () => {
    const { ranges } = poolFor(
      [{ subnet: "10.0.0.0/30", rangeStart: "10.0.0.0" }],
      [{ subnet: "fd00::/64" }],
    ).spec;
    assert.deepEqual(
      ranges.map(({ from, to }) => `${from}-${to}`),
      ["10.0.0.1-10.0.0.2", "fd00::1-fd00::ffff:ffff:ffff:ffff"],
    );
  });

  it("refuses two sets of a family: an interface has one address of each", () => {
    const read = readRangeSets([[new Fields(LAN)], [new Fields({ subnet: "10.0.0.0/24" })]]);
    if (isCniError(read)) assert.fail(read.msg);
    const pool = poolOfNetwork("lan", read);
    assert.ok(isRefusal(pool));
    assert.match(pool.message, /^ipam\.ranges of network lan has two sets of IPv4/);
  });
});

describe("differsFrom", () => {
  it("lets a host give from a pool that contains what its configuration says", () => {
    assert.equal(against(poolFor([LAN]), poolFor([LAN])), undefined);
    assert.equal(against(poolFor([LAN]), poolFor([{ ...LAN, rangeEnd: "10.10.20.60" }])), undefined);
  });

  it("says what the pool lacks", () => {
    for (const other of [
      { rangeEnd: "10.10.20.80" },
      { gateway: "10.10.20.1" },
      { subnet: "10.10.20.0/25", gateway: "10.10.20.1" },
    ]) {
      assert.match(
        against(poolFor([LAN]), poolFor([{ ...LAN, ...other }])) ?? "",
        /^this host's configuration has 10\.10\.20\.50-10\.10\.20\.\d\d of .* and pool "lan" in etcd, which all hosts go by, has not; change/,
      );
    }
  });
});

describe("names", () => {
  it("of pools are those of networks, as far as a pool can be called so", () => {
    assert.equal(poolName("lan-2"), "lan-2");
    assert.match(poolName("My_Net.1"), /^net-my-net-1-[0-9a-f]{8}$/);
    assert.notEqual(poolName("My_Net"), poolName("my_Net"));
  });

  it("of containers tell networks, containers and interfaces apart", () => {
    const at = { network: "lan", containerID: "AB_12".repeat(20), interface: "eth0" };
    const names = [at, { ...at, network: "x" }, { ...at, interface: "eth1" }, { ...at, containerID: "ab" }];
    assert.equal(new Set(names.map((each) => containerName(each).name)).size, names.length);
    assert.match(containerName(at).name, /^c-ab-12ab-12ab-eth0-[0-9a-f]{16}$/);
    assert.deepEqual(containerName(at), containerName(at));
  });
});
