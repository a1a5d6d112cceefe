// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { formerClaimName } from "../../ipam-plugin/agent/claims/etcd/former-containers.ts";
import { addr, bindingTo, granted, refusalOf } from "../../test/support/fixtures.ts";
import { importNetwork, readNetwork, usedOf } from "./import-network.ts";
import { FormerEtcd } from "./testing/former-etcd.ts";

const BEYOND =
  'POOL_INVALID: cni-ipam-etcd gave addresses that the network\'s ranges, as it wrote them last, do not have: 10.0.0.52 of container far; make pool "lan" with the ranges of all its hosts (berthctl --etcd URL apply -f), or stop these containers, then import again';

function wide(etcd: FormerEtcd): void {
  const ranges = [{ cidr: "10.0.0.0/24", from: "10.0.0.50", to: "10.0.0.59", gateway: "10.0.0.254" }];
  etcd.pools.set("lan", { name: "lan", spec: { ranges } });
}

describe("the import of a network of cni-ipam-etcd", () => {
  it("keeps what containers have, and marks everything else", async () => {
    const etcd = new FormerEtcd("10.0.0.50", "10.0.0.52");
    etcd.use("10.0.0.51", "x");
    const imported = granted(await importNetwork(etcd.parts));
    assert.deepEqual(imported, { pool: "lan", kept: 1, addresses: 3 });
    assert.deepEqual(etcd.used(), { "10.0.0.50": "berth", "10.0.0.51": "berth x", "10.0.0.52": "berth" });
    assert.deepEqual(Object.values(etcd.given()), [["10.0.0.51"]]);
    assert.deepEqual(etcd.reported, ["10.0.0.51 x"]);
    assert.equal(granted(await importNetwork(etcd.parts)).kept, 0);
  });

  it("refuses before it makes anything where a host with other ranges gave an address, and so does a dry run", async () => {
    const etcd = new FormerEtcd("10.0.0.50", "10.0.0.51");
    etcd.use("10.0.0.52", "far");
    etcd.use("10.0.0.50", "near");
    assert.equal(refusalOf(await importNetwork(etcd.parts)), BEYOND);
    assert.deepEqual([etcd.pools.size, etcd.claims.size], [0, 0]);
    const read = granted(await readNetwork(etcd.network, etcd.store));
    assert.equal(refusalOf(usedOf((await etcd.network.kept()).used, read)), BEYOND);
  });

  it("keeps such an address where the pool that is there has it", async () => {
    const etcd = new FormerEtcd("10.0.0.50", "10.0.0.51");
    wide(etcd);
    etcd.use("10.0.0.52", "far");
    etcd.use("10.0.0.50", "near");
    assert.deepEqual(granted(await importNetwork(etcd.parts)), { pool: "lan", kept: 2, addresses: 3 });
    assert.equal(etcd.used()["10.0.0.52"], "berth far");
    assert.deepEqual(Object.values(etcd.given()).flat().toSorted(), ["10.0.0.50", "10.0.0.52"]);
  });
});

describe("the import while containers come and go", () => {
  const claimOf = (container: string, address: string) =>
    formerClaimName({ network: "lan", containerID: container }, addr(address));
  const X = claimOf("x", "10.0.0.50");

  /** A network whose container x ends after its claim was made, and before its key is marked. */
  function ending(after = (_etcd: FormerEtcd) => {}): FormerEtcd {
    const etcd = new FormerEtcd("10.0.0.50", "10.0.0.51");
    etcd.use("10.0.0.50", "x");
    etcd.changing = ({ value }) => {
      if (value !== "berth x") return;
      etcd.changing = () => {};
      assert.ok(etcd.claims.has(X));
      etcd.end("10.0.0.50");
      after(etcd);
    };
    return etcd;
  }

  it("keeps nothing for one that ended before it was marked", async () => {
    const etcd = ending();
    assert.equal(granted(await importNetwork(etcd.parts)).kept, 0);
    assert.deepEqual(etcd.given(), {});
    assert.deepEqual(etcd.reported, []);
    assert.deepEqual(etcd.used(), { "10.0.0.50": "berth", "10.0.0.51": "berth" });
  });

  it("keeps the address for the next one that got it", async () => {
    const etcd = ending((after) => after.use("10.0.0.50", "y"));
    assert.equal(granted(await importNetwork(etcd.parts)).kept, 1);
    assert.deepEqual(etcd.given(), { [claimOf("y", "10.0.0.50")]: ["10.0.0.50"] });
    assert.deepEqual(etcd.reported, ["10.0.0.50 y"]);
  });

  it("leaves it to nobody meanwhile, whichever container has it in the end", async () => {
    const etcd = ending((after) => after.use("10.0.0.50", "y"));
    let pauses = 0;
    const sleep = async () => {
      pauses++;
      assert.deepEqual(etcd.given(), { [claimOf("y", "10.0.0.50")]: ["10.0.0.50"] });
    };
    assert.equal(granted(await importNetwork({ ...etcd.parts, clock: { sleep } })).kept, 1);
    assert.equal(pauses, 1);
    const twice = ending((after) => {
      after.use("10.0.0.50", "y");
      after.changing = ({ value }) => {
        if (value === "berth y") after.end("10.0.0.50");
      };
    });
    assert.equal(granted(await importNetwork(twice.parts)).kept, 0);
    assert.deepEqual(twice.given(), {});
  });

  it("leaves the claim of one that was written again, or has begun again at another host", async () => {
    const again = ending((after) => after.use("10.0.0.50", "x"));
    assert.equal(granted(await importNetwork(again.parts)).kept, 1);
    assert.deepEqual(again.given(), { [X]: ["10.0.0.50"] });
    const begun = ending((after) => after.hold(X, "10.0.0.50", { binding: bindingTo("x", "host-a") }));
    assert.equal(granted(await importNetwork(begun.parts)).kept, 0);
    assert.deepEqual(begun.given(), { [X]: ["10.0.0.50"] });
  });

  it("takes a mark whose answer was lost for what it is", async () => {
    const etcd = new FormerEtcd("10.0.0.50", "10.0.0.50");
    etcd.use("10.0.0.50", "x");
    etcd.isLosing = true;
    assert.equal(granted(await importNetwork(etcd.parts)).kept, 1);
    assert.deepEqual(etcd.given(), { [X]: ["10.0.0.50"] });
  });

  it("releases what an import has left that broke off before it marked the key", async () => {
    const etcd = new FormerEtcd("10.0.0.50", "10.0.0.51");
    etcd.use("10.0.0.51", "berth");
    etcd.hold(X, "10.0.0.50");
    etcd.use("10.0.0.50", "y");
    assert.equal(granted(await importNetwork(etcd.parts)).kept, 1);
    assert.deepEqual(etcd.given(), { [claimOf("y", "10.0.0.50")]: ["10.0.0.50"] });
  });

  it("refuses where both containers may run: the keys were deleted, or the other one is Berth's", async () => {
    const deleted = new FormerEtcd("10.0.0.50", "10.0.0.51");
    deleted.hold(X, "10.0.0.50");
    deleted.use("10.0.0.50", "y");
    assert.equal(
      refusalOf(await importNetwork(deleted.parts)),
      `ADDRESS_TAKEN: 10.0.0.50 has two holders: container y by cni-ipam-etcd, and claim default/${X}, which keeps it for a container of an earlier import; stop container y, or, if the other one has ended: berthctl --etcd URL release default/${X}; then import again`,
    );
    for (const [name, over] of [
      [X, { binding: bindingTo("x", "host-a") }],
      ["printer", {}],
    ] as const) {
      const etcd = new FormerEtcd("10.0.0.50", "10.0.0.51");
      etcd.use("10.0.0.51", "berth");
      etcd.hold(name, "10.0.0.50", over);
      etcd.use("10.0.0.50", "y");
      assert.match(refusalOf(await importNetwork(etcd.parts)), /has two holders: .*; stop one of the two/);
      assert.ok(etcd.claims.has(name));
    }
  });
});
