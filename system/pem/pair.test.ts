// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { issueAuthority, issueClient } from "../../webhook/certificates/issue.ts";
import { createClock } from "../clock.ts";
import { readCertificates, readPair, readWholePair } from "./pair.ts";
import { SHORT_KEY } from "./testing/short-key.ts";

const FILES = { cert: "/tls/tls.crt", key: "/tls/tls.key" };

describe("a pair that OpenSSL is to use", () => {
  it("is refused in plain words where its key is too short, though it reads well", () => {
    readPair(SHORT_KEY, FILES);
    const message =
      "/tls/tls.crt is refused: its key (RSA, 1024 bits) is too short for OpenSSL; make one of at least 2048 bits (RSA), or of the curve P-256";
    assert.throws(() => readWholePair(SHORT_KEY, FILES), { code: "CERTIFICATE_INVALID", message });
  });

  it("is refused where that is so of a certificate that follows", async () => {
    const clock = createClock();
    const { cert, key } = await issueClient(
      await issueAuthority(clock),
      { name: "host-a", organization: "berth" },
      clock,
    );
    const message =
      /^the certificate is refused: a certificate that follows the first one has a key that is too short for OpenSSL; /;
    assert.throws(() => readWholePair({ cert: cert + SHORT_KEY.cert, key }), {
      code: "CERTIFICATE_INVALID",
      message,
    });
  });

  it("may say in a comment how a certificate begins, or ends", async () => {
    const clock = createClock();
    const ca = await issueAuthority(clock);
    const { cert, key } = await issueClient(ca, { name: "host-a", organization: "berth" }, clock);
    const comment = "# from -----BEGIN CERTIFICATE----- to -----END CERTIFICATE-----\r\n";
    for (const text of [comment + cert, cert + comment, `\ufeff${cert}${comment}${ca.cert}`])
      readWholePair({ cert: text, key });
    const bundles = [`${comment}${cert}${ca.cert}# to -----END CERTIFICATE-----`, cert.trim() + ca.cert];
    for (const text of bundles) assert.equal(readCertificates(text).length, 2);
    assert.throws(
      () => readCertificates(`${cert}-----BEGIN CERTIFICATE-----`),
      /beginnings of 2 .* ends of 1$/,
    );
  });
});
