// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { beforeEach, describe, it } from "node:test";
import { type LogFields, noopLogger } from "../../../allocator/base/ports.ts";
import { NodeBench } from "../testing/node-bench.ts";
import { NetworkWarnings } from "./network-warnings.ts";

describe("what of a network's configuration has no effect", () => {
  const told: LogFields[] = [];
  const warn = (_: string, fields: LogFields = {}) => void told.push(fields);
  beforeEach(() => {
    told.length = 0;
  });

  it("is told once, and again when it changes", () => {
    const warnings = new NetworkWarnings({ ...noopLogger, warn });
    warnings.unread("lan", []);
    for (let i = 0; i < 2; i++) warnings.unread("lan", ["ipam.foo"]);
    warnings.unread("lan", ["ipam.foo", "ipam.bar"]);
    warnings.unread("lan", []);
    for (let i = 0; i < 2; i++) warnings.missing("lan", ["nosuch"]);
    assert.deepEqual(
      told.map(({ network, field, pool }) => [network, field ?? pool]),
      [
        ["lan", "ipam.foo"],
        ["lan", "ipam.foo, ipam.bar"],
        ["lan", "nosuch"],
      ],
    );
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
        told.map(({ field, pool }) => [field, pool]),
        [["ipam.subnet", "db"]],
      );
    });
  }

  it("is remembered of a bounded number of networks", () => {
    const warnings = new NetworkWarnings({ ...noopLogger, warn });
    for (let i = 0; i < 257; i++) warnings.unread(`lan-${i}`, ["ipam.foo"]);
    warnings.unread("lan-256", ["ipam.foo"]);
    assert.equal(told.length, 257);
    warnings.unread("lan-0", ["ipam.foo"]);
    assert.equal(told.length, 258);
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
