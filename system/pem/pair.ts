// SPDX-License-Identifier: Apache-2.0
import { createPrivateKey, X509Certificate } from "node:crypto";
import { createSecureContext } from "node:tls";
import { BerthError } from "../../allocator/base/errors.ts";
import { opensslRefusal } from "./openssl-refusal.ts";
import { CERTIFICATE_BEGIN, CERTIFICATE_END, pemFault } from "./pem-fault.ts";

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

const BEGIN = new RegExp(CERTIFICATE_BEGIN, "gm");

/** Each certificate of the text, from its first line to that of the next one. */
export function certificatesIn(pem: string): readonly string[] {
  const starts = [...pem.matchAll(BEGIN)].map(({ index }) => index);
  return starts.map((start, n) => pem.slice(start, starts[n + 1]));
}

const END = new RegExp(CERTIFICATE_END, "gm");

/**
 * Every certificate of a text in which each one counts: OpenSSL passes over the first that it cannot read, and over all behind it.
 * @throws BerthError CERTIFICATE_INVALID, which says which of them cannot be read, and names the file if there is one
 */
export function readCertificates(text: string, file?: string): X509Certificate[] {
  const parts = certificatesIn(text);
  const [count, ends] = [parts.length, [...text.matchAll(END)].length];
  if (count > 0 && count === ends) return readAll(parts, file);
  const found =
    count === 0 || ends === 0
      ? pemFault(text, "certificate")
      : `it has the beginnings of ${count} certificates and the ends of ${ends}`;
  throw invalid(`${file ?? "the certificates"} cannot be read: ${found}`);
}

function readAll(parts: readonly string[], file?: string): X509Certificate[] {
  const where = file === undefined ? "" : ` in ${file}`;
  return parts.map((one, n) => readCertificate(one, `certificate ${n + 1} of ${parts.length}${where}`));
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
  readAll(certificatesIn(pair.cert), files?.cert);
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
