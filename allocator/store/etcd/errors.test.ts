// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { isDefinite } from "../../base/errors.ts";
import { faultOf, isCompacted, remedyFor } from "./errors.ts";
import { GrpcError } from "./grpc-frames.ts";

/** What etcd says (api/v3rpc/rpctypes/error.go), whether the call was sent -> what is done, and what the caller is told. */
const SAID = [
  [14, "etcdserver: no leader", true, "judge", "STORE_UNAVAILABLE"],
  [
    14,
    "etcdserver: request timed out, possibly due to previous leader failure",
    true,
    "judge",
    "STORE_UNAVAILABLE",
  ],
  [14, "connect ECONNREFUSED 10.0.0.1:2379", false, "again", "STORE_UNAVAILABLE"],
  [4, "no answer in 3000 ms", true, "judge", "TIMED_OUT"],
  [1, "context canceled", true, "judge", "STORE_UNAVAILABLE"],
  [8, "etcdserver: mvcc: database space exceeded", true, "none", "STORE_FULL"],
  [8, "etcdserver: too many requests", true, "again", "STORE_UNAVAILABLE"],
  [16, "etcdserver: invalid auth token", true, "authenticate", "CONFIG_INVALID"],
  [3, "etcdserver: user name is empty", true, "authenticate", "CONFIG_INVALID"],
  [3, "etcdserver: revision of auth store is old", true, "authenticate", "CONFIG_INVALID"],
  [3, "etcdserver: authentication failed, invalid user ID or password", true, "none", "CONFIG_INVALID"],
  [7, "etcdserver: permission denied", true, "none", "CONFIG_INVALID"],
  [15, "etcdserver: corrupt cluster", true, "none", "STATE_CORRUPT"],
] as const;

describe("what etcd says", () => {
  for (const [code, words, sent, remedy, fault] of SAID) {
    it(`${words}: ${remedy}, ${fault}`, () => {
      const error = new GrpcError(code, words, sent);
      const reported = faultOf(error, "http://10.0.0.1:2379");
      assert.deepEqual([remedyFor(error), reported.code], [remedy, fault]);
      assert.match(reported.message, /http:\/\/10\.0\.0\.1:2379/);
      // what may have been done is never told as if it had surely not
      if (remedy === "judge") assert.equal(isDefinite(reported), false);
    });
  }

  for (const [code, said, words] of [
    [7, "etcdserver: permission denied", /; grant its role readwrite on all keys below \/berth\/v1\/$/],
    [3, "etcdserver: user name is empty", /; give them with --etcd-user and --etcd-password-file$/],
    [3, "etcdserver: authentication failed, invalid user ID or password", /; check --etcd-user and the file/],
    [
      14,
      "the certificates for etcd cannot be used: /a cannot be read: it is empty; fix that, or name other files",
      /was not asked: the certificates .* \/a cannot be read: it is empty; fix that, or name other files$/,
    ],
    [
      14,
      "self-signed certificate in certificate chain",
      /is not spoken to .*; check its certificate, the auth/,
    ],
    [
      14,
      "the connection was closed, perhaps for the client's certificate",
      /cannot be reached, or has no leader/,
    ],
    [14, "connect ECONNREFUSED 10.0.0.1:2379", /cannot be reached, or has no leader/],
  ] as const) {
    it(`says what to do: ${said}`, () => {
      assert.match(faultOf(new GrpcError(code, said, false), "https://10.0.0.1:2379").message, words);
    });
  }

  it("tells a compaction from another bound", () => {
    const compacted = new GrpcError(11, "etcdserver: mvcc: required revision has been compacted", true);
    const future = new GrpcError(11, "etcdserver: mvcc: required revision is a future revision", true);
    assert.deepEqual(
      [isCompacted(compacted), isCompacted(future), isCompacted(new Error("x"))],
      [true, false, false],
    );
  });
});
