// SPDX-License-Identifier: Apache-2.0
import type { X509Certificate } from "node:crypto";

/** Why OpenSSL uses no pair that reads well: by the code of its error, with what to do. `key`: that of the first certificate, in words. */
const REFUSALS: Readonly<Record<string, (key: string) => string>> = {
  ERR_SSL_EE_KEY_TOO_SMALL: (key) =>
    `its key (${key}) is too short for OpenSSL; make one of at least 2048 bits (RSA), or of the curve P-256`,
  ERR_SSL_CA_KEY_TOO_SMALL: () =>
    "a certificate that follows the first one has a key that is too short for OpenSSL; have it signed by an authority with a longer one",
  ERR_SSL_CA_MD_TOO_WEAK: () =>
    "OpenSSL takes no signature with a digest that can be forged, as SHA-1 and MD5; have it signed with SHA-256",
};

export function opensslRefusal(error: unknown, certificate: X509Certificate): string {
  const { code = "", reason } = error as { readonly code?: string; readonly reason?: string };
  return REFUSALS[code]?.(keyInWords(certificate)) ?? `OpenSSL does not take it (${reason ?? String(error)})`;
}

function keyInWords({ publicKey }: X509Certificate): string {
  const { asymmetricKeyType = "unknown", asymmetricKeyDetails } = publicKey;
  const { modulusLength, namedCurve } = asymmetricKeyDetails ?? {};
  const size = modulusLength === undefined ? namedCurve : `${modulusLength} bits`;
  return [asymmetricKeyType.toUpperCase(), size].filter((part) => part !== undefined).join(", ");
}
