// SPDX-License-Identifier: Apache-2.0
import type { X509Certificate } from "node:crypto";
import { chmod, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { BerthError, messageOf } from "../../allocator/base/errors.ts";
import type { Clock } from "../../allocator/base/ports.ts";
import { writeDurably } from "../../system/durable-file.ts";
import { makeFolder } from "../../system/folders.ts";
import { type CertificatePair, readCertificate, readPair } from "../../system/pem/pair.ts";
import {
  type ClientName,
  issueAuthority,
  issueClient,
  issueServingCertificate,
  LEAF_LIFE_MS,
  type ServerNames,
} from "./issue.ts";
import { needsRenewal } from "./serving-pair.ts";

/** Whoever can read the folder's `client.key`. */
export const FOLDER_CLIENT: ClientName = { name: "berth-client", organization: "berth.dev:reviewers" };

export interface EnsuredCertificates {
  readonly authority: CertificatePair;
  readonly leaf: CertificatePair;
  /** Of `FOLDER_CLIENT`, by the same authority. */
  readonly client: CertificatePair;
}

/**
 * The year in which this version was made: a clock that says less is not set yet, as of a host that starts without a battery. By it no
 * authority is judged, which others trust.
 */
const SET_SINCE = Date.UTC(2026, 0);

interface PairFiles {
  readonly cert: string;
  readonly key: string;
}

/**
 * The certificates of a stack that is its own authority: `ca.crt`, `tls.crt` and `client.crt` in the folder,
 * each with its `.key`, made when they are missing. The authority is kept while it is valid, so that who trusts it goes on doing so; server's and
 * client's are made again when they are due, for other names, or of no use. The folder belongs to one process.
 *
 * @throws BerthError CERTIFICATE_INVALID for an authority that cannot be used, CONFIG_INVALID for the names and
 * for a folder that cannot be written
 */
export async function ensureCertificates(
  folder: string,
  names: ServerNames,
  clock: Pick<Clock, "now">,
): Promise<EnsuredCertificates> {
  try {
    await makeFolder(folder);
    const authority = await ensureAuthority(filesIn(folder, "ca"), clock);
    const ensure = (name: string, wanted: Wanted) =>
      ensureIssued(filesIn(folder, name), wanted, authority, clock.now());
    const leaf = await ensure("tls", {
      isFor: (found) => isFor(found, names),
      issue: () => issueServingCertificate(authority, names, clock),
    });
    const client = await ensure("client", {
      isFor: () => true,
      issue: () => issueClient(authority, FOLDER_CLIENT, clock),
    });
    return { authority, leaf, client };
  } catch (error) {
    if (error instanceof BerthError) throw error;
    throw new BerthError("CONFIG_INVALID", `certificates cannot be kept in ${folder}: ${messageOf(error)}`, {
      cause: error,
    });
  }
}

async function ensureAuthority(files: PairFiles, clock: Pick<Clock, "now">): Promise<CertificatePair> {
  const cert = await readText(files.cert);
  // the key is written first: without a certificate nobody has trusted it yet
  if (cert === undefined) return await keep(files, await issueAuthority(clock));
  const key = await readText(files.key);
  const { validFromDate, validToDate } = ofUse(files, () => readCertificate(cert));
  const now = clock.now();
  // made while the clock was ahead: nobody takes what it signs before then
  const isEarly = validFromDate.getTime() > now && now >= SET_SINCE;
  // whatever its key is: after a crash between the two writes it is that of the next one already
  if (isEarly || validToDate.getTime() < now + LEAF_LIFE_MS) {
    return await keep(files, await issueAuthority(clock));
  }
  if (key === undefined) throw notOfUse(files, `${files.key} is missing`);
  const found = { cert, key };
  ofUse(files, () => readPair(found));
  await closeToOthers(files.key);
  return found;
}

function ofUse(files: PairFiles, read: () => X509Certificate): X509Certificate {
  try {
    return read();
  } catch (error) {
    throw notOfUse(files, messageOf(error), error);
  }
}

function notOfUse(files: PairFiles, why: string, cause?: unknown): BerthError {
  const remedy = `put back what belongs together, or delete ${files.cert} to make a new authority`;
  const message = `${files.cert} and ${files.key} cannot be used: ${why}; ${remedy}`;
  return new BerthError("CERTIFICATE_INVALID", message, { cause });
}

interface Wanted {
  readonly isFor: (found: X509Certificate) => boolean;
  readonly issue: () => Promise<CertificatePair>;
}

async function ensureIssued(
  files: PairFiles,
  wanted: Wanted,
  authority: CertificatePair,
  now: number,
): Promise<CertificatePair> {
  const found = { cert: (await readText(files.cert)) ?? "", key: (await readText(files.key)) ?? "" };
  if (!isOfUse(found, wanted, authority, now)) return await keep(files, await wanted.issue());
  await closeToOthers(files.key);
  return found;
}

function isFor(found: X509Certificate, { dnsNames, addresses }: ServerNames): boolean {
  return (
    dnsNames.every((name) => found.checkHost(name) !== undefined) &&
    addresses.every((address) => found.checkIP(address) !== undefined)
  );
}

/** Whether the pair is whole, of this authority, for what is wanted, and not due. Also false between two writes. */
function isOfUse(found: CertificatePair, wanted: Wanted, authority: CertificatePair, now: number): boolean {
  try {
    const certificate = readPair(found);
    return (
      certificate.verify(readPair(authority).publicKey) &&
      wanted.isFor(certificate) &&
      certificate.validFromDate.getTime() <= now &&
      !needsRenewal(found.cert, now)
    );
  } catch {
    return false;
  }
}

async function keep(files: PairFiles, pair: CertificatePair): Promise<CertificatePair> {
  await writeDurably(files.key, pair.key, 0o600);
  await writeDurably(files.cert, pair.cert, 0o644);
  return pair;
}

async function closeToOthers(path: string): Promise<void> {
  const { mode } = await stat(path);
  if ((mode & 0o077) !== 0) await chmod(path, 0o600);
}

function filesIn(folder: string, name: string): PairFiles {
  return { cert: join(folder, `${name}.crt`), key: join(folder, `${name}.key`) };
}

async function readText(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
}
