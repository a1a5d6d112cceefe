// SPDX-License-Identifier: Apache-2.0
import { readFile } from "node:fs/promises";
import type { Clock, Logger } from "../allocator/ports.ts";
import type { CertificatePair } from "./certificate-pair.ts";

export interface CertificateWatchOptions {
  /** Where certificate and key lie, PEM. */
  readonly files: { readonly cert: string; readonly key: string };
  /** What was read from them before, and is served now. */
  readonly serving: CertificatePair;
  /** Called for each change; may refuse by throwing. */
  readonly reload: (certificate: CertificatePair) => void;
  readonly clock: Clock;
  readonly log: Logger;
  readonly everyMs?: number;
}

export interface CertificateWatch {
  close(): Promise<void>;
}

/** kubelet itself brings a changed Secret to the pod only within about a minute. */
const EVERY_MS = 5_000;

/** @throws the errors of node:fs */
export async function readCertificateFiles(
  files: CertificateWatchOptions["files"],
): Promise<CertificatePair> {
  const [cert, key] = await Promise.all([readFile(files.cert, "utf8"), readFile(files.key, "utf8")]);
  return { cert, key };
}

/**
 * Reloads when the files change. It compares their text every few seconds: kubelet changes a mounted Secret by
 * swapping a symbolic link further up, which `fs.watch` on the file does not see. What is refused, such as a new
 * certificate beside the old key while the two are being written, is tried again once the files change again.
 */
export function watchCertificateFiles(options: CertificateWatchOptions): CertificateWatch {
  const stop = new AbortController();
  const following = follow(options, stop.signal);
  return {
    async close() {
      stop.abort();
      await following;
    },
  };
}

async function follow(options: CertificateWatchOptions, signal: AbortSignal): Promise<void> {
  const { files, clock, log } = options;
  let seen = options.serving;
  let readable = true;
  for (;;) {
    await clock.sleep(options.everyMs ?? EVERY_MS, signal);
    if (signal.aborted) return;
    try {
      const found = await readCertificateFiles(files);
      readable = true;
      if (found.cert === seen.cert && found.key === seen.key) continue;
      seen = found;
      apply(options, found);
    } catch (error) {
      if (readable) log.warn("certificate files cannot be read; the certificate stays", { ...files, error });
      readable = false;
    }
  }
}

function apply({ reload, files, log }: CertificateWatchOptions, found: CertificatePair): void {
  try {
    reload(found);
    log.info("certificate reloaded", files);
  } catch (error) {
    log.error("new certificate files are refused; the certificate stays", { ...files, error });
  }
}
