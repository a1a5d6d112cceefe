// SPDX-License-Identifier: Apache-2.0
import { X509Certificate } from "node:crypto";
import { BerthError } from "../../allocator/base/errors.ts";
import { type CertificatePair, certificatesIn, readCertificate, readPair } from "../../system/pem/pair.ts";
import { CERTIFICATE_END } from "../../system/pem/pem-fault.ts";

const PEM = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;
const END = new RegExp(CERTIFICATE_END, "g");

/** Every authority in the text, in order and once, whatever else stands there: it was written by somebody. */
export function parseBundle(text: string): X509Certificate[] {
  const found = new Map<string, X509Certificate>(); // fingerprint -> certificate
  for (const [pem] of text.matchAll(PEM)) {
    const certificate = readable(pem);
    if (certificate?.ca === true) found.set(certificate.fingerprint256, certificate);
  }
  return [...found.values()];
}

/**
 * Every authority of a text in which each one counts: OpenSSL passes over the first that it cannot read, and over all behind it.
 * @throws BerthError CERTIFICATE_INVALID, which says which of them cannot be used
 */
export function readAuthorities(text: string): X509Certificate[] {
  const parts = certificatesIn(text);
  const [ends, count] = [[...text.matchAll(END)].length, parts.length];
  if (count !== ends || count === 0) {
    const found = `it has the beginnings of ${count} and the ends of ${ends}`;
    throw new BerthError("CERTIFICATE_INVALID", `the certificates cannot be read: ${found}`);
  }
  return parts.map((part, n) => {
    const certificate = readCertificate(part, `certificate ${n + 1} of ${count}`);
    if (certificate.ca || isOwnIssuer(certificate)) return certificate;
    throw new BerthError(
      "CERTIFICATE_INVALID",
      `certificate ${n + 1} of ${count} is not that of an authority`,
    );
  });
}

/**
 * Signed by itself: OpenSSL trusts it without basicConstraints too, as those of version 1 are, and the only client of one that may sign
 * no others is itself. `checkIssued` would ask its keyUsage for the right to sign.
 */
function isOwnIssuer(certificate: X509Certificate): boolean {
  try {
    return certificate.subject === certificate.issuer && certificate.verify(certificate.publicKey);
  } catch {
    return false;
  }
}

/** One text with all of them, as `parseBundle` reads it; always the same for the same. */
export function bundleOf(authorities: readonly X509Certificate[]): string {
  return authorities.map((authority) => authority.toString()).join("");
}

/** Certificate and key of an authority that can sign leaves here; undefined for anything else. */
export function signerOf(pair: CertificatePair): X509Certificate | undefined {
  try {
    const certificate = readPair(pair);
    const { namedCurve } = certificate.publicKey.asymmetricKeyDetails ?? {};
    return certificate.ca && namedCurve === "prime256v1" ? certificate : undefined;
  } catch {
    return undefined;
  }
}

/** Which of the authorities has signed the certificate. */
export function issuerAmong(
  authorities: readonly X509Certificate[],
  certificate: X509Certificate,
): X509Certificate | undefined {
  return authorities.find((authority) => {
    try {
      return certificate.checkIssued(authority) && certificate.verify(authority.publicKey);
    } catch {
      return false;
    }
  });
}

function readable(pem: string): X509Certificate | undefined {
  try {
    return new X509Certificate(pem);
  } catch {
    return undefined;
  }
}
