// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { conflistOf } from "./testing/conflists.ts";
import { validateConflist } from "./validate-conflist.ts";

describe("validateConflist", () => {
  for (const [text, why] of [
    ["{", /^is no JSON: /],
    ["", /^is no JSON: /],
    ['"text"', /^is no JSON object$/],
    ["[]", /^is no JSON object$/],
    ["null", /^is no JSON object$/],
    ['{"name":"net","plugins":[{"type":"a"}]}', /^has no cniVersion$/],
    ['{"cniVersion":"1.0.0","name":"","plugins":[{"type":"a"}]}', /^has no name$/],
    ['{"cniVersion":"1.0.0","name":"net","type":"bridge"}', /^has no plugins$/],
    ['{"cniVersion":"1.0.0","name":"net","plugins":[]}', /^has no plugins$/],
    [
      '{"cniVersion":"1.0.0","name":"net","plugins":[{"type":"a"},{"ipam":{}}]}',
      /^has no type in plugins\[1\]$/,
    ],
    ['{"cniVersion":"1.0.0","name":"net","plugins":[null]}', /^has no type in plugins\[0\]$/],
  ] as const) {
    it(`refuses ${text === "" ? "nothing" : text}`, () => {
      const verdict = validateConflist(text);
      assert.match(verdict.kind === "invalid" ? verdict.why : "accepted", why);
    });
  }

  it("tells one that asks Berth from one that does not", () => {
    assert.deepEqual(validateConflist(conflistOf("net")), { kind: "conflist", asksBerth: true });
    assert.deepEqual(validateConflist(conflistOf("net", "host-local")), {
      kind: "conflist",
      asksBerth: false,
    });
    const delegate = JSON.parse(conflistOf("net"));
    for (const plugin of [
      { type: "flannel", delegate: delegate.plugins[0] },
      { type: "multus", delegates: [delegate] },
    ]) {
      const text = JSON.stringify({ cniVersion: "1.0.0", name: "net", plugins: [plugin] });
      assert.deepEqual(validateConflist(text), { kind: "conflist", asksBerth: true });
    }
  });
});
