// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  addr,
  attachmentOf,
  bindingTo,
  claimRecord,
  DB_POOL,
  NOW,
  poolRecord,
  reservationRecord,
  reservationsOf,
  storedAs,
  viewOf,
} from "../../test/support/fixtures.ts";
import { usesOf } from "../backend/attachment-report.ts";
import { attachment } from "../testing/folder.ts";
import { addressReportOf } from "./address-report.ts";
import { describeAddress } from "./address-words.ts";

const held = claimRecord({ binding: bindingTo("mysql-0", "node-a") });
const view = viewOf({
  pools: [DB_POOL],
  claims: [held, claimRecord({ name: "mysql-1", nonce: "n2", addresses: [addr("10.20.0.71")] })],
  reservations: [
    ...reservationsOf(held),
    reservationRecord("10.20.0.72", { releasedAt: NOW }),
    reservationRecord("10.20.0.74"),
    reservationRecord("10.20.0.73", { nonce: "gone", claim: { namespace: "shop", name: "x" } }),
  ],
});

describe("what is said of an address", () => {
  it("tells holder, pod, node and sandbox of a held address", () => {
    const used = [attachment("mysql-0", "10.20.0.70", "shop/mysql-0"), attachment("other", "10.9.0.1")];
    assert.deepEqual(addressReportOf({ view, place: "data" }, used, addr("10.20.0.70")), {
      address: "10.20.0.70",
      pool: "db",
      state: "held",
      claim: "shop/mysql-0",
      identity: "StatefulSet mysql, ordinal 0",
      phase: "Bound",
      pod: { namespace: "shop", name: "mysql-0", uid: "uid-of-mysql-0" },
      since: "2026-01-01T00:00:00Z",
      node: "node-a",
      sandboxes: [
        {
          containerID: "sandbox-of-mysql-0",
          interface: "eth0",
          network: "net",
          pod: "shop/mysql-0",
          since: "2026-01-01T00:00:00Z",
        },
      ],
    });
  });

  it("speaks of containers and hosts on hosts that share an etcd, also of one whose runtime says its name", () => {
    const named = claimRecord({
      ...{
        namespace: "default",
        name: "recorder",
        identity: { kind: "Pod", apiVersion: "v1", name: "recorder" },
      },
      binding: bindingTo("recorder", "host-a", { podUID: "" }),
      status: {
        attachment: attachmentOf("recorder", { containerID: "e3f0c1d2a4b5c6d7", node: "host-a", podUID: "" }),
      },
    });
    const seen = viewOf({ pools: [DB_POOL], claims: [named], reservations: reservationsOf(named) });
    const report = addressReportOf({ view: seen, place: "etcd" }, usesOf([named]), addr("10.20.0.70"));
    assert.deepEqual(
      [report.container, report.pod, report.sandboxes[0]?.pod],
      ["e3f0c1d2a4b5", undefined, ""],
    );
    const text = describeAddress(report);
    assert.match(text, /^ {2}identity +container recorder$/m);
    assert.match(text, /^ {2}host +host-a$/m);
    assert.match(text, /^ {2}sandbox +e3f0c1d2a4b5c6d7 eth0, since /m);
    assert.doesNotMatch(text, /pod|node/i);
    assert.doesNotMatch(
      describeAddress(addressReportOf({ view, place: "etcd" }, [], addr("10.20.0.60"))),
      /pod /,
    );
  });

  for (const [address, rest] of [
    [
      "10.20.0.72",
      { pool: "db", state: "cooling", claim: "shop/mysql-0", coolingUntil: "2026-01-01T00:00:30Z" },
    ],
    ["10.20.0.73", { pool: "db", state: "orphaned", claim: "shop/x" }],
    [
      "10.20.0.74",
      { pool: "db", state: "beside", claim: "shop/mysql-0", identity: "StatefulSet mysql, ordinal 0" },
    ],
    ["10.20.0.90", { pool: "db", state: "free" }],
    ["10.20.0.50", { pool: "db", state: "reserved" }],
    ["10.20.0.100", { pool: "db", state: "gateway" }],
    ["10.20.0.60", { pool: "db", state: "excluded" }],
    ["10.20.0.200", { state: "outside" }],
  ] as const) {
    it(`calls ${address} ${rest.state}`, () => {
      assert.deepEqual(addressReportOf({ view, place: "data" }, [], addr(address)), {
        address,
        ...rest,
        sandboxes: [],
      });
    });
  }

  it("says whose CIDR it is in, and that it is in nobody's where the pool is for CIDRs of nodes", () => {
    const nodeCIDRs = { use: "PodCIDR", blockSize: { ipv4: 24 } } as const;
    const nodes = viewOf({ pools: [poolRecord("nodes", "10.40.0.0/16", { nodeCIDRs })] });
    const owner = {
      pool: "nodes",
      node: "node-b",
      nodeUID: "u",
      holes: [],
      granted: true,
      use: "PodCIDR",
    } as const;
    nodes.apply("block", { type: "put", stored: storedAs("block", { cidr: "10.40.7.0/24", ...owner }) });
    assert.match(
      describeAddress(addressReportOf({ view: nodes, place: "data" }, [], addr("10.40.7.9"))),
      /^10\.40\.7\.9 is in the CIDR of a node, whose own network gives it .*\n {2}pool +nodes\n {2}block +10\.40\.7\.0\/24\n {2}node +node-b\n$/,
    );
    assert.match(
      describeAddress(addressReportOf({ view: nodes, place: "data" }, [], addr("10.40.8.9"))),
      /pool for CIDRs of nodes, and no node has/,
    );
  });

  it("says which node has it in a block, and until when a block cools that was given back", () => {
    const cut = poolRecord("web", "10.40.0.0/24", { blockSize: { ipv4: 28 }, cooldown: "30s" });
    const blocks = viewOf({ pools: [cut], reservations: [reservationRecord("10.40.0.9", { pool: "web" })] });
    const owned = { pool: "web", node: "node-b", nodeUID: "u", granted: true };
    for (const block of [
      { ...owned, cidr: "10.40.0.0/28", holes: ["10.40.0.0/32", "10.40.0.9/32"] },
      { ...owned, cidr: "10.40.0.16/28", holes: [], releasedAt: NOW },
    ])
      blocks.apply("block", { type: "put", stored: storedAs("block", block) });
    const report = addressReportOf({ view: blocks, place: "data" }, [], addr("10.40.0.5"));
    const own = { pool: "web", state: "in-block", block: "10.40.0.0/28", node: "node-b", sandboxes: [] };
    assert.deepEqual(report, { address: "10.40.0.5", ...own });
    assert.match(
      describeAddress(report),
      /^10\.40\.0\.5 is in a block of a node, which gives it to pods that need no fixed address\n {2}pool +web\n {2}block +10\.40\.0\.0\/28\n {2}node +node-b\n$/,
    );
    assert.deepEqual(addressReportOf({ view: blocks, place: "data" }, [], addr("10.40.0.20")), {
      address: "10.40.0.20",
      pool: "web",
      state: "block-cooling",
      block: "10.40.0.16/28",
      coolingUntil: "2026-01-01T00:00:30Z",
      sandboxes: [],
    });
    const returnedAddresses = [addr("10.40.0.33")];
    const divided = {
      ...owned,
      cidr: "10.40.0.32/28",
      holes: [],
      status: { node: "node-b", used: 1, returnedAddresses },
    };
    blocks.apply("block", { type: "put", stored: storedAs("block", divided) });
    const parted = addressReportOf({ view: blocks, place: "data" }, [], addr("10.40.0.33"));
    assert.deepEqual(
      [parted.state, parted.block, parted.node],
      ["block-returned", "10.40.0.32/28", undefined],
    );
    const states = ["10.40.0.9", "10.40.0.60"].map(
      (text) => addressReportOf({ view: blocks, place: "data" }, [], addr(text)).state,
    );
    assert.deepEqual(states, ["orphaned", "free"]);
  });

  it("says until when an address is retained", () => {
    const retention = { whenDeleted: "Retain", whenScaled: "Retain", ttlMs: 3_600_000 } as const;
    const claim = claimRecord({ retained: { since: NOW, because: "scaled" }, retention });
    const kept = viewOf({ pools: [DB_POOL], claims: [claim], reservations: reservationsOf(claim) });
    const text = describeAddress(addressReportOf({ view: kept, place: "data" }, [], addr("10.20.0.70")));
    assert.ok(text.includes("  retained until   2026-01-01T01:00:00Z\n"), text);
  });

  it("finds an address that only this node knows", () => {
    const report = addressReportOf(
      { view, place: "data" },
      [attachment("web", "10.9.0.1")],
      addr("10.9.0.1"),
    );
    assert.equal(report.state, "outside");
    assert.equal(
      describeAddress(report),
      "10.9.0.1 is in no pool\n" +
        "  sandbox   sandbox-of-web eth0, network net, pod shop/web, since 2026-01-01T00:00:00Z\n",
    );
  });
});
