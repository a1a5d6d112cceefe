// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { isRefusal } from "../base/errors.ts";
import type { Labels } from "../base/ports.ts";
import { readRequest } from "./annotations.ts";

const NET1 = { "berth.dev/ips": "10.30.0.51@net1" };
const ASKED = { entries: [["10.30.0.51"]], interfaces: { net1: ["10.30.0.51"] } };

function read(annotations: Labels, ofNamespace: Labels) {
  const request = readRequest(annotations, { name: "shop", labels: {}, annotations: ofNamespace }, "macs");
  return isRefusal(request) ? request.message : request;
}

describe("what a namespace asks for, of a pod that asks for further interfaces alone", () => {
  for (const [what, ofNamespace, added] of [
    ["a pool", { "berth.dev/pools": "db" }, { interfacePools: { eth0: ["db"] } }],
    [
      "Calico's pools of one family",
      { "cni.projectcalico.org/ipv4pools": '["db"]' },
      { interfacePools: { eth0: ["db/IPv4"] } },
    ],
    [
      "a pool and a family",
      { "berth.dev/pools": "db", "berth.dev/families": "IPv6" },
      { interfacePools: { eth0: ["db/IPv6"] } },
    ],
    [
      "whatever it first gets, and how long it is kept",
      { "berth.dev/sticky": "true", "berth.dev/when-deleted": "Retain" },
      { interfacePools: { eth0: [] }, sticky: true, retention: { whenDeleted: "Retain" } },
    ],
    ["nothing", { "berth.dev/ttl": "2h" }, {}],
  ] as const)
    it(`is ${what} for its first interface`, () => {
      const own = "interfacePools" in added ? { ...added, defaultsFirst: true } : added;
      assert.deepEqual(read(NET1, ofNamespace), { ...ASKED, ...own });
    });

  it("stands beside the pod's own pools of another interface", () => {
    assert.deepEqual(read({ "berth.dev/pools": "lan@net1" }, { "berth.dev/pools": "db" }), {
      interfacePools: { net1: ["lan"], eth0: ["db"] },
      defaultsFirst: true,
    });
  });

  it("counts for nothing where the pod itself says the contrary", () => {
    const kept = { "berth.dev/sticky": "true", "berth.dev/pools": "db", "berth.dev/families": "IPv6" };
    const net1 = { ...ASKED, interfacePools: { eth0: ["db/IPv6"] }, defaultsFirst: true };
    assert.deepEqual(read({ ...NET1, "berth.dev/sticky": "false" }, kept), net1);
    assert.deepEqual(read({ ...NET1, "berth.dev/sticky": "false" }, { "berth.dev/sticky": "true" }), ASKED);
    assert.deepEqual(read({ ...NET1, "berth.dev/families": "IPv4" }, kept), {
      ...net1,
      interfacePools: { eth0: ["db"] },
      families: ["IPv4"],
      sticky: true,
    });
    assert.deepEqual(read({ ...NET1, "cni.projectcalico.org/ipFamilies": '["IPv4"]' }, kept), {
      ...net1,
      interfacePools: { eth0: ["db/IPv4"] },
      sticky: true,
    });
  });

  it("is nothing where the pod asks for its first interface, too", () => {
    const own = { "berth.dev/pools": "web,lan@net1" };
    assert.deepEqual(read(own, { "berth.dev/pools": "db" }), {
      interfacePools: { eth0: ["web"], net1: ["lan"] },
    });
  });
});
