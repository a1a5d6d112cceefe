// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Answer, Call, Connection } from "../../kube/api/connection.ts";
import { HastyClock } from "../../test/support/clock.ts";
import { SubjectAccessChecker } from "./pool-access.ts";

/** An API server that answers so, and keeps what it was asked. */
class Reviewer implements Connection {
  readonly asked: Call[] = [];
  answer: Answer = { status: 201, body: { status: { allowed: true } } };

  async call(call: Call): Promise<Answer> {
    this.asked.push(call);
    return this.answer;
  }

  stream(): Promise<Answer> {
    throw new TypeError("nothing is watched here");
  }

  close(): void {}
}

const CLERK = { namespace: "shop", name: "clerk" };

describe("whether a service account may use a pool", () => {
  it("is for the API server to say, of the account in its namespace and with its groups", async () => {
    const reviewer = new Reviewer();
    assert.equal(await new SubjectAccessChecker(reviewer, new HastyClock()).mayUse(CLERK, "bank"), true);
    const [asked] = reviewer.asked;
    assert.ok(asked);
    assert.equal(asked.path, "/apis/authorization.k8s.io/v1/subjectaccessreviews");
    assert.deepEqual((asked.body as { spec: unknown }).spec, {
      user: "system:serviceaccount:shop:clerk",
      groups: ["system:serviceaccounts", "system:serviceaccounts:shop", "system:authenticated"],
      resourceAttributes: {
        verb: "use",
        group: "berth.dev",
        resource: "ippools",
        name: "bank",
        namespace: "shop",
      },
    });
  });

  it("is remembered for 30 s, and for 5 s when it may not", async () => {
    const [reviewer, clock] = [new Reviewer(), new HastyClock()];
    const access = new SubjectAccessChecker(reviewer, clock);
    const asks = async (pool: string, allowed: boolean, calls: number) => {
      assert.deepEqual([await access.mayUse(CLERK, pool), reviewer.asked.length], [allowed, calls]);
    };
    await asks("bank", true, 1);
    clock.advance(29_999);
    await asks("bank", true, 1);
    await asks("vault", true, 2);
    reviewer.answer = { status: 201, body: { status: { allowed: false } } };
    clock.advance(1);
    await asks("bank", false, 3);
    clock.advance(4_999);
    await asks("bank", false, 3);
    clock.advance(1);
    await asks("bank", false, 4);
  });

  it("is not known when the API server does not say, and nothing is remembered of that", async () => {
    const reviewer = new Reviewer();
    const access = new SubjectAccessChecker(reviewer, new HastyClock());
    reviewer.answer = { status: 403, body: { kind: "Status", message: "no" } };
    await assert.rejects(access.mayUse(CLERK, "bank"), {
      code: "STORE_READ_ONLY",
      message: "the API server refuses to ask who may use pool bank with 403: no; check roles",
    });
    reviewer.answer = { status: 201, body: { status: { allowed: true } } };
    assert.equal(await access.mayUse(CLERK, "bank"), true);
  });
});
