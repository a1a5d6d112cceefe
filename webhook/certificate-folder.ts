// SPDX-License-Identifier: Apache-2.0
import type { X509Certificate } from "node:crypto";
import { chmod, mkdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { BerthError, messageOf } from "../allocator/errors.ts";
import type { Clock } from "../allocator/ports.ts";
import { writeDurably } from "../system/durable-file.ts";
import { type CertificatePair, needsRenewal, readPair } from "./certificate-pair.ts";
import { issueAuthority, issueLeaf, LEAF_LIFE_MS, type LeafNames } from "./certificates.ts";

export interface EnsuredCertificates {
  readonly authority: CertificatePair;
  readonly leaf: CertificatePair;
}

interface PairFiles {
  readonly cert: string;
  readonly key: string;
}

/**
 * The certificates of a stack that is its own authority: `ca.crt`, `ca.key`, `tls.crt` and `tls.key` in the folder,
 * made when they are missing. The authority is kept, so that who trusts it goes on doing so; the leaf is made again
 * when it is due, for other names, or of no use. The folder belongs to one process.
 *
 * @throws BerthError CERTIFICATE_INVALID for an authority that cannot be used, CONFIG_INVALID for the names and
 * for a folder that cannot be written
 */
export async function ensureCertificates(
  folder: string,
  names: LeafNames,
  clock: Pick<Clock, "now">,
): Promise<EnsuredCertificates> {
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const authority = await ensureAuthority(filesIn(folder, "ca"), clock);
    const leaf = await ensureLeaf(filesIn(folder, "tls"), authority, names, clock);
    return { authority, leaf };
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
  const found = { cert, key: (await readText(files.key)) ?? "" };
  const certificate = readAuthority(found, files);
  if (certificate.validToDate.getTime() < clock.now() + LEAF_LIFE_MS) {
    return await keep(files, await issueAuthority(clock));
  }
  await closeToOthers(files.key);
  return found;
}

function readAuthority(pair: CertificatePair, files: PairFiles): X509Certificate {
  try {
    return readPair(pair);
  } catch (error) {
    const remedy = `put back what belongs together, or delete ${files.cert} to make a new authority`;
    const message = `${files.cert} and ${files.key} cannot be used: ${messageOf(error)}; ${remedy}`;
    throw new BerthError("CERTIFICATE_INVALID", message, { cause: error });
  }
}

async function ensureLeaf(
  files: PairFiles,
  authority: CertificatePair,
  names: LeafNames,
  clock: Pick<Clock, "now">,
): Promise<CertificatePair> {
  const found = { cert: (await readText(files.cert)) ?? "", key: (await readText(files.key)) ?? "" };
  if (!serves(found, authority, names, clock.now())) {
    return await keep(files, await issueLeaf(authority, names, clock));
  }
  await closeToOthers(files.key);
  return found;
}

/** Whether the leaf is whole, of this authority, for these names, and not due. Also false between two writes. */
function serves(leaf: CertificatePair, authority: CertificatePair, names: LeafNames, now: number): boolean {
  try {
    const certificate = readPair(leaf);
    return (
      certificate.verify(readPair(authority).publicKey) &&
      names.dnsNames.every((name) => certificate.checkHost(name) !== undefined) &&
      names.addresses.every((address) => certificate.checkIP(address) !== undefined) &&
      certificate.validFromDate.getTime() <= now &&
      !needsRenewal(leaf.cert, now)
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
