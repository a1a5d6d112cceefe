// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { createPrivateKey, X509Certificate } from "node:crypto";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { describe, it } from "node:test";
import { connect, createServer } from "node:tls";
import { BerthError } from "../../allocator/base/errors.ts";
import { createClock } from "../../system/clock.ts";
import { readCertificate, readPair } from "../../system/pem/pair.ts";
import { ManualClock } from "../../system/testing/manual-clock.ts";
import { issueAuthority, issueServingCertificate, type ServerNames } from "./issue.ts";
import { needsRenewal, readServingPair } from "./serving-pair.ts";

const LOCAL: ServerNames = { dnsNames: ["localhost"], addresses: ["127.0.0.1", "::1"] };
const DAY_MS = 24 * 60 * 60 * 1000;
const FIVE_MINUTES_MS = 5 * 60 * 1000;

function coded(code: string, message: string) {
  return (error: unknown) => error instanceof BerthError && error.code === code && error.message === message;
}

/** One handshake; what the client sees of the server. */
async function shakeHands(
  pair: { cert: string; key: string },
  ca: string,
  as: { host: string; name?: string },
) {
  const server = createServer(pair, (socket) => socket.end());
  server.listen(0, as.host);
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const client = connect({ host: as.host, port, ca, servername: as.name ?? "" });
  try {
    await once(client, "secureConnect");
    return { authorized: client.authorized, serial: client.getPeerCertificate().serialNumber };
  } finally {
    client.destroy();
    server.close();
    await once(server, "close");
  }
}

describe("certificates", () => {
  it("issues an authority of ten years, for leaves only", async () => {
    const clock = new ManualClock(Date.UTC(2026, 5, 1, 12));
    const authority = await issueAuthority(clock);
    const certificate = readPair(authority);
    assert.equal(certificate.subject, "CN=Berth authority 2026-06-01T12:00:00.000Z");
    assert.equal(certificate.issuer, certificate.subject);
    assert.equal(certificate.ca, true);
    assert.ok(certificate.verify(certificate.publicKey));
    assert.equal(certificate.publicKey.asymmetricKeyDetails?.namedCurve, "prime256v1");
    assert.equal(certificate.validFromDate.getTime(), clock.now() - FIVE_MINUTES_MS);
    assert.equal(certificate.validToDate.getTime(), clock.now() + 3650 * DAY_MS);
    assert.match(authority.cert, /^-----BEGIN CERTIFICATE-----\n[^-]+-----END CERTIFICATE-----\n$/);
    assert.match(authority.key, /^-----BEGIN PRIVATE KEY-----\n[^-]+-----END PRIVATE KEY-----\n$/);
  });

  it("issues a leaf of ninety days for the names, for servers only", async () => {
    const clock = new ManualClock();
    const authority = await issueAuthority(clock);
    const leaf = await issueServingCertificate(
      authority,
      { ...LOCAL, dnsNames: ["berth.berth-system.svc", "localhost"] },
      clock,
    );
    const certificate = readPair(leaf);
    const issuer = readPair(authority);
    assert.ok(certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey));
    assert.equal(
      certificate.subjectAltName,
      "DNS:berth.berth-system.svc, DNS:localhost, IP Address:127.0.0.1, IP Address:0:0:0:0:0:0:0:1",
    );
    assert.deepEqual(certificate.keyUsage, ["1.3.6.1.5.5.7.3.1"]); // serverAuth
    assert.equal(certificate.ca, false);
    assert.equal(certificate.validToDate.getTime(), clock.now() + 90 * DAY_MS);
    assert.equal(certificate.checkHost("berth.berth-system.svc"), "berth.berth-system.svc");
    assert.equal(certificate.checkHost("other.svc"), undefined);
  });

  for (const as of [{ host: "127.0.0.1" }, { host: "127.0.0.1", name: "localhost" }, { host: "::1" }]) {
    it(`is trusted by who trusts the authority, at ${as.name ?? as.host}`, async () => {
      const clock = createClock();
      const authority = await issueAuthority(clock);
      const leaf = await issueServingCertificate(authority, LOCAL, clock);
      assert.deepEqual(await shakeHands(leaf, authority.cert, as), {
        authorized: true,
        serial: new X509Certificate(leaf.cert).serialNumber,
      });
    });
  }

  it("is not trusted under another name, nor by who trusts another authority", async () => {
    const clock = createClock();
    const [authority, other] = [await issueAuthority(clock), await issueAuthority(clock)];
    const leaf = await issueServingCertificate(authority, { dnsNames: ["localhost"], addresses: [] }, clock);
    await assert.rejects(shakeHands(leaf, authority.cert, { host: "127.0.0.1" }), {
      code: "ERR_TLS_CERT_ALTNAME_INVALID",
    });
    await assert.rejects(shakeHands(leaf, other.cert, { host: "127.0.0.1", name: "localhost" }), {
      code: /^(UNABLE_TO_VERIFY_LEAF_SIGNATURE|SELF_SIGNED_CERT_IN_CHAIN|CERT_SIGNATURE_FAILURE)$/,
    });
  });

  it("is trusted while old and new authority stand in one bundle", async () => {
    const clock = createClock();
    const [old, young] = [await issueAuthority(clock), await issueAuthority(clock)];
    for (const authority of [old, young]) {
      const leaf = await issueServingCertificate(authority, LOCAL, clock);
      const hands = await shakeHands(leaf, old.cert + young.cert, { host: "127.0.0.1" });
      assert.equal(hands.authorized, true);
    }
  });

  it("ends a leaf with its authority, in another century's encoding of time too", async () => {
    const clock = new ManualClock(Date.UTC(2045, 0, 1));
    const authority = await issueAuthority(clock); // until 2054: GeneralizedTime
    clock.advance(3640 * DAY_MS);
    const leaf = await issueServingCertificate(authority, LOCAL, clock);
    assert.equal(readPair(leaf).validTo, readPair(authority).validTo);
  });

  it("gives every certificate its own serial number and key", async () => {
    const clock = new ManualClock();
    const authority = await issueAuthority(clock);
    const leaves = await Promise.all([1, 2, 3].map(() => issueServingCertificate(authority, LOCAL, clock)));
    assert.equal(new Set(leaves.map(({ cert }) => readCertificate(cert).serialNumber)).size, 3);
    assert.equal(new Set(leaves.map(({ key }) => key)).size, 3);
  });

  for (const { names, message } of [
    { names: { dnsNames: [], addresses: [] }, message: "a certificate needs a DNS name or an address" },
    { names: { dnsNames: ["a b"], addresses: [] }, message: '"a b" is not a DNS name' },
    { names: { dnsNames: ["a"], addresses: ["10.0.0.256"] }, message: '"10.0.0.256" is not an address' },
  ]) {
    it(`refuses names: ${message}`, async () => {
      const clock = new ManualClock();
      const authority = await issueAuthority(clock);
      await assert.rejects(
        issueServingCertificate(authority, names, clock),
        coded("CONFIG_INVALID", message),
      );
    });
  }

  it("refuses a leaf as an authority", async () => {
    const clock = new ManualClock();
    const leaf = await issueServingCertificate(await issueAuthority(clock), LOCAL, clock);
    await assert.rejects(
      issueServingCertificate(leaf, LOCAL, clock),
      coded("CERTIFICATE_INVALID", "the certificate is not that of an authority with an ECDSA P-256 key"),
    );
  });

  it("is due for renewal when two thirds of its life are over", async () => {
    const clock = new ManualClock();
    const { cert } = await issueServingCertificate(await issueAuthority(clock), LOCAL, clock);
    const born = clock.now() - FIVE_MINUTES_MS;
    const due = born + ((90 * DAY_MS + FIVE_MINUTES_MS) * 2) / 3;
    assert.equal(needsRenewal(cert, clock.now()), false);
    assert.equal(needsRenewal(cert, due - 1), false);
    assert.equal(needsRenewal(cert, due), true);
    assert.equal(needsRenewal(cert, due + 365 * DAY_MS), true);
  });
});

describe("certificate pair", () => {
  it("refuses what cannot be read, does not belong together or has expired", async () => {
    const clock = new ManualClock(Date.UTC(2026, 0, 1));
    const authority = await issueAuthority(clock);
    const [leaf, other] = [
      await issueServingCertificate(authority, LOCAL, clock),
      await issueServingCertificate(authority, LOCAL, clock),
    ];
    const refused = (message: RegExp) => (error: unknown) =>
      error instanceof BerthError && error.code === "CERTIFICATE_INVALID" && message.test(error.message);
    assert.throws(() => readPair({ ...leaf, cert: "" }), refused(/^the certificate cannot be read: /));
    assert.throws(() => readPair({ ...leaf, cert: leaf.key }), refused(/^the certificate cannot be read: /));
    assert.throws(() => readPair({ ...leaf, key: "" }), refused(/^the private key cannot be read: /));
    assert.throws(
      () => readPair({ ...leaf, key: other.key }),
      refused(/^the private key is not that of the certificate$/),
    );
    const cipher = { cipher: "aes-256-cbc", passphrase: "secret" } as const;
    const locked = createPrivateKey(leaf.key)
      .export({ format: "pem", type: "pkcs8", ...cipher })
      .toString();
    const files = { cert: "/tls/tls.crt", key: "/tls/tls.key" };
    assert.throws(
      () => readPair({ ...leaf, key: other.key }, files),
      refused(/^the private key in \/tls\/tls\.key is not that of the certificate in \/tls\/tls\.crt$/),
    );
    assert.throws(
      () => readPair({ ...leaf, key: locked }, files),
      refused(/^\/tls\/tls\.key cannot be read: it is encrypted with a passphrase; write it without one$/),
    );
    assert.throws(
      () => readPair({ ...leaf, cert: leaf.cert.replace(/\n.+\n/, "\n") }, files),
      refused(/^\/tls\/tls\.crt cannot be read: what is between its first and last line is no certificate/),
    );
    assert.throws(() => needsRenewal("nonsense", 0), refused(/^the certificate cannot be read: /));
    assert.equal(
      readServingPair(leaf, clock.now() + 90 * DAY_MS - 1).serialNumber,
      readPair(leaf).serialNumber,
    );
    assert.throws(
      () => readServingPair(leaf, clock.now() + 90 * DAY_MS),
      refused(/^the certificate expired on 2026-04-01T00:00:00.000Z; renew it$/),
    );
  });

  it("reads the first certificate of a chain", async () => {
    const clock = new ManualClock();
    const authority = await issueAuthority(clock);
    const leaf = await issueServingCertificate(authority, LOCAL, clock);
    const chain = { cert: leaf.cert + authority.cert, key: leaf.key };
    assert.equal(readPair(chain).serialNumber, readCertificate(leaf.cert).serialNumber);
  });
});
