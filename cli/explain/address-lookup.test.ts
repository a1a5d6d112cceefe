// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import type { Kind } from "../../allocator/store/store.ts";
import {
  addr,
  addrs,
  attachmentOf,
  bindingTo,
  claimRecord,
  DB_POOL,
  NOW,
  reservationRecord,
  reservationsOf,
} from "../../test/support/fixtures.ts";
import { pod } from "../../test/support/objects.ts";
import { usesOf } from "../backend/attachment-report.ts";
import type { Backend } from "../backend/backend.ts";
import { withBackend } from "../backend/open-backend.ts";
import { Folder } from "../testing/folder.ts";
import { tenantsOf } from "../testing/tenant.ts";
import { lookUp } from "./address-lookup.ts";
import { describeAddress, unseenWords } from "./address-words.ts";

const own = claimRecord({ binding: bindingTo("mysql-0", "node-a") });
const others = claimRecord({ namespace: "bank", name: "web", nonce: "n2", addresses: addrs("10.20.0.71") });
const CUT = { name: "cut", spec: { ranges: [{ cidr: "10.40.0.0/24" }], blockSize: { ipv4: 28 } } };

const NODE = {
  apiVersion: "v1",
  kind: "Node",
  metadata: { name: "node-a" },
  status: { addresses: [{ type: "InternalIP", address: "10.40.0.6" }] },
};

/** What is found of the address where these kinds are closed to the user, in words. */
async function found(t: TestContext, address: string, kinds: readonly Kind[], arePodsClosed = false) {
  const up = { ...pod("plain", { uid: "u1" }), status: { podIPs: [{ ip: "10.40.0.5" }] } };
  const data = await Folder.of(t, {
    pools: [DB_POOL, CUT],
    claims: [own, others],
    reservations: [
      ...reservationsOf(own),
      ...reservationsOf(others),
      reservationRecord("10.20.0.72", { releasedAt: NOW }),
    ],
    objects: [up, NODE],
  });
  return await withBackend(data.context(), "read", async (backend) => {
    const looked = await lookUp(tenantsOf(backend, { kinds, arePodsClosed }), addr(address), "shop");
    const { report } = looked;
    const isTold = report.state !== "unseen" || report.pod !== undefined;
    return { report, words: isTold ? describeAddress(report) : unseenWords(looked, "shop") };
  });
}

const ALL: readonly Kind[] = ["pool", "reservation", "block"];

describe("an address, for somebody with rights in one namespace", () => {
  it("is told in full of a claim of that namespace", async (t) => {
    const { words } = await found(t, "10.20.0.70", ALL);
    assert.equal(
      words,
      [
        "10.20.0.70 is held",
        "  not seen   pools, reservations: this user may not read them",
        "  claim      shop/mysql-0",
        "  identity   StatefulSet mysql, ordinal 0",
        "  phase      Bound",
        "  interface  eth0; it is not reported whether the pod has it: see ip address in the pod",
        "  pod        shop/mysql-0 (uid uid-of-mysql-0)",
        "  node       node-a",
        "  since      2026-01-01T00:00:00Z",
        "",
      ]
        .join("\n")
        .replaceAll(/^( {2}\S+(?: \S+)?) {2,}/gm, (_, label: string) => label.padEnd(14)),
    );
  });

  it("is a pod's of that namespace, if its status says so", async (t) => {
    const { words } = await found(t, "10.40.0.5", ALL);
    assert.match(
      words,
      /^10\.40\.0\.5 is a pod's, by its own status; what Berth has of it, this user may not read\n/,
    );
    assert.match(words, /^ {2}pod +shop\/plain \(uid u1\)$/m);
  });

  it("is not said to be free where nothing can be read of it", async (t) => {
    for (const address of ["10.20.0.71", "10.20.0.99", "192.0.2.1"]) {
      const { report, words } = await found(t, address, ALL);
      assert.deepEqual(report, { address, state: "unseen", hidden: ["pool", "reservation"], sandboxes: [] });
      assert.equal(
        words,
        `address ${address} is of no claim or pod of namespace shop, and whose else it is, this user may not read; ask for a role that allows list on ippools.berth.dev, get on ipreservations.berth.dev, or choose another user with --context`,
      );
    }
  });

  it("is not said to be of no pod where pods may not be listed", async (t) => {
    for (const kinds of [ALL, ["reservation", "block"]] as const) {
      const { report, words } = await found(t, "10.20.0.71", kinds, true);
      assert.equal(report.state, "unseen");
      assert.match(
        words,
        / is of no claim of namespace shop, and whose else it is, this user may not read; /,
      );
    }
  });

  it("is named with its pool where pools may be read, and what the pool alone says is said", async (t) => {
    const kinds: readonly Kind[] = ["reservation", "block"];
    const { report, words } = await found(t, "10.20.0.71", kinds);
    assert.deepEqual([report.state, report.pool], ["unseen", "db"]);
    assert.match(words, /^address 10\.20\.0\.71 in pool "db" is of no claim or pod of namespace shop/);
    const states = ["10.20.0.100", "10.20.0.60", "10.20.0.200"].map(
      async (address) => (await found(t, address, kinds)).report.state,
    );
    assert.deepEqual(await Promise.all(states), ["gateway", "excluded", "outside"]);
  });

  it("is not said to be another system's where Berth's own records cannot be read", async (t) => {
    for (const kinds of [["block"], ["reservation", "block"]] as const) {
      const { report, words } = await found(t, "10.40.0.5", kinds);
      assert.deepEqual([report.state, report.pod?.name, report.inUseBy], ["unseen", "plain", undefined]);
      assert.match(
        words,
        /^10\.40\.0\.5 is a pod's, by its own status; what Berth has of it, this user may not/,
      );
    }
    const onNode = await found(t, "10.40.0.6", ["reservation", "block"]);
    assert.deepEqual([onNode.report.state, onNode.report.inUseBy], ["in-use", "node node-a"]);
  });

  it("is held where its reservation may be read and the claim may not, and is never called orphaned", async (t) => {
    const { report } = await found(t, "10.20.0.71", ["pool", "block"]);
    assert.deepEqual(report, {
      address: "10.20.0.71",
      pool: "db",
      state: "held",
      claim: "bank/web",
      hidden: ["pool", "claim"],
      sandboxes: [],
    });
    const cooling = (await found(t, "10.20.0.72", ["pool", "block"])).report;
    assert.deepEqual([cooling.state, cooling.coolingUntil], ["cooling", undefined]);
  });

  it("is not said to be free where blocks cannot be read, or pools", async (t) => {
    const { report, words } = await found(t, "10.40.0.9", ["block"]);
    assert.deepEqual([report.state, report.pool, report.hidden], ["unseen", "cut", ["block"]]);
    assert.match(
      words,
      /^address 10\.40\.0\.9 in pool "cut" is reserved for nobody, and whether it is free, this user/,
    );
    assert.equal((await found(t, "10.20.0.99", ["pool"])).report.state, "unseen");
    assert.equal((await found(t, "10.20.0.99", ["block"])).report.state, "free");
  });
});

describe("an address of hosts that share an etcd", () => {
  it("is a container's where its runtime says no name, by short id and host", async (t) => {
    const name = "c-3f0d9b6e1c5a-eth0-0123456789abcdef";
    const identity = { kind: "Pod", apiVersion: "v1", name };
    const containerID = "3f0d9b6e1c5a77aa";
    const claim = claimRecord({
      namespace: "default",
      name,
      identity,
      binding: bindingTo(name, "host-a", { podUID: "" }),
      status: { attachment: attachmentOf(name, { containerID, node: "host-a", podUID: "" }) },
    });
    const data = await Folder.of(t, {
      pools: [DB_POOL],
      claims: [claim],
      reservations: reservationsOf(claim),
    });
    const words = await withBackend(data.context(), "read", async (backend) => {
      const etcd: Backend = { ...backend, place: "etcd", node: "", uses: async (claims) => usesOf(claims) };
      return describeAddress((await lookUp(etcd, addr("10.20.0.70"), "default")).report);
    });
    assert.doesNotMatch(words, /Pod |pod /);
    assert.match(
      words,
      /^ {2}identity +container 3f0d9b6e1c5a, eth0\n {2}phase +Attached\n {2}host +host-a$/m,
    );
    assert.match(words, /^ {2}sandbox +3f0d9b6e1c5a77aa eth0, since /m);
  });
});
