// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { BerthError } from "../../../../allocator/base/errors.ts";
import { noopLogger } from "../../../../allocator/base/ports.ts";
import { RecordCache } from "../../../../allocator/cache/cache.ts";
import { ManualClock } from "../../../../system/testing/manual-clock.ts";
import { addrs, bindingTo, claimRecord, storedAs } from "../../../../test/support/fixtures.ts";
import type { InUse } from "./in-use.ts";
import { LostClaims } from "./lost-claims.ts";

const USE: InUse = {
  ...{ claim: "shop/mysql-0", containerID: "box", interface: "eth0", network: "lan" },
  addresses: addrs("10.20.0.70"),
  unseen: () => "a process named its network namespace: /proc/7/ns/net",
};
const OWN = claimRecord({ binding: bindingTo("mysql-0", "host-a") });

describe("claims that this host has lost", () => {
  let view: RecordCache;
  let inUse: readonly InUse[];
  let isOwn: boolean;
  let isKept: () => Promise<boolean>;
  let told: unknown[];
  let lost: LostClaims;
  beforeEach(() => {
    [inUse, isOwn, isKept, told] = [[USE], true, async () => false, []];
    view = new RecordCache(noopLogger, { ofContainers: true });
    lost = new LostClaims({
      ...{ view, node: "host-a", clock: new ManualClock() },
      presence: {
        get isOwn() {
          return isOwn;
        },
      },
      isKept: () => isKept(),
      log: { ...noopLogger, error: (_message, fields) => told.push(fields) },
    });
    lost.start(() => inUse);
  });
  afterEach(() => lost.close());
  const keep = (claim: typeof OWN) => view.apply("claim", { type: "put", stored: storedAs("claim", claim) });
  const looks = async (times: number) => {
    for (let look = 0; look < times; look++) await lost.look();
  };

  it("are told once, with their container and what to do, when they are missed twice in a row", async () => {
    await looks(1);
    assert.deepEqual(told, []);
    await looks(2);
    assert.deepEqual(told, [
      {
        ...{ claim: "shop/mysql-0", containerID: "box", interface: "eth0", network: "lan", node: "host-a" },
        address: "10.20.0.70",
        remedy:
          "stop the container; that container box has ended this host does not see (a process named its network namespace: /proc/7/ns/net): once it has, send its DEL on host host-a, or boot that host (docs/etcd.md, A container whose end nobody sees)",
      },
    ]);
    inUse = [];
    await looks(2);
    inUse = [USE];
    await looks(2);
    assert.equal(told.length, 2, "another one, later");
  });

  it("are none while the claim is this host's", async () => {
    keep(OWN);
    await looks(3);
    assert.deepEqual(told, []);
    keep({ ...OWN, binding: bindingTo("mysql-0", "host-b") });
    await looks(2);
    assert.equal(told.length, 1);
  });

  it("are none that etcd has and the memory not yet, or where the container has ended meanwhile", async () => {
    isKept = async () => true;
    await looks(3);
    isKept = async () => {
      inUse = [];
      return false;
    };
    await looks(1);
    assert.deepEqual([told, inUse], [[], []]);
  });

  it("are not looked for while this host may not serve, which is told by itself", async () => {
    isOwn = false;
    await looks(3);
    assert.deepEqual(told, []);
  });

  it("are looked for no longer once this host may not serve, or ends, though there are many", async () => {
    inUse = Array.from({ length: 9 }, (_, n) => ({ ...USE, containerID: `box${n}` }));
    let asked = 0;
    isKept = async () => {
      if (++asked === 3) isOwn = false;
      return false;
    };
    await looks(2);
    assert.deepEqual([asked, told.length], [3, 2]);
    isOwn = true;
    isKept = async () => {
      asked++;
      void lost.close();
      return false;
    };
    await looks(1);
    assert.deepEqual([asked, told.length], [4, 2]);
  });

  it("are looked for again when etcd is back", async () => {
    isKept = async () => {
      throw new BerthError("STORE_UNAVAILABLE", "etcd is away");
    };
    await looks(1);
    await assert.rejects(looks(1), { code: "STORE_UNAVAILABLE" });
    isKept = async () => false;
    await looks(1);
    assert.equal(told.length, 1);
  });
});
