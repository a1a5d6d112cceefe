// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  BerthError,
  FAULTS,
  type FaultCode,
  REFUSALS,
  type RefusalCode,
  refuse,
} from "../../allocator/base/errors.ts";
import { cniError, errorAnswer, fromRefusal, fromThrown, isCniError } from "./errors.ts";

describe("CNI errors", () => {
  it("print version, code, words and details, and no empty details", () => {
    const withDetails = errorAnswer("1.0.0", cniError("INVALID_CONFIG", "bad", "why"));
    assert.deepEqual(JSON.parse(withDetails), { cniVersion: "1.0.0", code: 7, msg: "bad", details: "why" });
    const without = errorAnswer("0.4.0", cniError("TRY_AGAIN_LATER", "wait"));
    assert.deepEqual(JSON.parse(without), { cniVersion: "0.4.0", code: 11, msg: "wait" });
    assert.ok(without.endsWith("}\n"));
  });

  it("ask to try again for a claim that moves or a block that may come, and give every other refusal a code of its own from 100 on", () => {
    const codes = (Object.keys(REFUSALS) as RefusalCode[]).map((code) => fromRefusal(refuse(code, "w")).code);
    assert.equal(fromRefusal(refuse("CLAIM_BUSY", "w")).code, 11);
    assert.equal(fromRefusal(refuse("CLAIM_RELEASING", "w")).code, 11);
    assert.equal(fromRefusal(refuse("BLOCKS_EXHAUSTED", "w")).code, 11);
    const own = codes.filter((code) => code !== 11);
    assert.equal(new Set(own).size, Object.keys(REFUSALS).length - 3);
    assert.ok(own.every((code) => code >= 100 && code < 150));
  });

  it("carry the refusal's words and its code", () => {
    const error = fromRefusal(refuse("POOL_EXHAUSTED", "pool db is full"));
    assert.deepEqual(error, {
      kind: "cni-error",
      code: 107,
      msg: "pool db is full",
      details: "POOL_EXHAUSTED",
    });
  });

  it("ask to try again for what may pass, and never use 0, 2 or 3", () => {
    const codeOf = (code: FaultCode) => fromThrown(new BerthError(code, "w")).code;
    for (const code of ["NOT_READY", "TIMED_OUT", "STORE_UNAVAILABLE", "REVISION_CONFLICT"] as const) {
      assert.equal(codeOf(code), 11, code);
    }
    assert.equal(codeOf("STORE_FULL"), 5);
    for (const code of Object.keys(FAULTS) as FaultCode[]) assert.ok(![0, 2, 3].includes(codeOf(code)), code);
  });

  it("have words for whatever is thrown", () => {
    assert.deepEqual(fromThrown("odd"), { kind: "cni-error", code: 999, msg: "odd", details: "INTERNAL" });
    assert.equal(fromThrown(new Error("")).msg, "something failed without a reason");
  });

  it("are told from other values", () => {
    assert.ok(isCniError(cniError("IO_FAILURE", "x")));
    for (const value of [undefined, null, "x", {}, refuse("POOL_UNKNOWN", "x")])
      assert.ok(!isCniError(value));
  });
});
