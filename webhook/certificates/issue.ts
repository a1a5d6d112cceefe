// SPDX-License-Identifier: Apache-2.0
import "./reflect-metadata.ts";
import { createPrivateKey, type webcrypto } from "node:crypto";
import { isIP } from "node:net";
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  type Extension,
  type JsonName,
  KeyUsageFlags,
  KeyUsagesExtension,
  PemConverter,
  X509Certificate as PublicCertificate,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  X509CertificateGenerator,
} from "@peculiar/x509";
import { BerthError } from "../../allocator/base/errors.ts";
import type { Clock } from "../../allocator/base/ports.ts";
import { type CertificatePair, readPair } from "../../system/pem/pair.ts";

/** What clients reach the server by; at least one. */
export interface ServerNames {
  readonly dnsNames: readonly string[];
  readonly addresses: readonly string[];
}

const P256 = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
const DAY_MS = 24 * 60 * 60 * 1000;
const AUTHORITY_LIFE_MS = 3650 * DAY_MS;
export const LEAF_LIFE_MS = 90 * DAY_MS;
/** Clocks of other hosts may be behind: a certificate is valid a little before it was made. */
const SKEW_MS = 5 * 60 * 1000;

/** How long a certificate is valid, and since when. */
interface Validity {
  /** From now on, ms. */
  readonly ms: number;
  /** Milliseconds since 1970; absent: five minutes ago. */
  readonly since?: number;
}

/**
 * A certificate authority of our own: ECDSA P-256, for leaves only, 10 years unless said otherwise. Its name carries
 * its moment of birth.
 */
export async function issueAuthority(
  clock: Pick<Clock, "now">,
  life: Validity = { ms: AUTHORITY_LIFE_MS },
): Promise<CertificatePair> {
  const keys = await crypto.subtle.generateKey(P256, true, ["sign", "verify"]);
  const now = clock.now();
  const certificate = await X509CertificateGenerator.createSelfSigned({
    // two authorities at a time, while one takes over from the other, should not share a name
    name: [{ CN: [`Berth authority ${new Date(now).toISOString()}`] }],
    notBefore: new Date(life.since ?? now - SKEW_MS),
    notAfter: new Date(now + life.ms),
    signingAlgorithm: P256,
    keys,
    extensions: [
      new BasicConstraintsExtension(true, 0, true),
      new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
      await SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return { cert: pemOf(certificate), key: await privatePem(keys.privateKey) };
}

/**
 * A server certificate for the names: ECDSA P-256, 90 days unless said otherwise, never longer than its authority.
 * @throws BerthError CERTIFICATE_INVALID for an authority that cannot be used, CONFIG_INVALID for the names
 */
export async function issueServingCertificate(
  authority: CertificatePair,
  names: ServerNames,
  clock: Pick<Clock, "now">,
  life: Validity = { ms: LEAF_LIFE_MS },
): Promise<CertificatePair> {
  const alternatives = new SubjectAlternativeNameExtension(alternativesOf(names));
  const certified = {
    subject: [{ CN: ["Berth webhook"] }],
    usage: ExtendedKeyUsage.serverAuth,
    alternatives,
  };
  return await issue(authority, certified, clock, life);
}

/** Who a client is: what a server goes by. */
export interface ClientName {
  readonly name: string;
  readonly organization: string;
}

/**
 * A client certificate: ECDSA P-256, 90 days unless said otherwise, never longer than its authority.
 * @throws BerthError CERTIFICATE_INVALID for an authority that cannot be used
 */
export async function issueClient(
  authority: CertificatePair,
  { name, organization }: ClientName,
  clock: Pick<Clock, "now">,
  life: Validity = { ms: LEAF_LIFE_MS },
): Promise<CertificatePair> {
  const subject = [{ O: [organization] }, { CN: [name] }];
  return await issue(authority, { subject, usage: ExtendedKeyUsage.clientAuth }, clock, life);
}

async function issue(
  authority: CertificatePair,
  certified: {
    readonly subject: JsonName;
    readonly usage: ExtendedKeyUsage;
    readonly alternatives?: Extension;
  },
  clock: Pick<Clock, "now">,
  life: Validity,
): Promise<CertificatePair> {
  const { issuer, signingKey } = await readAuthority(authority);
  const { subject, usage, alternatives } = certified;
  const keys = await crypto.subtle.generateKey(P256, true, ["sign", "verify"]);
  const now = clock.now();
  const extensions: Extension[] = [
    new BasicConstraintsExtension(false, undefined, true),
    new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
    new ExtendedKeyUsageExtension([usage]),
    ...(alternatives === undefined ? [] : [alternatives]),
    await SubjectKeyIdentifierExtension.create(keys.publicKey),
    await AuthorityKeyIdentifierExtension.create(issuer.publicKey),
  ];
  const certificate = await X509CertificateGenerator.create({
    subject,
    issuer: issuer.subjectName,
    notBefore: new Date(life.since ?? now - SKEW_MS),
    notAfter: new Date(Math.min(now + life.ms, issuer.notAfter.getTime())),
    signingAlgorithm: P256,
    publicKey: keys.publicKey,
    signingKey,
    extensions,
  });
  return { cert: pemOf(certificate), key: await privatePem(keys.privateKey) };
}

async function readAuthority(authority: CertificatePair) {
  const { ca, publicKey } = readPair(authority);
  const { namedCurve } = publicKey.asymmetricKeyDetails ?? {};
  // the curve by its name in OpenSSL, RFC 5480 section 2.1.1.1
  if (!ca || namedCurve !== "prime256v1") {
    throw new BerthError(
      "CERTIFICATE_INVALID",
      "the certificate is not that of an authority with an ECDSA P-256 key",
    );
  }
  const pkcs8 = createPrivateKey(authority.key).export({ type: "pkcs8", format: "der" });
  const signingKey = await crypto.subtle.importKey("pkcs8", pkcs8, P256, false, ["sign"]);
  return { issuer: new PublicCertificate(authority.cert), signingKey };
}

function alternativesOf({ dnsNames, addresses }: ServerNames) {
  if (dnsNames.length + addresses.length === 0)
    throw unusable("a certificate needs a DNS name or an address");
  const name = dnsNames.find((one) => !/^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/i.test(one));
  if (name !== undefined) throw unusable(`${JSON.stringify(name)} is not a DNS name`);
  const address = addresses.find((one) => isIP(one) === 0);
  if (address !== undefined) throw unusable(`${JSON.stringify(address)} is not an address`);
  return [
    ...dnsNames.map((value) => ({ type: "dns" as const, value })),
    ...addresses.map((value) => ({ type: "ip" as const, value })),
  ];
}

function unusable(message: string): BerthError {
  return new BerthError("CONFIG_INVALID", message);
}

function pemOf(certificate: PublicCertificate): string {
  return `${certificate.toString("pem")}\n`;
}

async function privatePem(key: webcrypto.CryptoKey): Promise<string> {
  const pkcs8 = await crypto.subtle.exportKey("pkcs8", key);
  return `${PemConverter.encode(pkcs8, PemConverter.PrivateKeyTag)}\n`;
}
