// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { refuse } from "../../../allocator/base/errors.ts";
import type { EventInput } from "../../../kube/controller/event-recorder.ts";
import { ManualClock } from "../../../test/support/clock.ts";
import { addrs, bindingTo, claimRecord } from "../../../test/support/fixtures.ts";
import { PodEvents } from "./pod-events.ts";

const POD = { namespace: "shop", name: "mysql-0", uid: "u1" };
const BUSY = { code: "CLAIM_BUSY", message: "claim shop/mysql-0 is still bound" };

function begin(tellsBound = true) {
  const recorded: EventInput[] = [];
  const clock = new ManualClock();
  return {
    ...{ recorded, clock },
    notices: new PodEvents({ record: (notice) => void recorded.push(notice) }, clock, tellsBound),
  };
}

describe("events on pods", () => {
  it("says on exactly this pod what was bound, and where", () => {
    const { recorded, notices } = begin();
    const addresses = addrs("10.20.0.51", "fd00:20::51");
    notices.bound(POD, claimRecord({ addresses, binding: bindingTo("mysql-0", "node-a") }));
    assert.deepEqual(recorded, [
      {
        regarding: { apiVersion: "v1", kind: "Pod", namespace: "shop", name: "mysql-0", uid: "u1" },
        type: "Normal",
        reason: "AddressBound",
        action: "Binding",
        note: "claim shop/mysql-0 (10.20.0.51, fd00:20::51) is bound to node-a",
      },
    ]);
  });

  it("says what was bound only where something was in the way, unless it is asked for", () => {
    const { recorded, notices } = begin(false);
    const claim = claimRecord({ binding: bindingTo("mysql-0", "node-a") });
    notices.bound(POD, claim);
    assert.deepEqual(recorded, []);
    notices.blocked(POD, BUSY);
    notices.bound(POD, claim);
    assert.deepEqual(
      recorded.map(({ reason }) => reason),
      ["ClaimBusy", "AddressBound"],
    );
    notices.forget("shop/mysql-0");
    notices.bound(POD, claim);
    assert.equal(recorded.length, 2);
  });

  it("says the same in other words once a minute at most, and something else at once", () => {
    const { recorded, notices, clock } = begin();
    const taken = (address: string, free: number) =>
      refuse("ADDRESS_TAKEN", `address ${address} is held; free nearby: 10.20.0.${free}`, { address });
    for (let n = 0; n < 100; n++) {
      notices.blocked(POD, taken("10.20.0.51", n));
      clock.advance(1_000);
    }
    assert.equal(recorded.length, 2);
    notices.blocked(POD, taken("10.20.0.52", 1));
    assert.equal(recorded.length, 3);
  });

  it("says what is in the way once, and again when it is something else, another pod, or back", () => {
    const { recorded, notices } = begin();
    const said = () => recorded.splice(0).map(({ type, reason, note }) => `${type} ${reason}: ${note}`);
    const busy = `Warning ClaimBusy: ${BUSY.message}`;
    notices.blocked(POD, BUSY);
    notices.blocked(POD, { ...BUSY });
    assert.deepEqual(said(), [busy]);
    notices.blocked(POD, { code: "STORE_READ_ONLY", message: "may not write" });
    notices.blocked(POD, BUSY);
    assert.deepEqual(said(), ["Warning StoreReadOnly: may not write", busy]);
    notices.blocked({ ...POD, uid: "u2" }, BUSY);
    assert.deepEqual(said(), [busy]);
    notices.forget("shop/mysql-0");
    notices.blocked({ ...POD, uid: "u2" }, BUSY);
    assert.deepEqual(said(), [busy]);
  });
});
