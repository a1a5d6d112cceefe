// SPDX-License-Identifier: Apache-2.0

/** `299 - "text"`, one or more in each header (RFC 7234, 5.5); what looks otherwise is passed over. */
export function warningsIn(headers: readonly string[]): readonly string[] {
  return headers.flatMap((header) => {
    const found = header.matchAll(/\b\d{3} \S+ "((?:[^"\\]|\\.)*)"/g);
    return [...found].map(([, text = ""]) => text.replaceAll(/\\(.)/g, "$1"));
  });
}
