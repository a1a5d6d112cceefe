// SPDX-License-Identifier: Apache-2.0
import { chmod, rm } from "node:fs/promises";
import { createServer, type RequestListener } from "node:http";
import { dirname } from "node:path";
import { BerthError, messageOf } from "../../allocator/base/errors.ts";
import type { Clock, Logger } from "../../allocator/base/ports.ts";
import { Connections } from "../../system/connections.ts";
import { makeFolder } from "../../system/folders.ts";
import { ONE_REQUEST } from "../../system/one-request.ts";
import { listenPrivately } from "../../system/private-socket.ts";
import { SlowClients } from "./slow-clients.ts";
import { DRAIN_MS, HTTP_TIMES } from "./tls-server.ts";

interface LocalServerOptions {
  readonly app: RequestListener;
  /** Of the unix socket. Its folder is this server's alone: it is made, and closed to others. */
  readonly path: string;
  readonly log: Logger;
  readonly clock: Clock;
}

export interface LocalServer {
  /** As TlsServer's. */
  close(): Promise<void>;
}

/**
 * Serves the app on a unix socket. Who may open the file may change everything, and that is its owner and root.
 * @throws BerthError CONFIG_INVALID when the path cannot be listened on
 */
export async function serveLocally({ app, path, log, clock }: LocalServerOptions): Promise<LocalServer> {
  const server = createServer({ ...HTTP_TIMES, ...ONE_REQUEST });
  const connections = new Connections(server);
  new SlowClients(server, clock);
  server.on("request", (request, response) => {
    connections.enter(response);
    app(request, response);
  });
  try {
    await makeFolder(dirname(path));
    await chmod(dirname(path), 0o700);
    // that of a stack that was killed; the folder has no other stack
    await rm(path, { force: true });
    await listenPrivately(server, path);
  } catch (cause) {
    server.close();
    throw new BerthError("CONFIG_INVALID", `cannot listen on ${path}: ${messageOf(cause)}`, { cause });
  }
  server.on("error", (error) => log.error("server failed", { error }));
  let closing: Promise<void> | undefined;
  return {
    close() {
      closing ??= connections.drain(clock, DRAIN_MS, log);
      return closing;
    },
  };
}
