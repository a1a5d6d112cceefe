// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { tombstoneFor } from "../journal/attachment.ts";
import { DeliveryTracker } from "./delivery-tracker.ts";

const attachment = () =>
  tombstoneFor(
    { scope: { network: "n", dataDir: "/d" }, containerID: "c", interface: "eth0" },
    { now: 0, deadlineNs: 0n, bootId: "b" },
  );

describe("receipts", () => {
  it("want an answer taken back that nobody got", () => {
    const deliveries = new DeliveryTracker();
    const one = attachment();
    deliveries.open(one);
    assert.equal(deliveries.settle(one, "lost"), true);
  });

  it("leave one alone that got through, also when a repetition is lost later", () => {
    const deliveries = new DeliveryTracker();
    const one = attachment();
    deliveries.open(one);
    assert.equal(deliveries.settle(one, "delivered"), false);
    deliveries.repeat(one, one);
    assert.equal(deliveries.settle(one, "lost"), false);
  });

  it("wait for the last answer under way", () => {
    const deliveries = new DeliveryTracker();
    const [one, two] = [attachment(), attachment()];
    deliveries.open(one);
    deliveries.repeat(one, one);
    assert.equal(deliveries.settle(one, "lost"), false);
    assert.equal(deliveries.settle(one, "lost"), true);
    deliveries.open(two);
    deliveries.repeat(two, two);
    assert.equal(deliveries.settle(two, "lost"), false);
    assert.equal(deliveries.settle(two, "delivered"), false);
  });

  it("know an attachment again that a repetition renewed", () => {
    const deliveries = new DeliveryTracker();
    const [one, renewed, other] = [attachment(), attachment(), attachment()];
    deliveries.open(one);
    deliveries.repeat(one, renewed);
    deliveries.open(other);
    assert.equal(deliveries.settle(renewed, "lost"), false);
    assert.equal(deliveries.isLost(one, renewed), false, "an answer is on its way");
    assert.equal(deliveries.settle(one, "lost"), true);
    assert.equal(deliveries.isLost(one, renewed), true);
    assert.equal(deliveries.isLost(one, other), false);
    assert.equal(deliveries.isLost(attachment(), attachment()), false);
  });

  it("do not want one taken back that was asked for again after the last was lost", () => {
    const deliveries = new DeliveryTracker();
    const [one, renewed] = [attachment(), attachment()];
    deliveries.open(one);
    assert.equal(deliveries.settle(one, "lost"), true);
    deliveries.repeat(one, renewed);
    assert.equal(deliveries.isLost(one, renewed), false);
    assert.equal(deliveries.settle(renewed, "delivered"), false);
    assert.equal(deliveries.isLost(one, renewed), false);
  });

  it("count what an earlier process answered as delivered", () => {
    const deliveries = new DeliveryTracker();
    const one = attachment();
    deliveries.repeat(one, one);
    assert.equal(deliveries.settle(one, "lost"), false);
    assert.equal(deliveries.settle(attachment(), "lost"), false);
  });
});
