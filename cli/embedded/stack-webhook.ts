// SPDX-License-Identifier: Apache-2.0
import { join } from "node:path";
import { BerthError } from "../../allocator/base/errors.ts";
import type { Clock, Logger } from "../../allocator/base/ports.ts";
import { errnoOf } from "../../system/path-error.ts";
import type { CleanupStack } from "../../system/shutdown.ts";
import {
  type EnsuredCertificates,
  ensureCertificates,
  FOLDER_CLIENT,
} from "../../webhook/certificates/folder.ts";
import type { ServerNames } from "../../webhook/certificates/issue.ts";
import type { createApp } from "../../webhook/http/app.ts";
import type { TrustedClients } from "../../webhook/http/client-check.ts";
import { serveLocally } from "../../webhook/http/local-server.ts";
import { serveTls } from "../../webhook/http/tls-server.ts";
import { reviewsSocketOf, type StackFile } from "../backend/stack-file.ts";

interface StackWebhookOptions {
  readonly dataDir: string;
  /** Any that is free if absent or 0. */
  readonly webhookPort?: number;
  readonly clock: Clock;
  readonly log: Logger;
  readonly app: ReturnType<typeof createApp>;
}

const HOST = "127.0.0.1";
const NAMES: ServerNames = { dnsNames: ["localhost"], addresses: [HOST, "::1"] };

/**
 * Where a stack takes reviews: on a socket, for berthctl, and on a port, for what speaks TLS. The socket goes by the rights of
 * its file. The port everybody on the host reaches, so it answers only who has the certificate whose key is beside the data.
 */
export async function startWebhook(
  options: StackWebhookOptions,
  closers: CleanupStack,
): Promise<Pick<StackFile, "webhook" | "ca" | "cert" | "key" | "reviews">> {
  const { clock, log, app, dataDir, webhookPort: port = 0 } = options;
  const folder = join(dataDir, "tls");
  const made = await ensureCertificates(folder, NAMES, clock);
  const server = await serveTls({
    ...{ app, host: HOST, port, log, clock },
    certificate: made.leaf,
    clientAuthority: made.authority.cert,
    trusted: trustedOf(folder),
  }).catch((error: unknown) => {
    throw isTaken(error) ? portTaken(port, error) : error;
  });
  closers.push(() => server.close());
  const reload = ({ authority, leaf }: EnsuredCertificates) => {
    server.reload(leaf);
    server.trustClients(authority.cert);
  };
  const renewing = renewInTime({ folder, names: NAMES, clock, log, made, reload });
  closers.push(() => renewing.close());
  const reviews = reviewsSocketOf(dataDir);
  const local = await serveLocally({ app, path: reviews, log, clock });
  closers.push(() => local.close());
  return {
    webhook: `https://${HOST}:${server.address.port}`,
    ca: join(folder, "ca.crt"),
    cert: join(folder, "client.crt"),
    key: join(folder, "client.key"),
    reviews,
  };
}

function isTaken(error: unknown): boolean {
  return error instanceof BerthError && errnoOf(error.cause) === "EADDRINUSE";
}

function portTaken(port: number, cause: unknown): BerthError {
  const words = `port ${port} of ${HOST} is in use by another process; choose another with --webhook-port, or leave it out for any that is free`;
  return new BerthError("CONFIG_INVALID", words, { cause });
}

/** Metrics name pools and namespaces, so reading asks for the certificate, too. */
function trustedOf(folder: string): TrustedClients {
  return {
    names: [FOLDER_CLIENT.name],
    organizations: [FOLDER_CLIENT.organization],
    readers: "trusted",
    advice: `use ${join(folder, "client.crt")} and client.key beside it, as the user that started the stack, or use berthctl`,
  };
}

const LOOK_EVERY_MS = 60_000;
const SAY_EVERY_MS = 86_400_000;

/**
 * A stack may run for longer than its certificates live. It looks much more often than that asks for: a clock that was wrong and is set
 * right, or a host that was suspended, makes them expired or not valid yet from one moment to the next.
 */
function renewInTime(of: {
  readonly folder: string;
  readonly names: ServerNames;
  /** That of the host, which goes by what others take for the time. */
  readonly clock: Clock;
  readonly log: Logger;
  readonly made: EnsuredCertificates;
  readonly reload: (made: EnsuredCertificates) => void;
}): { close(): Promise<void> } {
  const { clock, log } = of;
  const stop = new AbortController();
  let served = of.made;
  let saidAt: number | undefined; // monotonic
  const look = async () => {
    try {
      const made = await ensureCertificates(of.folder, of.names, clock);
      if (!isSame(made, served)) of.reload(made);
      served = made;
      saidAt = undefined;
    } catch (error) {
      if (saidAt !== undefined && clock.monotonic() - saidAt < SAY_EVERY_MS) return;
      log.error("certificate could not be renewed", { error });
      saidAt = clock.monotonic();
    }
  };
  const run = async () => {
    for (;;) {
      await clock.sleep(LOOK_EVERY_MS, stop.signal);
      if (stop.signal.aborted) return;
      await look();
    }
  };
  const running = run();
  return {
    async close() {
      stop.abort();
      await running;
    },
  };
}

function isSame(one: EnsuredCertificates, other: EnsuredCertificates): boolean {
  return one.authority.cert === other.authority.cert && one.leaf.cert === other.leaf.cert;
}
