// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createClock } from "../system/clock.ts";
import { exposed } from "../test/support/exposed.ts";
import {
  bindingTo,
  claimRecord,
  NOW,
  poolRecord,
  reservationRecord,
  storedAs,
  viewOf,
} from "../test/support/fixtures.ts";
import { issueAuthority } from "./certificates/issue.ts";
import { withMetrics, withReplicaMetrics } from "./metrics.ts";

const TINY = poolRecord("tiny", "10.0.0.0/29");

describe("what is measured of the records", () => {
  it("is how full each pool is: states add up to the capacity", async () => {
    const { metrics, of } = exposed();
    const reservations = [
      reservationRecord("10.0.0.2", { pool: "tiny" }),
      reservationRecord("10.0.0.3", { pool: "tiny" }),
      reservationRecord("10.0.0.4", { pool: "tiny", releasedAt: NOW }),
    ];
    withMetrics(metrics, viewOf({ pools: [TINY], reservations }));
    assert.deepEqual(await of("berth_pool_capacity_addresses"), ['{pool="tiny",family="IPv4"} 6']);
    assert.deepEqual(await of("berth_pool_addresses"), [
      '{pool="tiny",family="IPv4",state="held"} 2',
      '{pool="tiny",family="IPv4",state="cooling"} 1',
      '{pool="tiny",family="IPv4",state="block"} 0',
      '{pool="tiny",family="IPv4",state="withheld"} 0',
      '{pool="tiny",family="IPv4",state="free"} 3',
    ]);
    assert.deepEqual(await of("berth_reservations"), ["3"]);
  });

  it("is that none is free for requests that name none, where only reserved ones are left", async () => {
    const { metrics, of } = exposed();
    const reservations = ["10.0.0.1", "10.0.0.2"].map((address) =>
      reservationRecord(address, { pool: "tiny" }),
    );
    const some = poolRecord("tiny", "10.0.0.0/29", { reserved: ["10.0.0.3-10.0.0.6"] });
    const whole = poolRecord("whole", "10.0.1.0/29", { reserved: ["10.0.1.0/29"] });
    withMetrics(metrics, viewOf({ pools: [some, whole], reservations }));
    const addresses = await of("berth_pool_addresses");
    const inState = (state: string) => addresses.filter((line) => line.includes(`state="${state}"`));
    assert.deepEqual(inState("free"), [
      '{pool="tiny",family="IPv4",state="free"} 0',
      '{pool="whole",family="IPv4",state="free"} 0',
    ]);
    assert.deepEqual(inState("withheld"), [
      '{pool="tiny",family="IPv4",state="withheld"} 4',
      '{pool="whole",family="IPv4",state="withheld"} 6',
    ]);
    assert.deepEqual(await of("berth_pool_unnamed_capacity_addresses"), ['{pool="tiny",family="IPv4"} 2']);
  });

  it("is whose the blocks of pools are, where they are cut into some", async () => {
    const { metrics, of } = exposed();
    const cut = poolRecord("cut", ["10.1.0.0/28", "fd00::/64"], { blockSize: { ipv4: 30 } });
    const view = viewOf({ pools: [TINY, cut] });
    const block = { pool: "cut", node: "a", nodeUID: "u", holes: [], granted: true };
    for (const one of [
      { ...block, cidr: "10.1.0.0/30" },
      { ...block, cidr: "10.1.0.4/30", releasedAt: NOW },
    ])
      view.apply("block", { type: "put", stored: storedAs("block", one) });
    withMetrics(metrics, view);
    assert.deepEqual(await of("berth_pool_blocks"), [
      '{pool="cut",family="IPv4",state="owned"} 1',
      '{pool="cut",family="IPv4",state="cooling"} 1',
      '{pool="cut",family="IPv4",state="free"} 2',
    ]);
    const addresses = await of("berth_pool_addresses");
    assert.deepEqual(
      addresses.filter((line) => line.startsWith('{pool="cut",family="IPv4"')),
      ["held", "cooling", "block", "withheld", "free"].map(
        (state, i) => `{pool="cut",family="IPv4",state="${state}"} ${[0, 0, 8, 0, 6][i] ?? ""}`,
      ),
      "as the pool's status has it: what nodes have is not free",
    );
  });

  it("is what claims and pools are doing", async () => {
    const { metrics, of } = exposed();
    const claims = [
      claimRecord({ binding: bindingTo("mysql-0", "node-a") }),
      claimRecord({ name: "mysql-1", binding: bindingTo("mysql-1", "node-a") }),
      claimRecord({ name: "mysql-2", retained: { since: 0, because: "scaled" } }),
    ];
    const view = viewOf({ pools: [TINY, { name: "off", spec: { ...TINY.spec, disabled: true } }], claims });
    const broken = { name: "broken", spec: { ranges: [{ cidr: "nonsense" }] } };
    view.apply("pool", { type: "put", stored: storedAs("pool", broken) });
    withMetrics(metrics, view);
    assert.deepEqual(await of("berth_claims"), ['{phase="Bound"} 2', '{phase="Retained"} 1']);
    assert.deepEqual(await of("berth_pools"), [
      '{state="open"} 1',
      '{state="disabled"} 1',
      '{state="unusable"} 1',
    ]);
  });
});

describe("what is measured of a replica", () => {
  it("is its version, whether it is ready, and when its certificates end", async () => {
    const { metrics, of } = exposed();
    const { cert } = await issueAuthority(createClock());
    let ready = false;
    let certificates: Readonly<Record<string, string>> = {};
    withReplicaMetrics(metrics, { version: "1.2.3", ready: () => ready, certificates: () => certificates });
    assert.deepEqual(await of("berth_build_info"), ['{component="webhook",version="1.2.3"} 1']);
    assert.deepEqual(await of("berth_ready"), ["0"]);
    assert.deepEqual(await of("berth_certificate_expiry_timestamp_seconds"), []);
    ready = true;
    certificates = { serving: cert };
    assert.deepEqual(await of("berth_ready"), ["1"]);
    const [line = ""] = await of("berth_certificate_expiry_timestamp_seconds");
    const days = (Number(line.split(" ")[1]) - Date.now() / 1000) / 86_400;
    assert.match(line, /^\{certificate="serving"\} /);
    assert.ok(days > 3_000 && days < 4_000, `${days} days`);
  });
});
