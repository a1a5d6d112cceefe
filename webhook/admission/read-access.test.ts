// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Answer, Call, Connection } from "../../kube/api/connection.ts";
import { HastyClock } from "../../test/support/clock.ts";
import { CLAIMS_OF_BANK, MINE, POOLS } from "../testing/told-refusals.ts";
import { ReviewedReadAccess } from "./read-access.ts";

/** An API server that answers so, and keeps what it was asked. */
class Reviewer implements Connection {
  readonly asked: Call[] = [];
  answer: () => Promise<Answer> = async () => ({ status: 201, body: { status: { allowed: true } } });

  async call(call: Call): Promise<Answer> {
    this.asked.push(call);
    return await this.answer();
  }

  stream(): Promise<Answer> {
    throw new TypeError("nothing is watched here");
  }

  close(): void {}
}

describe("whether somebody may read", () => {
  it("is for the API server to say, and remembered for 30 s, for 5 s when he may not", async () => {
    const [reviewer, clock] = [new Reviewer(), new HastyClock()];
    const access = new ReviewedReadAccess(reviewer, clock);
    const asks = async (allowed: boolean, calls: number) => {
      assert.deepEqual([await access.mayRead(MINE, CLAIMS_OF_BANK), reviewer.asked.length], [allowed, calls]);
    };
    await asks(true, 1);
    const [asked = assert.fail()] = reviewer.asked;
    assert.deepEqual((asked.body as { spec: unknown }).spec, {
      ...{ user: "tenant", uid: "1", groups: ["system:authenticated"] },
      resourceAttributes: { verb: "get", group: "berth.dev", resource: "ipclaims", namespace: "bank" },
    });
    clock.advance(29_999);
    await asks(true, 1);
    reviewer.answer = async () => ({ status: 201, body: { status: { allowed: false } } });
    clock.advance(1);
    await asks(false, 2);
    clock.advance(5_000);
    await asks(false, 3);
  });

  it("is no where the API server does not say, and asks it a bounded number of times at once", async () => {
    const reviewer = new Reviewer();
    const access = new ReviewedReadAccess(reviewer, new HastyClock());
    reviewer.answer = () => Promise.reject(new Error("away"));
    assert.equal(await access.mayRead(MINE, POOLS), false);
    const { promise: never, resolve } = Promise.withResolvers<Answer>();
    reviewer.answer = () => never;
    const many = Array.from({ length: 100 }, (_, n) => access.mayRead({ ...MINE, username: `u${n}` }, POOLS));
    assert.equal(reviewer.asked.length, 17);
    resolve({ status: 403, body: "no" });
    assert.deepEqual(new Set(await Promise.all(many)), new Set([false]));
  });
});
