// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { requestedAddresses } from "./requested.ts";
import { type Extras, ipamOf, staticOf, wordsOf } from "./testing/ipam-parts.ts";

describe("a key of ipam that is nearly one of berth's", () => {
  it("is refused with the word that was meant, in a range too", () => {
    const subnet = "10.9.0.0/24";
    for (const [key, meant] of [
      ["pool", "pools"],
      ["rangess", "ranges"],
      ["rangend", "rangeEnd"],
      ["range_start", "rangeStart"],
    ] as const) {
      assert.equal(
        wordsOf({ subnet, [key]: "x" }),
        `ipam.${key} is no field of berth's; did you mean ${meant}?`,
      );
    }
    assert.equal(
      wordsOf({ ranges: [[{ subnet, rangend: "10.9.0.9" }]] }),
      "ipam.ranges[0][0].rangend is no field of berth's; did you mean rangeEnd?",
    );
  });

  it("is ignored where it says nothing about addresses, and read in any letter case", () => {
    const ipam = {
      subnet: "10.9.0.0/24",
      log_level: "debug",
      datastore: "x",
      RANGESTART: "10.9.0.8",
      name: "x",
    };
    assert.deepEqual(ipamOf(ipam).unread, ["ipam.log_level", "ipam.datastore"]);
  });
});

describe("a key of ipam that is another plugin's", () => {
  const subnet = "10.9.0.0/24";
  for (const [key, advice] of [
    ["exclude", "leave the addresses out with rangeStart and rangeEnd, or make a pool"],
    ["omit_ranges", "leave the addresses out with rangeStart and rangeEnd, or make a pool"],
    ["allocationPool", "write the names of pools into ipam.pools"],
    ["ippools", "write the names of pools into ipam.pools"],
    ["default_ipv4_ippool", "write the names of pools into ipam.pools"],
    ["range", "did you mean ranges?"],
    ["ranges_v4", "known here: type, dataDir, pools"],
    ["node_slice_size", "a pool serves all nodes"],
    ["static", "write ipam.addresses as for static"],
    ["ipv4", "write ipam.addresses as for static"],
    ["assign_ipv4", "write ipam.addresses as for static"],
    ["etcd_host", "write ipam.etcdConfig"],
    ["network_name", "known here: type, dataDir, pools"],
  ] as const) {
    it(`is refused if it decides on addresses: ${key}`, () => {
      const words = wordsOf({ subnet, [key]: [] }) ?? "";
      assert.ok(words.startsWith(`ipam.${key} is no field of berth's; ${advice}`), words);
    });
  }

  it("is refused in a range and in an address, too", () => {
    assert.match(
      wordsOf({ ranges: [[{ subnet, exclude: ["10.9.0.9/32"] }]] }) ?? "",
      /^ipam\.ranges\[0\]\[0\]\.exclude is no field of berth's; leave the addresses out/,
    );
    const runtime = { runtimeConfig: { ipRanges: [[{ subnet, exclude: ["10.9.0.9/32"] }]] } };
    assert.match(
      wordsOf({}, { rest: runtime }) ?? "",
      /^runtimeConfig\.ipRanges\[0\]\[0\]\.exclude is no field of berth's; leave the addresses out/,
    );
    assert.match(
      wordsOf({ addresses: [{ address: "10.9.0.9/24", subnet }] }) ?? "",
      /^ipam\.addresses\[0\]\.subnet is no field of berth's/,
    );
  });

  for (const [other, value] of [
    ["subnet", subnet],
    ["ranges", [[{ subnet }]]],
    ["pools", ["db"]],
    ["etcdConfig", { etcdURL: "http://10.0.0.1:2379" }],
  ] as const) {
    it(`addresses beside ${other} are refused: one of them would be dropped`, () => {
      assert.equal(
        wordsOf({ addresses: [{ address: "10.9.0.9/24" }], [other]: value }),
        `ipam.addresses and ipam.${other} stand side by side, and a pod gets of one of them alone; take one out`,
      );
    });
  }
});

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

  it("reads etcdConfig as cni-ipam-etcd has it", () => {
    const etcdConfig = {
      etcdURL: "https://192.168.1.10:2379",
      etcdCertFile: "/etc/cni/net.d/etcd.pem",
      etcdKeyFile: "/etc/cni/net.d/etcd-key.pem",
      etcdTrustedCAFileFile: "/etc/cni/net.d/etcd-ca.pem",
    };
    const read = ipamOf({ name: "myetcd-ipam", type: "etcd", subnet: "10.0.0.0/24", etcdConfig });
    assert.deepEqual(read.etcd, {
      url: "https://192.168.1.10:2379",
      certFile: "/etc/cni/net.d/etcd.pem",
      keyFile: "/etc/cni/net.d/etcd-key.pem",
      caFile: "/etc/cni/net.d/etcd-ca.pem",
    });
    assert.equal(ipamOf({ subnet: "10.0.0.0/24", etcdConfig: null }).etcd, undefined);
    for (const [given, words] of [
      [{}, "ipam.etcdConfig names no etcdURL; write for example https://10.0.0.1:2379"],
      [{ etcdUrls: "http://a" }, "ipam.etcdConfig.etcdUrls is no field of berth's; did you mean etcdURL?"],
      [
        { etcdURL: "http://a", etcdTrustedCAFile: "x" },
        "ipam.etcdConfig.etcdTrustedCAFile is no field of berth's; did you mean etcdTrustedCAFileFile?",
      ],
      [{ etcdURL: 5 }, "json: cannot unmarshal number into field ipam.etcdConfig.etcdURL of type string"],
    ] as const) {
      assert.equal(wordsOf({ subnet: "10.0.0.0/24", etcdConfig: given }), words);
    }
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
