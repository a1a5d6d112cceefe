// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import {
  addr,
  addrs,
  attachmentOf,
  bindingTo,
  claimRecord,
  DB_POOL,
  reservationsOf,
} from "../../test/support/fixtures.ts";
import { attachment, Folder } from "../testing/folder.ts";

const claim = claimRecord({
  binding: bindingTo("mysql-0", "node-a"),
  status: { attachment: attachmentOf("mysql-0") },
});

function folder(t: TestContext): Promise<Folder> {
  return Folder.of(t, {
    pools: [DB_POOL],
    claims: [claim],
    reservations: reservationsOf(claim),
    attachments: [attachment("mysql-0", "10.20.0.70", "shop/mysql-0")],
  });
}

describe("berthctl who", () => {
  it("tells everything about a held address", async (t) => {
    const data = await folder(t);
    assert.deepEqual(await data.call("who", "10.20.0.70"), {
      code: 0,
      stdout: [
        "10.20.0.70 is held",
        "  pool       db",
        "  claim      shop/mysql-0",
        "  identity   StatefulSet mysql, ordinal 0",
        "  phase      Attached",
        "  pod        shop/mysql-0 (uid uid-of-mysql-0)",
        "  node       node-a",
        "  since      2026-01-01T00:00:00Z",
        "  sandbox    sandbox-of-mysql-0 eth0, network net, pod shop/mysql-0, since 2026-01-01T00:00:00Z",
        "",
      ].join("\n"),
      stderr: "",
    });
  });

  it("tells a MAC address as one, and of an interface that nothing reports that it does", async (t) => {
    const addresses = addrs("10.20.0.70", "10.20.0.71", "fe80::ff:fe00:51");
    const [eth0 = addr(""), net1 = addr(""), mac = addr("")] = addresses;
    const request = { addresses, interfaces: { eth0: [eth0], net1: [net1], "mac-net1": [mac] } };
    const data = await Folder.of(t, {
      pools: [DB_POOL],
      claims: [{ ...claim, addresses, request }],
      reservations: reservationsOf({ ...claim, addresses }),
      attachments: [attachment("mysql-0", "10.20.0.70", "shop/mysql-0")],
    });
    const other = await data.call("who", "02:00:00:00:00:51");
    assert.match(other.stdout, /^MAC address 02:00:00:00:00:51 is held\n {2}kept as +fe80::ff:fe00:51\n/);
    assert.match(other.stdout, /^ {2}interface +net1; it is not reported whether the pod has it/m);
    assert.match((await data.call("who", "10.20.0.71")).stdout, /^ {2}interface +net1; it is not reported/m);
    assert.doesNotMatch((await data.call("who", "10.20.0.70")).stdout, /^ {2}interface/m);
    const { stdout } = await data.call("get", "claims", "-n", "shop");
    assert.match(stdout, / 10\.20\.0\.70@eth0, 10\.20\.0\.71@net1, 02:00:00:00:00:51@net1 /);
  });

  it("tells of a retained address who had it last", async (t) => {
    const status = { attachment: attachmentOf("mysql-0", { detached: true }) };
    const kept = { ...claim, status, retained: { since: Date.UTC(2026, 0, 2), because: "scaled" } } as const;
    const data = await Folder.of(t, {
      pools: [DB_POOL],
      claims: [kept],
      reservations: reservationsOf(kept),
    });
    const { stdout } = await data.call("who", "10.20.0.70");
    assert.match(stdout, /^ {2}last pod +shop\/mysql-0 .*\n {2}last node +node-a\n {2}from +2026-01-01T/m);
    assert.doesNotMatch(stdout, /^ {2}(?:pod|node|since) /m);
  });

  it("tells until when an address waits for its pod", async (t) => {
    const held = claimRecord({ binding: bindingTo("mysql-0", ""), admittedAt: Date.UTC(2026, 0, 1) });
    const data = await Folder.of(t, {
      pools: [DB_POOL],
      claims: [held],
      reservations: reservationsOf(held),
    });
    const { stdout } = await data.call("who", "10.20.0.70");
    assert.match(stdout, /^ {2}held until +2026-01-01T00:02:00Z, unless its pod comes$/m);
  });

  it("tells the pool of a free address, however it is written", async (t) => {
    const data = await folder(t);
    assert.deepEqual(await data.call("who", "FD00:20:0::0099"), {
      code: 0,
      stdout: "fd00:20::99 is free\n  pool   db\n",
      stderr: "",
    });
  });

  it("tells which pools there are for an address in none", async (t) => {
    const data = await folder(t);
    assert.deepEqual(await data.call("who", "10.9.0.1"), {
      code: 1,
      stdout: "",
      stderr: 'Error: address 10.9.0.1 is in no pool; pools have: "db" 10.20.0.50-10.20.0.199\n',
    });
  });

  it("knows a gateway that is in no range", async (t) => {
    const ranges = [{ cidr: "10.40.0.0/24", from: "10.40.0.50", gateway: "10.40.0.1" }];
    const data = await Folder.of(t, { pools: [{ name: "web", spec: { ranges } }] });
    assert.deepEqual(await data.call("who", "10.40.0.1"), {
      code: 0,
      stdout: '10.40.0.1 is the gateway of pool "web": nobody gets it\n  pool   web\n',
      stderr: "",
    });
  });

  it("prints JSON for all of them", async (t) => {
    const data = await folder(t);
    const outside = await data.call("who", "10.9.0.1", "-o", "json");
    assert.equal(outside.code, 1);
    assert.deepEqual(JSON.parse(outside.stdout), { address: "10.9.0.1", state: "outside", sandboxes: [] });
    const held = await data.call("who", "10.20.0.70", "-o", "json");
    assert.equal(JSON.parse(held.stdout).sandboxes[0].containerID, "sandbox-of-mysql-0");
  });
});
