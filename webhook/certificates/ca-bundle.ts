// SPDX-License-Identifier: Apache-2.0
import { X509Certificate } from "node:crypto";
import { BerthError } from "../../allocator/base/errors.ts";
import { type CertificatePair, readCertificates, readPair } from "../../system/pem/pair.ts";

const PEM = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

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
 * Every authority of a text in which each one counts.
 * @throws BerthError CERTIFICATE_INVALID, which says which of them cannot be used
 */
export function readAuthorities(text: string): X509Certificate[] {
  const certificates = readCertificates(text);
  return certificates.map((certificate, n) => {
    if (certificate.ca || isOwnIssuer(certificate)) return certificate;
    const words = `certificate ${n + 1} of ${certificates.length} is not that of an authority`;
    throw new BerthError("CERTIFICATE_INVALID", words);
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
