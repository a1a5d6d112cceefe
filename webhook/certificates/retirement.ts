// SPDX-License-Identifier: Apache-2.0
import type { X509Certificate } from "node:crypto";

/**
 * Until when older authorities are needed, in milliseconds since 1970, as an annotation has it: with commas between, `FINGERPRINT=TIME`
 * (SHA-256, RFC 3339), each of the authority that it names, whatever becomes of the others. A time alone is of all that have none of
 * their own: an administrator's, who wants them to go. Earlier versions wrote times alone, one for each: the last of them is late
 * enough for all.
 */
export function timesOf(
  text: string,
  authorities: readonly X509Certificate[],
): ReadonlyMap<X509Certificate, number> {
  const own = new Map<string, number>(); // fingerprint -> time
  let ofAll = Number.NEGATIVE_INFINITY;
  for (const entry of text.split(",")) {
    const [time = "", fingerprint] = entry.split("=").reverse();
    const until = Date.parse(time.trim());
    if (Number.isNaN(until)) continue;
    if (fingerprint === undefined) ofAll = Math.max(ofAll, until);
    else own.set(fingerprint.trim().toUpperCase(), until);
  }
  const found = authorities.map(
    (authority) => [authority, own.get(authority.fingerprint256) ?? ofAll] as const,
  );
  return new Map(found.filter(([, until]) => Number.isFinite(until)));
}

/** As `timesOf` reads it. */
export function textOf(times: ReadonlyMap<X509Certificate, number>): string {
  return [...times]
    .map(([{ fingerprint256 }, until]) => `${fingerprint256}=${new Date(until).toISOString()}`)
    .join();
}
