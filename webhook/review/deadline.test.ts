// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { BerthError } from "../../allocator/base/errors.ts";
import type { Labels, LogFields, Logger } from "../../allocator/base/ports.ts";
import { ManualClock } from "../../system/testing/manual-clock.ts";
import {
  type AdmissionRequest,
  type AdmissionResponse,
  allowed,
  denied,
  type Handler,
  patched,
} from "./admission-review.ts";
import { type DeadlineHandler, withDeadline } from "./deadline.ts";

const UID = "705ab4f5-6393-11e8-b7cc-42010a800002";
const REQUEST: AdmissionRequest = {
  uid: UID,
  kind: { group: "", version: "v1", kind: "Pod" },
  resource: { group: "", version: "v1", resource: "pods" },
  subResource: "",
  name: "mysql-0",
  namespace: "shop",
  operation: "CREATE",
  userInfo: { username: "u", uid: "", groups: [] },
  object: {},
  oldObject: null,
  dryRun: false,
};

function setUp(handler: Handler) {
  const clock = new ManualClock();
  const logged: { level: string; message: string; fields: LogFields }[] = [];
  const at =
    (level: string) =>
    (message: string, fields: LogFields = {}) =>
      logged.push({ level, message, fields });
  const log: Logger = { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
  const counted: Labels[] = [];
  const observed: { value: number; labels: Labels }[] = [];
  const metrics = {
    increment: (_name: string, labels: Labels = {}) => counted.push(labels),
    observe: (_name: string, value: number, labels: Labels = {}) => observed.push({ value, labels }),
  };
  const handle = withDeadline(handler, { route: "/mutate/pods", log, metrics, clock });
  return { handle, clock, logged, counted, observed };
}

function ask(handle: DeadlineHandler, deadlineMs?: number): Promise<AdmissionResponse> {
  return handle(REQUEST, new AbortController().signal, deadlineMs);
}

const INTERNAL = `internal error of berth; the log of its webhook has it under uid ${UID}`;

describe("guarded", () => {
  it("passes a handler's answer on as it is, and counts, times and logs it", async () => {
    const answer = allowed(UID, ["beware"]);
    const { handle, clock, counted, observed, logged } = setUp(async () => {
      clock.advance(250);
      return answer;
    });
    assert.equal(await ask(handle), answer);
    assert.deepEqual(counted, [{ route: "/mutate/pods", operation: "CREATE", outcome: "allowed", code: "" }]);
    assert.deepEqual(observed, [{ value: 0.25, labels: { route: "/mutate/pods" } }]);
    assert.deepEqual(logged, [
      {
        level: "debug",
        message: "admission review decided",
        fields: {
          uid: UID,
          route: "/mutate/pods",
          namespace: "shop",
          name: "mysql-0",
          outcome: "allowed",
          code: "",
          ms: 250,
        },
      },
    ]);
  });

  for (const { answer, outcome, code } of [
    { answer: patched(UID, [{ op: "add", path: "/x", value: 1 }]), outcome: "patched", code: "" },
    {
      answer: denied(UID, { code: "POOL_EXHAUSTED", message: "m" }),
      outcome: "denied",
      code: "POOL_EXHAUSTED",
    },
  ]) {
    it(`counts ${outcome} ${code}`, async () => {
      const { handle, counted } = setUp(async () => answer);
      assert.equal(await ask(handle), answer);
      assert.deepEqual([counted[0]?.["outcome"], counted[0]?.["code"]], [outcome, code]);
    });
  }

  for (const { name, handler, message, code } of [
    {
      name: "throws",
      handler: () => {
        throw new Error("boom");
      },
      message: INTERNAL,
      code: "INTERNAL",
    },
    {
      name: "rejects",
      handler: () => Promise.reject(new TypeError("boom")),
      message: INTERNAL,
      code: "INTERNAL",
    },
    {
      name: "rejects with nothing",
      handler: () => Promise.reject(undefined),
      message: INTERNAL,
      code: "INTERNAL",
    },
    {
      name: "throws a defect of Berth, whose words are for the log",
      handler: () => Promise.reject(new BerthError("INTERNAL", "patch does not apply")),
      message: INTERNAL,
      code: "INTERNAL",
    },
    {
      name: "throws a fault, whose words are for people",
      handler: () =>
        Promise.reject(new BerthError("STORE_UNAVAILABLE", "the store does not answer; try again")),
      message: "the store does not answer; try again",
      code: "STORE_UNAVAILABLE",
    },
    {
      name: "overflows the stack",
      handler: async () => {
        const down = (): number => down() + 1;
        return allowed(String(down()));
      },
      message: INTERNAL,
      code: "INTERNAL",
    },
  ]) {
    it(`answers with the uid when the handler ${name}`, async () => {
      const { handle, counted, logged } = setUp(handler);
      assert.deepEqual(await ask(handle), {
        uid: UID,
        allowed: false,
        status: {
          status: "Failure",
          code: 500,
          reason: "InternalError",
          message,
          details: { causes: [{ reason: code, message }] },
        },
      });
      assert.deepEqual(counted, [{ route: "/mutate/pods", operation: "CREATE", outcome: "errored", code }]);
      assert.equal(logged[0]?.message, "admission handler failed");
    });
  }

  const circle: Record<string, unknown> = { uid: UID, allowed: true };
  circle["self"] = circle;
  for (const { name, answer } of [
    { name: "nothing", answer: undefined },
    { name: "null", answer: null },
    { name: "a text", answer: "allowed" },
    { name: "no decision", answer: { uid: UID } },
    { name: "a decision in words", answer: { uid: UID, allowed: "true" } },
    { name: "the answer to another request", answer: allowed("other") },
    { name: "an answer that is no JSON", answer: circle },
  ]) {
    it(`refuses with the uid when the handler answers ${name}`, async () => {
      const { handle, logged } = setUp(async () => answer as AdmissionResponse);
      const response = await ask(handle);
      assert.deepEqual([response.uid, response.allowed, response.status?.message], [UID, false, INTERNAL]);
      assert.equal(logged[0]?.message, "admission handler gave no answer to this request");
    });
  }

  for (const { name, deadlineMs, elapsed, words } of [
    { name: "9 s by default", deadlineMs: undefined, elapsed: 9000, words: "9 s" },
    { name: "the time it is given", deadlineMs: 2700, elapsed: 2700, words: "2.7 s" },
  ]) {
    it(`answers in place of a handler that hangs, after ${name}`, async () => {
      const { promise, resolve } = Promise.withResolvers<AdmissionResponse>();
      const reasons: unknown[] = [];
      const { handle, clock, logged, counted } = setUp((_request, signal) => {
        signal.addEventListener("abort", () => {
          reasons.push(signal.reason);
        });
        return promise;
      });
      let answered = false;
      const asking = ask(handle, deadlineMs).finally(() => {
        answered = true;
      });
      clock.advance(elapsed - 1);
      await new Promise((tick) => setImmediate(tick));
      assert.equal(answered, false);
      assert.deepEqual(reasons, []);
      clock.advance(1);
      const response = await asking;
      const message = `berth did not decide within ${words}; try again, the log of its webhook has it under uid ${UID}`;
      assert.deepEqual([response.uid, response.allowed, response.status?.message], [UID, false, message]);
      assert.deepEqual(reasons, [
        new BerthError("TIMED_OUT", "the deadline of the admission review is over"),
      ]);
      assert.deepEqual([counted[0]?.["outcome"], counted[0]?.["code"]], ["errored", "TIMED_OUT"]);
      clock.advance(500);
      resolve(allowed(UID));
      await new Promise((tick) => setImmediate(tick));
      const last = logged.at(-1);
      assert.equal(last?.message, "admission handler ended after its deadline");
      assert.deepEqual([last.fields["ms"], last.fields["response"]], [elapsed + 500, allowed(UID)]);
    });
  }

  it("survives a handler that rejects after its deadline", async () => {
    const { promise, reject } = Promise.withResolvers<AdmissionResponse>();
    const { handle, clock, logged } = setUp(() => promise);
    const asking = ask(handle);
    clock.advance(9000);
    await asking;
    reject(new Error("late"));
    await new Promise((tick) => setImmediate(tick));
    assert.deepEqual(logged.at(-1)?.fields["error"], new Error("late"));
  });

  it("leaves no timer behind", async () => {
    const { handle, clock } = setUp(async () => allowed(UID));
    await ask(handle);
    assert.equal(clock.sleeping, 0);
  });

  it("tells the handler when the caller is gone", async () => {
    const caller = new AbortController();
    const { handle } = setUp(async (_request, signal) => {
      caller.abort(new BerthError("TIMED_OUT", "the client hung up"));
      assert.equal(signal.reason, caller.signal.reason);
      throw signal.reason;
    });
    const response = await handle(REQUEST, caller.signal);
    assert.equal(response.status?.message, "the client hung up");
  });

  it("answers even if it cannot be counted", async () => {
    const clock = new ManualClock();
    const errors: unknown[] = [];
    const log: Logger = {
      debug() {},
      info() {},
      warn() {},
      error: (_message, fields) => errors.push(fields?.["error"]),
    };
    const broken = new BerthError("INTERNAL", "there is no metric");
    const metrics = {
      increment() {
        throw broken;
      },
      observe() {},
    };
    const handle = withDeadline(async () => allowed(UID), { route: "r", log, metrics, clock });
    assert.deepEqual(await ask(handle), allowed(UID));
    assert.deepEqual(errors, [broken]);
  });
});
