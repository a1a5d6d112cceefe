// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { withTokenFiles } from "./token-files.ts";

const USERS = [
  { name: "own", token: "beside" },
  { name: "other", token: "two" },
];
const FILE = "/etc/berth/kubeconfig";

describe("the users of a kubeconfig", () => {
  it("are marked who have a token file", () => {
    const text =
      "users: [{name: own, user: {tokenFile: token, token: beside}}, {name: other, user: {token: two}}]";
    assert.deepEqual(withTokenFiles(USERS, { text, file: FILE }), [
      { name: "own", authProvider: { name: "token-file", path: "/etc/berth/token", token: "beside" } },
      USERS[1],
    ]);
  });

  it("stay as they are, and their text is not parsed again, where none has", () => {
    assert.deepEqual(withTokenFiles(USERS, { text: "users: [what no parser takes", file: FILE }), USERS);
    assert.throws(() => withTokenFiles(USERS, { text: "tokenFile: [what no parser takes", file: FILE }));
  });
});
