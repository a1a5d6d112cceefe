// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ManualClock } from "../../system/testing/manual-clock.ts";
import { bundleOf, parseBundle } from "./ca-bundle.ts";
import { issueAuthority } from "./issue.ts";
import { readSecret, type SecretSeen } from "./secret.ts";

const clock = new ManualClock();
const [first, second] = [await issueAuthority(clock), await issueAuthority(clock)];
const bundle = (...certificates: readonly string[]) => bundleOf(parseBundle(certificates.join("")));

function secret(data: Record<string, string> = {}, annotations: Record<string, string> = {}): SecretSeen {
  return { data: (key) => data[key] ?? "", annotation: (key) => annotations[key] ?? "" };
}
const OLD = { "ca.crt": first.cert, "ca.key": first.key, "tls.crt": "leaf", "tls.key": "key" };

describe("what the two secrets of certificates hold together", () => {
  it("nothing is known while one of them is not there", () => {
    assert.equal(readSecret(undefined, secret()), undefined);
    assert.equal(readSecret(secret(), undefined), undefined);
  });

  it("the authority is one's, the certificate the other's", () => {
    const kept = readSecret(
      secret({ "ca.crt": second.cert, "ca.key": second.key }, { "berth.dev/retire-after": "later" }),
      secret({ "ca.crt": first.cert, "tls.crt": "leaf", "tls.key": "key" }, { "berth.dev/rotate": "leaf" }),
    );
    assert.deepEqual(kept, {
      ...{ bundle: second.cert, authorityKey: second.key, retireAfter: "later", rotate: "leaf" },
      ...{ beside: first.cert, leaf: { cert: "leaf", key: "key" }, mixed: false },
    });
  });

  it("an older version's authority is taken over, with what was known of its predecessors", () => {
    const kept = readSecret(secret(), secret(OLD, { "berth.dev/retire-after": "later" }));
    assert.deepEqual(
      [kept?.bundle, kept?.authorityKey, kept?.retireAfter, kept?.mixed],
      [bundle(first.cert), first.key, "later", true],
    );
  });

  it("one that an older version made meanwhile is trusted on beside ours", () => {
    const kept = readSecret(secret({ "ca.crt": second.cert, "ca.key": second.key }), secret(OLD));
    assert.deepEqual([kept?.bundle, kept?.authorityKey], [bundle(second.cert, first.cert), second.key]);
    assert.equal(kept?.mixed, true);
  });
});
