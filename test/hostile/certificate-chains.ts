// SPDX-License-Identifier: Apache-2.0
// Client certificates that cost whoever checks them much: chains whose signatures are made of chance, each to be checked with a key of chance.
import { generateKeyPairSync, randomBytes } from "node:crypto";

const INTEGER = 0x02;
const BIT_STRING = 0x03;
const OCTET_STRING = 0x04;
const NULL = Buffer.of(0x05, 0);
const UTF8 = 0x0c;
const UTC_TIME = 0x17;
const SET = 0x31;
const TRUE = Buffer.of(0x01, 1, 0xff);

/** One value of DER (X.690): what it is, how long, and its bytes. */
function der(tag: number, ...parts: readonly Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  const { length } = content;
  if (length < 0x80) return Buffer.concat([Buffer.of(tag, length), content]);
  const digits = Buffer.of(length >> 16, (length >> 8) & 0xff, length & 0xff);
  const needed = digits.subarray(length > 0xffff ? 0 : length > 0xff ? 1 : 2);
  return Buffer.concat([Buffer.of(tag, 0x80 | needed.length), needed, content]);
}

const sequence = (...parts: readonly Buffer[]) => der(0x30, ...parts);
const bits = (bytes: Buffer) => der(BIT_STRING, Buffer.of(0), bytes);
const RSA = der(0x06, Buffer.from("2a864886f70d010101", "hex"));
const SHA256_WITH_RSA = sequence(der(0x06, Buffer.from("2a864886f70d01010b", "hex")), NULL);
const COMMON_NAME = der(0x06, Buffer.from("550403", "hex"));
const BASIC_CONSTRAINTS = der(0x06, Buffer.from("551d13", "hex"));
const AUTHORITY = der(0xa3, sequence(sequence(BASIC_CONSTRAINTS, TRUE, der(OCTET_STRING, sequence(TRUE)))));
const VALIDITY = sequence(
  der(UTC_TIME, Buffer.from("250101000000Z")),
  der(UTC_TIME, Buffer.from("450101000000Z")),
);

function nameOf(commonName: string): Buffer {
  return sequence(der(SET, sequence(COMMON_NAME, der(UTF8, Buffer.from(commonName)))));
}

/** Odd, and of so many bits. */
function numberOf(length: number): Buffer {
  const bytes = randomBytes(Math.ceil(length / 8));
  const top = (length - 1) % 8;
  bytes[0] = ((bytes[0] ?? 0) & ((1 << (top + 1)) - 1)) | (1 << top);
  bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) | 1;
  return der(INTEGER, Buffer.of(0), bytes);
}

function certificate(of: {
  issuer: string;
  subject: string;
  key: Buffer;
  signed: number;
  isAuthority: boolean;
}) {
  const head = [der(0xa0, der(INTEGER, Buffer.of(2))), der(INTEGER, Buffer.of(1)), SHA256_WITH_RSA];
  const body = [nameOf(of.issuer), VALIDITY, nameOf(of.subject), of.key];
  const signed = sequence(...head, ...body, ...(of.isAuthority ? [AUTHORITY] : []));
  const whole = sequence(
    signed,
    SHA256_WITH_RSA,
    bits(Buffer.concat([Buffer.of(0), randomBytes(of.signed - 1)])),
  );
  return `-----BEGIN CERTIFICATE-----\n${whole.toString("base64")}\n-----END CERTIFICATE-----\n`;
}

export interface Chain {
  readonly cert: string;
  readonly key: string;
}

/** A client's certificate, which its key belongs to, and so many authorities above it, with RSA keys of so many bits. */
export function chainOf(authorities: number, modulusBits: number, exponentBits: number): Chain {
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const signed = modulusBits / 8;
  const leaf = { key: publicKey.export({ type: "spki", format: "der" }), isAuthority: false };
  const chain = [certificate({ issuer: "0", subject: "client", signed, ...leaf })];
  for (let n = 0; n < authorities; n++) {
    const numbers = sequence(numberOf(modulusBits), numberOf(exponentBits));
    const of = { key: sequence(sequence(RSA, NULL), bits(numbers)), isAuthority: true };
    chain.push(certificate({ issuer: String(n + 1), subject: String(n), signed, ...of }));
  }
  return { cert: chain.join(""), key: privateKey.export({ type: "pkcs8", format: "pem" }).toString() };
}

/** OpenSSL takes exponents of any length up to 3,072 bits, of 64 bits up to 16,384, and 100 KiB of certificates. */
export const COSTLY_CHAINS: Readonly<Record<string, () => Chain>> = {
  "long exponents": () => chainOf(70, 3_072, 3_071),
  "long keys": () => chainOf(22, 16_384, 64),
};

/** Half the time of a chain that is cut off costs one of 6 KiB. */
export const SHORT_COSTLY_CHAIN = () => chainOf(4, 3_072, 3_071);
