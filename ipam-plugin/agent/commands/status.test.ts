// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { isRefusal } from "../../../allocator/base/errors.ts";
import { parsePool } from "../../../allocator/pool/pool.ts";
import { errorOf, NodeBench } from "../testing/node-bench.ts";

const DB = parsePool({ name: "db", spec: { ranges: [{ cidr: "10.20.0.0/24" }] } });

describe("STATUS of a network that names a pool which does not exist", () => {
  let node: NodeBench;
  const warned: unknown[] = [];
  const status = (...pools: readonly string[]) => node.call("STATUS", { ipam: { pools } });

  beforeEach(async () => {
    assert.ok(!isRefusal(DB));
    node = await NodeBench.open();
    node.blockSource.stored.set("db", DB);
    const { networkWarnings } = node.parts;
    networkWarnings.missing = (_, names) => void warned.push(names);
    warned.length = 0;
  });
  afterEach(() => node.close());

  it("fails on one host, in words, until the pool is there", async () => {
    Object.assign(node.blockSource, { more: () => Promise.resolve(false) });
    assert.equal((await status("db")).exitStatus, 0);
    assert.match(
      errorOf(await status("db", "nosuch")).msg,
      /^network net: there is no pool "nosuch"; name one of "db"$/,
    );
    node.blockSource.stored.clear();
    assert.match(
      errorOf(await status("db")).msg,
      /^network net: there is no pool "db"; there are no pools yet/,
    );
    assert.deepEqual(warned, [[], ["nosuch"], ["db"]]);
  });

  it("does not fail in a cluster, where a kubelet would evict pods: it is told in the log", async () => {
    assert.equal((await status("nosuch")).exitStatus, 0);
    assert.deepEqual(warned, [["nosuch"]]);
  });

  it("says nothing while it is not known which pools there are", async () => {
    node.blockSource.isSynced = false;
    assert.equal((await status("nosuch")).exitStatus, 0);
    assert.deepEqual(warned, [[]]);
  });
});
