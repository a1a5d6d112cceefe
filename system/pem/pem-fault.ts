// SPDX-License-Identifier: Apache-2.0
// What OpenSSL says of a file that is half written ("DECODER routines::unsupported") helps nobody.

type Kind = "certificate" | "private key";

/** Also as OpenSSL writes some, and takes them. One in the middle of a line, as in a comment, is none; behind the end of another it is. */
export const CERTIFICATE_BEGIN =
  /-----BEGIN(?<=(?:^|-----)\s*-----BEGIN) (?:X509 |TRUSTED )?CERTIFICATE-----/m;
export const CERTIFICATE_END = /-----END(?<=^\s*-----END) (?:X509 |TRUSTED )?CERTIFICATE-----/m;

const BEGINNINGS: { readonly [K in Kind]: RegExp } = {
  certificate: CERTIFICATE_BEGIN,
  "private key": /-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY-----/,
};
const ENDS: { readonly [K in Kind]: RegExp } = {
  certificate: CERTIFICATE_END,
  "private key": /-----END (?:[A-Z0-9]+ )*PRIVATE KEY-----/,
};
const ENCRYPTED = /-----BEGIN ENCRYPTED PRIVATE KEY-----|^Proc-Type: 4,ENCRYPTED/m;

/** Why a text in PEM is none of the kind, for whoever wrote it. Nothing of the text is repeated, which may be a key. */
export function pemFault(text: string, kind: Kind): string {
  if (text.trim() === "") return "it is empty";
  const line = kind.toUpperCase();
  if (!BEGINNINGS[kind].test(text)) {
    const other = kind === "certificate" ? "private key" : "certificate";
    const held = BEGINNINGS[other].test(text) ? `: it holds a ${other}` : "";
    return `it has no line -----BEGIN ${line}-----${held}`;
  }
  if (!ENDS[kind].test(text)) return `it breaks off before its line -----END ${line}-----`;
  if (kind === "private key" && ENCRYPTED.test(text))
    return "it is encrypted with a passphrase; write it without one";
  return `what is between its first and last line is no ${kind}, or of a kind that OpenSSL does not know`;
}
