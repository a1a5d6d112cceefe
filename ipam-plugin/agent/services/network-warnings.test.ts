// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { beforeEach, describe, it } from "node:test";
import { type LogFields, noopLogger } from "../../../allocator/base/ports.ts";
import { parsed, poolRecord } from "../../../test/support/fixtures.ts";
import { NodeBench } from "../testing/node-bench.ts";
import { NetworkWarnings } from "./network-warnings.ts";

describe("what of a network's configuration has no effect", () => {
  const reported: LogFields[] = [];
  const warn = (_: string, fields: LogFields = {}) => void reported.push(fields);
  beforeEach(() => {
    reported.length = 0;
  });

  it("is told once, and again when it changes", () => {
    const warnings = new NetworkWarnings({ ...noopLogger, warn });
    warnings.unread("lan", []);
    for (let i = 0; i < 2; i++) warnings.unread("lan", ["ipam.foo"]);
    warnings.unread("lan", ["ipam.foo", "ipam.bar"]);
    warnings.unread("lan", []);
    for (let i = 0; i < 2; i++) warnings.missing("lan", ["nosuch"], "ipam.ipv4_pools");
    assert.equal(reported.at(-1)?.remedy, "make the pools, or name others in ipam.ipv4_pools");
    assert.deepEqual(
      reported.map(({ network, field, pool }) => [network, field ?? pool]),
      [
        ["lan", "ipam.foo"],
        ["lan", "ipam.foo, ipam.bar"],
        ["lan", "nosuch"],
      ],
    );
  });

  it("is told of pools without blocks, in a cluster as a warning", () => {
    const info: unknown[] = [];
    const log = { ...noopLogger, warn, info: (_: string, fields: LogFields = {}) => void info.push(fields) };
    const warnings = new NetworkWarnings(log);
    const uncut = (...names: readonly string[]) => ({ names, size: "{ipv4: 32}", isOneHost: false });
    for (let i = 0; i < 2; i++) warnings.uncut("lan", uncut("db", "web"));
    warnings.uncut("lan", uncut());
    for (let i = 0; i < 2; i++) warnings.uncut("host", { ...uncut("db"), isOneHost: true });
    assert.deepEqual(
      reported.map(({ network, pool }) => [network, pool]),
      [["lan", "db, web"]],
    );
    assert.match(
      JSON.stringify(info),
      /^\[\{"network":"host","pool":"db","remedy":"make such a pool with spec.blockSize: \{ipv4: 32\}, .*gets a claim of them, .*in a cluster both are"\}\]$/,
    );
  });

  for (const { pools, ranges, told: expected } of [
    { pools: ["plain"], told: ["plain"] },
    { pools: ["plain", "nosuch"], told: ["plain"] },
    { pools: ["plain", "cut"], told: [] },
    { pools: ["asking"], told: [] },
    { pools: ["plain"], ranges: [[{ subnet: "10.20.0.0/24" }]], told: [] },
  ])
    it(`is told of ${expected.length === 0 ? "none" : "those"} where a network names ${pools.join(" and ")}${ranges ? " beside ranges" : ""}`, async () => {
      const node = await NodeBench.open();
      try {
        const pool = (name: string, cidr: string, more = {}) =>
          node.blockSource.stored.set(name, parsed(poolRecord(name, cidr, more)));
        pool("plain", "10.0.0.0/24");
        pool("cut", "10.1.0.0/24", { blockSize: { ipv4: 32 } });
        pool("asking", "10.2.0.0/24", { blockSize: {} });
        const seen: unknown[] = [];
        node.parts.networkWarnings.uncut = (_, { names }) => void seen.push(names);
        node.ipam = { pools, ...(ranges && { ranges }) };
        await node.call("STATUS");
        assert.deepEqual(seen, [expected]);
      } finally {
        await node.close();
      }
    });

  for (const verb of ["STATUS", "ADD"]) {
    it(`is told at ${verb} of ranges beside pools, once`, async () => {
      const node = await NodeBench.open();
      try {
        const seen: unknown[] = [];
        node.parts.networkWarnings.beside = (_, pools, field) => void seen.push([pools, field]);
        node.ipam = { ranges: [[{ subnet: "10.20.0.0/24" }]], pools: ["db"] };
        await node.call(verb);
        node.ipam = { pools: ["db"] };
        await node.call(verb);
        assert.deepEqual(seen, [
          [["db"], "ranges"],
          [["db"], ""],
        ]);
      } finally {
        await node.close();
      }
      const warnings = new NetworkWarnings({ ...noopLogger, warn });
      for (let i = 0; i < 2; i++) warnings.beside("lan", ["db"], "subnet");
      warnings.beside("lan", ["db"], "");
      assert.deepEqual(
        reported.map(({ field, pool }) => [field, pool]),
        [["ipam.subnet", "db"]],
      );
    });
  }

  it("is remembered of a bounded number of networks", () => {
    const warnings = new NetworkWarnings({ ...noopLogger, warn });
    for (let i = 0; i < 257; i++) warnings.unread(`lan-${i}`, ["ipam.foo"]);
    warnings.unread("lan-256", ["ipam.foo"]);
    assert.equal(reported.length, 257);
    warnings.unread("lan-0", ["ipam.foo"]);
    assert.equal(reported.length, 258);
  });

  for (const verb of ["STATUS", "ADD"]) {
    it(`is looked for at ${verb}, and it succeeds`, async () => {
      const node = await NodeBench.open();
      try {
        const seen: unknown[] = [];
        node.parts.networkWarnings.unread = (_, keys) => void seen.push(keys);
        node.ipam = { ranges: [[{ subnet: "10.20.0.0/24" }]], foo: true };
        assert.equal((await node.call(verb)).exitStatus, 0);
        assert.deepEqual(seen, [["ipam.foo"]]);
      } finally {
        await node.close();
      }
    });
  }
});
