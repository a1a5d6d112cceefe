// SPDX-License-Identifier: Apache-2.0
import { readFile } from "node:fs/promises";
import type { Clock, Logger } from "../../allocator/base/ports.ts";
import type { CertificatePair } from "../../system/pem/pair.ts";

interface CertificateWatchOptions {
  /** Where certificate and key lie, PEM. */
  readonly files: { readonly cert: string; readonly key: string };
  /** What was read from them before, and is served now. */
  readonly serving: CertificatePair;
  /** Called for each change; may refuse by throwing. */
  readonly reload: (certificate: CertificatePair) => void;
  /** Whether what did not change is to be reloaded all the same, because it can be used by now; absent: never. */
  readonly isDue?: (certificate: CertificatePair) => boolean;
  /** Whether a pair of these files is served by now; absent: it is from the beginning. */
  readonly isServed?: () => boolean;
  /** Told once that the files cannot be read, and, without an error, that they can again. */
  readonly unread?: (error?: unknown) => void;
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
  const { files, serving, reload, isDue = () => false, isServed = () => true, unread } = options;
  const { clock, log, everyMs } = options;
  return watch({
    read: () => readCertificateFiles(files),
    seen: serving,
    isSame: (found, seen) => found.cert === seen.cert && found.key === seen.key && !isDue(found),
    apply: reload,
    unreadable: (error) => {
      unread?.(error);
      if (isServed()) log.warn("certificate files cannot be read; the certificate stays", { files, error });
      else log.warn("certificate files cannot be read; waiting for them", { files, error });
    },
    readable: () => unread?.(),
    applied: () => log.info("certificate reloaded", { files }),
    refused: (error) => {
      if (isServed()) log.error("new certificate files are refused; the certificate stays", { files, error });
      else log.error("new certificate files are refused, too; waiting for others", { files, error });
    },
    ...{ clock, everyMs },
  });
}

interface AuthorityWatchOptions {
  /** Where the authorities of clients lie, PEM. */
  readonly file: string;
  readonly serving: string;
  readonly reload: (authority: string) => void;
  readonly clock: Clock;
  readonly log: Logger;
  readonly everyMs?: number;
}

/** The same for the authorities whose clients may send reviews. */
export function watchAuthorityFile(options: AuthorityWatchOptions): CertificateWatch {
  const { file, serving, reload, clock, log, everyMs } = options;
  return watch({
    read: () => readFile(file, "utf8"),
    seen: serving,
    isSame: (a, b) => a === b,
    apply: reload,
    unreadable: (error) =>
      log.warn("the authority of clients cannot be read; it stays as it was", { file, error }),
    applied: () => log.info("authority of clients reloaded", { file }),
    refused: (error) =>
      log.error("a new authority of clients is refused; it stays as it was", { file, error }),
    ...{ clock, everyMs },
  });
}

interface Watched<T> {
  readonly read: () => Promise<T>;
  readonly seen: T;
  readonly isSame: (a: T, b: T) => boolean;
  readonly apply: (found: T) => void;
  readonly unreadable: (error: unknown) => void;
  /** They can be again. */
  readonly readable?: () => void;
  readonly applied: () => void;
  readonly refused: (error: unknown) => void;
  readonly clock: Clock;
  readonly everyMs: number | undefined;
}

function watch<T>(watched: Watched<T>): CertificateWatch {
  const stop = new AbortController();
  const following = follow(watched, stop.signal);
  return {
    async close() {
      stop.abort();
      await following;
    },
  };
}

async function follow<T>(watched: Watched<T>, signal: AbortSignal): Promise<void> {
  let { seen } = watched;
  let readable = true;
  for (;;) {
    await watched.clock.sleep(watched.everyMs ?? EVERY_MS, signal);
    if (signal.aborted) return;
    try {
      const found = await watched.read();
      if (!readable) watched.readable?.();
      readable = true;
      if (watched.isSame(found, seen)) continue;
      seen = found;
      apply(watched, found);
    } catch (error) {
      if (readable) watched.unreadable(error);
      readable = false;
    }
  }
}

function apply<T>({ apply: change, applied, refused }: Watched<T>, found: T): void {
  try {
    change(found);
    applied();
  } catch (error) {
    refused(error);
  }
}
