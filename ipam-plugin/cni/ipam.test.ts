// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { parseAddress } from "../../allocator/address.ts";
import { type CniArgs, readArgs } from "./args.ts";
import { isCniError } from "./errors.ts";
import { Fields } from "./fields.ts";
import { type IpamConfig, readIpam } from "./ipam.ts";
import { formatSet, subnetOf } from "./range-set.ts";
import { requestedAddresses } from "./requests.ts";
import { staticAddresses } from "./static.ts";
import type { Version } from "./versions.ts";

interface Extras {
  readonly version?: Version;
  readonly args?: string;
  readonly rest?: object;
}

function argsOf(text: string): CniArgs {
  const args = readArgs(text);
  assert.ok(!isCniError(args));
  return args;
}

function read(ipam: unknown, { version = "1.0.0", args = "", rest = {} }: Extras = {}) {
  return readIpam(new Fields({ ipam, ...rest }), version, argsOf(args));
}

function ipamOf(ipam: object, extras: Extras = {}): IpamConfig {
  const config = read(ipam, extras);
  assert.ok(!isCniError(config), isCniError(config) ? config.msg : "");
  return config;
}

function wordsOf(ipam: unknown, extras: Extras = {}): string {
  const error = read(ipam, extras);
  assert.ok(isCniError(error), JSON.stringify(ipam));
  assert.ok([4, 6, 7].includes(error.code), `code ${error.code}`);
  return error.msg;
}

function staticOf(ipam: object, extras: Extras = {}) {
  const addresses = staticAddresses(
    ipamOf(ipam, extras),
    extras.version ?? "1.0.0",
    argsOf(extras.args ?? ""),
  );
  return isCniError(addresses)
    ? addresses.msg
    : addresses.map(({ address, prefixLength, gateway = "" }) => `${address}/${prefixLength}|${gateway}`);
}

describe("ipam", () => {
  it("must be there, and be an object", () => {
    assert.equal(wordsOf(undefined), "IPAM config missing 'ipam' key");
    assert.equal(wordsOf(null), "IPAM config missing 'ipam' key");
    assert.equal(wordsOf("x"), "json: cannot unmarshal string into field ipam of type object");
  });

  it("has text for its type and its dataDir", () => {
    for (const key of ["type", "dataDir"]) {
      const words = `json: cannot unmarshal number into field ipam.${key} of type string`;
      assert.equal(wordsOf({ subnet: "10.0.0.0/24", [key]: 5 }), words);
    }
  });

  it("names pools", () => {
    assert.deepEqual(ipamOf({ pools: ["db", "web"] }).pools, ["db", "web"]);
    assert.equal(
      wordsOf({ pools: "db" }),
      "json: cannot unmarshal string into field ipam.pools of type list",
    );
    assert.equal(
      wordsOf({ pools: [5] }),
      "json: cannot unmarshal number into field ipam.pools[0] of type string",
    );
  });

  it("says that the shared store of cni-ipam-etcd is not there yet", () => {
    const words = wordsOf({ subnet: "10.0.0.0/24", etcdConfig: { etcdURL: "http://127.0.0.1:2379" } });
    assert.ok(words.startsWith("ipam.etcdConfig is not supported yet"), words);
  });

  it("ignores what it does not know", () => {
    assert.deepEqual(ipamOf({ type: "berth", subnet: "10.0.0.0/24", foo: { bar: 1 } }).rangeSets.length, 1);
  });

  it("has annotations, which containerd sends as null when there are none", () => {
    const key = "io.kubernetes.cri.pod-annotations";
    const annotations = (value: unknown) =>
      ipamOf({}, { rest: { runtimeConfig: { [key]: value } } }).annotations;
    assert.equal(annotations(null), undefined);
    assert.deepEqual(annotations({ "Berth.dev/x": "y" }), { "Berth.dev/x": "y" });
  });
});

describe("range sets", () => {
  const setsOf = (ipam: object, extras: Extras = {}) => ipamOf(ipam, extras).rangeSets.map(formatSet);
  const gatewayOf = (range: object) => ipamOf(range).rangeSets[0]?.[0].gateway;

  it("have the defaults of host-local", () => {
    assert.deepEqual(setsOf({ subnet: "192.0.2.0/24" }), ["192.0.2.1-192.0.2.254"]);
    assert.deepEqual(setsOf({ subnet: "192.0.2.0/25" }), ["192.0.2.1-192.0.2.126"]);
    assert.deepEqual(setsOf({ subnet: "192.0.2.12/30" }), ["192.0.2.13-192.0.2.14"]);
    assert.deepEqual(setsOf({ subnet: "2001:DB8:1::/64" }), [
      "2001:db8:1::1-2001:db8:1:0:ffff:ffff:ffff:ffff",
    ]);
    assert.deepEqual(setsOf({ subnet: "fd00::/126" }), ["fd00::1-fd00::3"]);
    assert.equal(gatewayOf({ subnet: "192.0.2.0/24" }), "192.0.2.1");
    assert.equal(gatewayOf({ subnet: "fd00::/64", gateway: "" }), "fd00::1");
    assert.equal(gatewayOf({ subnet: "10.0.0.0/24", gateway: "192.168.9.9" }), "192.168.9.9");
  });

  it("come from the runtime, then from the single range, then from the list", () => {
    const ipam = {
      subnet: "10.1.2.0/24",
      rangeStart: "10.1.2.9",
      rangeEnd: "10.1.2.20",
      ranges: [[{ subnet: "11.1.2.0/24" }, { subnet: "12.1.2.0/24" }]],
    };
    const rest = { runtimeConfig: { irrelevant: "a", ipRanges: [[{ subnet: "13.1.3.0/24" }]] } };
    assert.deepEqual(setsOf(ipam, { rest }), [
      "13.1.3.1-13.1.3.254",
      "10.1.2.9-10.1.2.20",
      "11.1.2.1-11.1.2.254,12.1.2.1-12.1.2.254",
    ]);
  });

  it("are none without a subnet, even if bounds are there", () => {
    for (const ipam of [{}, { rangeStart: "10.0.0.1" }, { subnet: null, ranges: null }])
      assert.deepEqual(setsOf(ipam), []);
  });

  it("are refused in the words of host-local", () => {
    const table: readonly (readonly [object, string])[] = [
      [{ subnet: "" }, "invalid CIDR address: "],
      [{ subnet: "10.1.2.0" }, "invalid CIDR address: 10.1.2.0"],
      [{ subnet: "10.01.2.0/24" }, "invalid CIDR address: 10.01.2.0/24"],
      [{ subnet: "10.1.2.0/33" }, "invalid CIDR address: 10.1.2.0/33"],
      [{ subnet: "::ffff:10.1.2.0/120" }, "IPNet IP and Mask version mismatch"],
      [{ subnet: "192.0.2.0/31" }, "Network 192.0.2.0/31 too small to allocate from"],
      [{ subnet: "fd00::/127" }, "Network fd00::/127 too small to allocate from"],
      [
        { subnet: "192.0.2.12/24" },
        "Network has host bits set. For a subnet mask of length 24 the network address is 192.0.2.0",
      ],
      [
        { subnet: "192.0.2.0/24", rangeStart: "192.0.3.0" },
        "RangeStart 192.0.3.0 not in network 192.0.2.0/24",
      ],
      [{ subnet: "192.0.2.0/24", rangeEnd: "fd00::1" }, "RangeEnd fd00::1 not in network 192.0.2.0/24"],
      [
        { subnet: "192.0.2.0/24", rangeStart: "192.0.2.50", rangeEnd: "192.0.2.40" },
        "RangeEnd 192.0.2.40 not in network 192.0.2.0/24",
      ],
      [{ subnet: "192.0.2.0/24", rangeStart: "nope" }, "invalid IP address: nope"],
      [{ subnet: "192.0.2.0/24", gateway: "1.2.3" }, "invalid IP address: 1.2.3"],
      [
        { subnet: "192.0.2.0/24", gateway: "fd00::1" },
        "gateway fd00::1 is IPv6, network 192.0.2.0/24 is IPv4",
      ],
    ];
    for (const [range, words] of table) assert.equal(wordsOf(range), `invalid range set 0: ${words}`);
  });

  it("must not be empty, mixed or overlapping", () => {
    const [a, b, v6] = [{ subnet: "10.1.0.0/22" }, { subnet: "10.1.2.0/24" }, { subnet: "2001:db8:5::/64" }];
    assert.equal(wordsOf({ ranges: [[]] }), "invalid range set 0: empty range set");
    assert.equal(wordsOf({ ranges: [[a], null] }), "invalid range set 1: empty range set");
    assert.equal(wordsOf({ ranges: [[a, v6]] }), "invalid range set 0: mixed address families");
    assert.equal(
      wordsOf({ ranges: [[a, b]] }),
      "invalid range set 0: subnets 10.1.0.1-10.1.3.254 and 10.1.2.1-10.1.2.254 overlap",
    );
    assert.equal(wordsOf({ ranges: [[v6], [a], [b]] }), "range set 1 overlaps with 2");
    assert.equal(
      setsOf({ ranges: [[{ ...b, rangeEnd: "10.1.2.127" }], [{ ...b, rangeStart: "10.1.2.128" }]] }).length,
      2,
    );
    assert.equal(setsOf({ ranges: [[{ subnet: "0.0.0.0/24" }], [{ subnet: "::/24" }]] }).length, 2);
  });

  it("have no room for two of a family up to 0.2.0", () => {
    const ranges = [[{ subnet: "10.1.2.0/24" }], [{ subnet: "11.1.2.0/24" }]];
    for (const version of ["0.1.0", "0.2.0"] as const) {
      assert.equal(
        wordsOf({ ranges }, { version }),
        `CNI version ${version} does not support more than 1 address per family`,
      );
    }
    assert.equal(setsOf({ ranges }, { version: "0.3.0" }).length, 2);
    assert.equal(
      setsOf({ ranges: [[{ subnet: "10.1.2.0/24" }], [{ subnet: "fd00::/64" }]] }, { version: "0.2.0" })
        .length,
      2,
    );
  });

  it("know the subnet of an address within their bounds", () => {
    const [set] = ipamOf({
      ranges: [[{ subnet: "10.0.0.0/24", rangeEnd: "10.0.0.9" }, { subnet: "10.0.1.0/24" }]],
    }).rangeSets;
    assert.ok(set !== undefined);
    const textOf = (text: string) => {
      const address = parseAddress(text);
      return address && subnetOf(set, address)?.cidr.text;
    };
    assert.equal(textOf("10.0.0.9"), "10.0.0.0/24");
    assert.equal(textOf("10.0.1.9"), "10.0.1.0/24");
    assert.equal(textOf("10.0.0.10"), undefined);
    assert.equal(textOf("::a00:5"), undefined); // the same number in the other family
  });
});

describe("requested addresses", () => {
  const requested = (extras: Extras) => requestedAddresses(ipamOf({}, extras).requests);

  it("come from three sources, with or without prefix, each once", () => {
    const rest = {
      runtimeConfig: { ips: ["10.0.0.1/24", "::FFFF:10.0.0.9"] },
      args: { cni: { ips: ["10.0.0.2", "10.0.0.1"], labels: [{ key: "a", value: "b" }] } },
    };
    assert.deepEqual(requested({ rest, args: "IP=10.0.0.3,10.0.0.1/16" }), [
      "10.0.0.3",
      "10.0.0.1",
      "10.0.0.2",
      "10.0.0.9",
    ]);
  });

  it("are none when the lists are null or absent", () => {
    for (const rest of [
      {},
      { runtimeConfig: null },
      { runtimeConfig: { ips: null } },
      { args: null },
      { args: { cni: null } },
    ]) {
      assert.deepEqual(requested({ rest }), []);
    }
  });

  it("are refused when they are none", () => {
    const runtime = (ips: unknown) => ({ rest: { runtimeConfig: { ips } } });
    assert.equal(wordsOf({}, runtime(["10.1.2.300"])), "invalid IP address 10.1.2.300");
    assert.equal(wordsOf({}, runtime(["fe80::1%eth0"])), "invalid IP address fe80::1%eth0");
    assert.equal(wordsOf({}, runtime([""])), "cannot understand ip: IP <nil> not v4 nor v6");
    assert.equal(
      wordsOf({}, runtime([5])),
      "json: cannot unmarshal number into field runtimeConfig.ips[0] of type string",
    );
    assert.equal(
      wordsOf({}, { args: "IP=10.0.0.1,x" }),
      'ARGS: error parsing value of pair "IP=10.0.0.1,x": invalid IP address x',
    );
  });
});

describe("static addresses", () => {
  const ADDRESSES = [
    { address: "10.10.0.1/24", gateway: "10.10.0.254" },
    { address: "3FFE:ffff:0:01ff::1/64" },
  ];

  it("are those of the configuration, with what CNI_ARGS adds", () => {
    assert.deepEqual(staticOf({ addresses: ADDRESSES }), [
      "10.10.0.1/24|10.10.0.254",
      "3ffe:ffff:0:1ff::1/64|",
    ]);
    assert.deepEqual(
      staticOf({ addresses: ADDRESSES }, { args: "IP=11.0.0.1/8;GATEWAY=11.0.0.9,11.0.0.2,10.10.0.3" }),
      ["10.10.0.1/24|10.10.0.254", "3ffe:ffff:0:1ff::1/64|", "11.0.0.1/8|11.0.0.2"],
    );
    assert.deepEqual(staticOf({}), []);
  });

  it("are replaced by args, and those by the runtime", () => {
    const cni = { args: { cni: { ips: ["10.10.0.2/24"] } } };
    const both = { ...cni, runtimeConfig: { ips: ["10.10.0.3/24"] } };
    const args = "IP=10.10.0.4/24;GATEWAY=10.10.0.254";
    assert.deepEqual(staticOf({ addresses: ADDRESSES }, { args, rest: cni }), ["10.10.0.2/24|"]);
    assert.deepEqual(staticOf({ addresses: ADDRESSES }, { args, rest: both }), ["10.10.0.3/24|"]);
  });

  it("need a prefix, wherever they come from", () => {
    const ips = ["10.10.0.1"];
    const inList = "an entry in the 'ips' field is NOT in CIDR notation, got: '10.10.0.1'";
    assert.equal(
      staticOf({}, { args: "IP=10.10.0.1" }),
      "the 'ip' field is expected to be in CIDR notation, got: '10.10.0.1'",
    );
    assert.equal(staticOf({}, { rest: { args: { cni: { ips } } } }), inList);
    assert.equal(staticOf({}, { rest: { runtimeConfig: { ips } } }), inList);
    assert.equal(
      wordsOf({ addresses: [{ address: "10.10.0.1" }] }),
      "the 'address' field is expected to be in CIDR notation, got: '10.10.0.1'",
    );
    assert.equal(wordsOf({ addresses: [{ address: "10.0.0.1/8", gateway: "x" }] }), "invalid IP address: x");
  });

  it("have no room for two of a family up to 0.2.0", () => {
    const words = "CNI version 0.2.0 does not support more than 1 address per family";
    assert.equal(staticOf({}, { args: "IP=10.10.0.1/24,10.10.0.2/24", version: "0.2.0" }), words);
    assert.deepEqual(staticOf({ addresses: ADDRESSES }, { version: "0.2.0" }), [
      "10.10.0.1/24|10.10.0.254",
      "3ffe:ffff:0:1ff::1/64|",
    ]);
  });
});

describe("routes and dns", () => {
  it("are canonical and keep host bits and zeros", () => {
    const routes = [
      { dst: "2001:0DB8::1/32", gw: "2001:DB8:1::FE" },
      { dst: "0.0.0.0/0", gw: "", mtu: 1400, table: 0 },
    ];
    assert.deepEqual(ipamOf({ routes }).routes, [
      { dst: "2001:db8::1/32", gw: "2001:db8:1::fe" },
      { dst: "0.0.0.0/0", mtu: 1400, table: 0 },
    ]);
  });

  it("are refused when dst is missing or anything cannot be read", () => {
    assert.ok(wordsOf({ routes: [{ gw: "10.0.0.1" }] }).startsWith("ipam.routes[0] has no dst"));
    assert.equal(wordsOf({ routes: [{ dst: "10.0.0.0" }] }), "invalid CIDR address: 10.0.0.0");
    assert.equal(wordsOf({ routes: [{ dst: "10.0.0.0/8", gw: "x" }] }), "invalid IP address: x");
    assert.equal(
      wordsOf({ routes: [{ dst: 5 }] }),
      "json: cannot unmarshal number into field ipam.routes[0].dst of type string",
    );
    assert.equal(
      wordsOf({ routes: [{ dst: "10.0.0.0/8", mtu: "x" }] }),
      "json: cannot unmarshal string into field ipam.routes[0].mtu of type int",
    );
  });

  it("have no empty parts", () => {
    const dns = { nameservers: ["8.8.8.8"], domain: "", search: [], options: null };
    assert.deepEqual(ipamOf({ dns }).dns, { nameservers: ["8.8.8.8"] });
    assert.deepEqual(ipamOf({}).dns, {});
  });
});
