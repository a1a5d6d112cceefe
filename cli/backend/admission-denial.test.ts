// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { it } from "node:test";
import { parseDenial } from "./admission-denial.ts";

for (const [message, words] of [
  [
    'admission webhook "claims.berth.dev" denied the request: address 10.20.0.51 in pool "db" is held',
    'address 10.20.0.51 in pool "db" is held',
  ],
  [
    'the API server refuses to delete ipclaims shop/a with 403: admission webhook "claims.berth.dev" denied the request: ' +
      "claim shop/a is in use",
    "claim shop/a is in use",
  ],
  [
    `ipclaims.berth.dev "vip" is forbidden: ValidatingAdmissionPolicy 'own' with binding 'all' denied request: not this one`,
    "not this one",
  ],
  ['ipclaims.berth.dev is forbidden: User "nobody" cannot create resource "ipclaims"', undefined],
  ['failed calling webhook "claims.berth.dev": connection refused', undefined],
] as const) {
  it(`finds ${words === undefined ? "no denial" : "the denial"} in: ${message.slice(0, 60)}`, () => {
    assert.equal(parseDenial(message), words);
  });
}
