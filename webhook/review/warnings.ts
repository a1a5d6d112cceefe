// SPDX-License-Identifier: Apache-2.0

/** The API server cuts longer ones when there are many (k8s.io/apiserver, endpoints/filters/warning.go). */
const LONGEST_BYTES = 256;
/** The API server drops what goes beyond, 4 Ki characters for the whole request. */
const TOTAL_BYTES = 4096;
const ELLIPSIS = "...";

/**
 * Warnings as the API server passes them on: each one line of at most 256 bytes, 4 KiB together, no two alike.
 * It drops a warning with a control character in it, because it goes into an HTTP header.
 */
export function fitWarnings(warnings: readonly string[]): readonly string[] {
  const presentable: string[] = [];
  let total = 0;
  for (const warning of new Set(warnings.map((text) => fitLine(text, LONGEST_BYTES)))) {
    total += Buffer.byteLength(warning);
    if (total > TOTAL_BYTES) break;
    if (warning !== "") presentable.push(warning);
  }
  return presentable;
}

/** One line of at most so many bytes, whatever was quoted in it. */
export function fitLine(text: string, longestBytes: number): string {
  const line = text
    .toWellFormed()
    .replaceAll(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, " ")
    .trim();
  if (Buffer.byteLength(line) <= longestBytes) return line;
  let cut = "";
  let bytes = ELLIPSIS.length;
  for (const character of line) {
    bytes += Buffer.byteLength(character);
    if (bytes > longestBytes) break;
    cut += character;
  }
  return cut + ELLIPSIS;
}
