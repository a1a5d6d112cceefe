// SPDX-License-Identifier: Apache-2.0
import { X509Certificate } from "node:crypto";
import { type CertificatePair, readPair } from "./pair.ts";

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
