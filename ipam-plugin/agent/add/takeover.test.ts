// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type Attachment, tombstoneFor } from "../journal/attachment.ts";
import { judgeTakeover } from "./takeover.ts";

const POD = { namespace: "shop", name: "db-0", uid: "uid-1" };
const PLACE = { scope: { network: "net", dataDir: "/d" }, containerID: "old", interface: "eth0" };

function attached(changes: Partial<Attachment> = {}): Attachment {
  const at = { now: 0, deadlineNs: 0n, bootId: "b" };
  return { ...tombstoneFor(PLACE, at), state: "attached", claim: "shop/db-0", pod: POD, ...changes };
}

describe("taking a claim over", () => {
  const next = { ...PLACE, containerID: "new", pod: POD, startNs: 2n };

  it("from another sandbox of the same pod does not wait", () => {
    for (const up of [true, false]) assert.equal(judgeTakeover(attached(), next, up), "supersede");
  });

  it("from a newer sandbox of the same pod is too late", () => {
    for (const up of [true, false]) assert.equal(judgeTakeover(attached({ startNs: 3n }), next, up), "late");
  });

  it("from another pod waits while its sandbox may be up", () => {
    const other = { ...next, pod: { ...POD, uid: "uid-2" } };
    assert.equal(judgeTakeover(attached(), other, true), "wait");
    assert.equal(judgeTakeover(attached(), other, false), "supersede");
  });

  it("goes by the sandbox when the runtime does not say who it is", () => {
    for (const uid of ["", "uid-1"]) {
      const old = attached({ pod: { ...POD, uid: "" } });
      assert.equal(judgeTakeover(old, { ...next, pod: { ...POD, uid } }, true), "wait");
      assert.equal(judgeTakeover(old, { ...next, pod: { ...POD, uid } }, false), "supersede");
    }
  });

  it("never gives one claim to two interfaces of a container", () => {
    for (const up of [true, false]) {
      assert.equal(judgeTakeover(attached(), { ...next, ...PLACE, interface: "eth1" }, up), "refuse");
    }
  });

  it("leaves another interface of the container what it has if the claim names both", () => {
    const further = { ...next, ...PLACE, interface: "net1" };
    for (const up of [true, false]) {
      assert.equal(judgeTakeover(attached(), further, up, ["eth0", "net1"]), "beside");
      assert.equal(judgeTakeover(attached(), further, up, ["net1", "net2"]), "refuse");
      assert.equal(judgeTakeover(attached(), further, up, ["eth0", "net2"]), "refuse");
      assert.equal(
        judgeTakeover(attached(), { ...next, interface: "net1" }, up, ["eth0", "net1"]),
        "supersede",
      );
    }
  });

  it("takes the same interface under another network for the same link", () => {
    const renamed = {
      ...next,
      ...PLACE,
      scope: { network: "other", dataDir: "/d" },
      pod: { ...POD, uid: "uid-2" },
    };
    assert.equal(judgeTakeover(attached(), renamed, true), "supersede");
  });
});
