// SPDX-License-Identifier: Apache-2.0
import { createPrivateKey, X509Certificate } from "node:crypto";
import { createSecureContext } from "node:tls";
import { BerthError } from "../../allocator/base/errors.ts";
import { opensslRefusal } from "./openssl-refusal.ts";
import { CERTIFICATE_BEGIN, pemFault } from "./pem-fault.ts";

/** A certificate (others of its chain may follow it) and its private key, both PEM. */
export interface CertificatePair {
  readonly cert: string;
  readonly key: string;
}

/** @throws BerthError CERTIFICATE_INVALID when it cannot be read; `what` is how it is called then */
export function readCertificate(pem: string, what = "the certificate"): X509Certificate {
  try {
    return new X509Certificate(pem);
  } catch (error) {
    throw invalid(`${what} cannot be read: ${pemFault(pem, "certificate")}`, error);
  }
}

const BEGIN = new RegExp(CERTIFICATE_BEGIN, "g");

/** Each certificate of the text, from its first line to that of the next one. */
export function certificatesIn(pem: string): readonly string[] {
  const starts = [...pem.matchAll(BEGIN)].map(({ index }) => index);
  return starts.map((start, n) => pem.slice(start, starts[n + 1]));
}

/** What the two are called where they are files. */
interface PairNames {
  readonly cert: string;
  readonly key: string;
}

/**
 * Reads the first certificate of a pair that a server can use.
 * @throws BerthError CERTIFICATE_INVALID, which names the file if there are any, when one of the two cannot be read, or they do not
 * belong together
 */
export function readPair({ cert, key }: CertificatePair, files?: PairNames): X509Certificate {
  const certificate = readCertificate(cert, files?.cert);
  let belongs: boolean;
  try {
    belongs = certificate.checkPrivateKey(createPrivateKey(key));
  } catch (error) {
    const words = `${files?.key ?? "the private key"} cannot be read: ${pemFault(key, "private key")}`;
    throw invalid(words, error);
  }
  if (belongs) return certificate;
  throw invalid(
    files === undefined
      ? "the private key is not that of the certificate"
      : `the private key in ${files.key} is not that of the certificate in ${files.cert}`,
  );
}

/**
 * As `readPair`, with whatever follows the certificate, for OpenSSL to use: it serves none of a chain in which it cannot read one, as where
 * that is half written, and takes no key that is too short.
 */
export function readWholePair(pair: CertificatePair, files?: PairNames): X509Certificate {
  const first = readPair(pair, files);
  const all = certificatesIn(pair.cert);
  const where = files === undefined ? "" : ` in ${files.cert}`;
  for (const [n, one] of all.entries()) readCertificate(one, `certificate ${n + 1} of ${all.length}${where}`);
  try {
    createSecureContext({ cert: pair.cert, key: pair.key });
  } catch (error) {
    throw invalid(`${files?.cert ?? "the certificate"} is refused: ${opensslRefusal(error, first)}`, error);
  }
  return first;
}

function invalid(message: string, cause?: unknown): BerthError {
  return new BerthError("CERTIFICATE_INVALID", message, { cause });
}
