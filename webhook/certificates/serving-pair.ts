// SPDX-License-Identifier: Apache-2.0
import type { X509Certificate } from "node:crypto";
import { BerthError } from "../../allocator/base/errors.ts";
import { type CertificatePair, readCertificate, readWholePair } from "../../system/pem/pair.ts";

/** Renewal is due when so much of the life is over: one third is left to notice that it fails. */
const DUE_AFTER = 2 / 3;

/**
 * As `readWholePair`, for now.
 * @throws BerthError CERTIFICATE_INVALID when the certificate has expired, too; `now` in milliseconds since 1970
 */
export function readServingPair(pair: CertificatePair, now: number): X509Certificate {
  const certificate = readWholePair(pair);
  if (certificate.validToDate.getTime() > now) return certificate;
  const words = `the certificate expired on ${certificate.validToDate.toISOString()}; renew it`;
  throw new BerthError("CERTIFICATE_INVALID", words);
}

export function isServable(pair: CertificatePair, now: number): boolean {
  try {
    readServingPair(pair, now);
    return true;
  } catch {
    return false;
  }
}

/** Whether two thirds of the certificate's life are over. @throws BerthError CERTIFICATE_INVALID */
export function needsRenewal(cert: string, now: number): boolean {
  const { validFromDate, validToDate } = readCertificate(cert);
  const life = validToDate.getTime() - validFromDate.getTime();
  return now >= validFromDate.getTime() + life * DUE_AFTER;
}
