// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { neverAttached } from "./attachment.ts";
import { Receipts } from "./receipts.ts";

const attachment = () =>
  neverAttached(
    { scope: { network: "n", dataDir: "/d" }, containerID: "c", interface: "eth0" },
    { now: 0, deadlineNs: 0n, bootId: "b" },
  );

describe("receipts", () => {
  it("want an answer taken back that nobody got", () => {
    const receipts = new Receipts();
    const one = attachment();
    receipts.open(one);
    assert.equal(receipts.settle(one, "lost"), true);
  });

  it("leave one alone that got through, also when a repetition is lost later", () => {
    const receipts = new Receipts();
    const one = attachment();
    receipts.open(one);
    assert.equal(receipts.settle(one, "delivered"), false);
    receipts.repeat(one, one);
    assert.equal(receipts.settle(one, "lost"), false);
  });

  it("wait for the last answer under way", () => {
    const receipts = new Receipts();
    const [one, two] = [attachment(), attachment()];
    receipts.open(one);
    receipts.repeat(one, one);
    assert.equal(receipts.settle(one, "lost"), false);
    assert.equal(receipts.settle(one, "lost"), true);
    receipts.open(two);
    receipts.repeat(two, two);
    assert.equal(receipts.settle(two, "lost"), false);
    assert.equal(receipts.settle(two, "delivered"), false);
  });

  it("know an attachment again that a repetition renewed", () => {
    const receipts = new Receipts();
    const [one, renewed, other] = [attachment(), attachment(), attachment()];
    receipts.open(one);
    receipts.repeat(one, renewed);
    receipts.open(other);
    assert.equal(receipts.share(renewed, one), true);
    assert.equal(receipts.share(other, one), false);
    assert.equal(receipts.share(attachment(), attachment()), false);
    assert.equal(receipts.settle(renewed, "lost"), false);
    assert.equal(receipts.settle(one, "lost"), true);
  });

  it("count what an earlier process answered as delivered", () => {
    const receipts = new Receipts();
    const one = attachment();
    receipts.repeat(one, one);
    assert.equal(receipts.settle(one, "lost"), false);
    assert.equal(receipts.settle(attachment(), "lost"), false);
  });
});
