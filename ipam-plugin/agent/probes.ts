// SPDX-License-Identifier: Apache-2.0
import { createServer, type ServerResponse } from "node:http";
import { BerthError, messageOf } from "../../allocator/base/errors.ts";
import type { Logger } from "../../allocator/base/ports.ts";
import type { MetricsRegistry } from "../../system/metrics.ts";
import { ONE_REQUEST } from "../../system/one-request.ts";

export interface ProbesOptions {
  readonly host: string;
  /** 0: any that is free. */
  readonly port: number;
  readonly isReady: () => boolean;
  readonly metrics: Pick<MetricsRegistry, "expose">;
  readonly log: Logger;
}

export interface Probes {
  readonly port: number;
  /** Repeatable. */
  close(): Promise<void>;
}

/**
 * /healthz, /readyz and /metrics of the agent, for the kubelet and Prometheus. Throws CONFIG_INVALID when host and port
 * cannot be listened on.
 */
export async function serveProbes(options: ProbesOptions): Promise<Probes> {
  const { host, port, log } = options;
  const server = createServer(ONE_REQUEST, (request, response) => {
    request.resume();
    answer(request.url ?? "", response, options).catch((error: unknown) => {
      log.error("request failed", { path: request.url, error });
      response.destroy();
    });
  });
  await new Promise<void>((done, fail) => {
    server.once("error", fail);
    server.listen(port, host, done);
  }).catch((cause: unknown) => {
    const words = `cannot serve metrics on ${host} port ${port}: ${messageOf(cause)}`;
    throw new BerthError("CONFIG_INVALID", words, { cause });
  });
  server.on("error", (error) => log.error("server failed", { error }));
  const address = server.address();
  return {
    port: typeof address === "object" && address !== null ? address.port : port,
    close: () =>
      new Promise((done) => {
        server.close(() => done());
        server.closeAllConnections();
      }),
  };
}

async function answer(path: string, response: ServerResponse, options: ProbesOptions): Promise<void> {
  const say = (status: number, type: string, body: string) =>
    response.writeHead(status, { "Content-Type": type }).end(body);
  if (path === "/healthz") {
    say(200, "text/plain", "ok\n");
  } else if (path === "/readyz") {
    const ready = options.isReady();
    say(ready ? 200 : 503, "text/plain", ready ? "ok\n" : "claims are not loaded\n");
  } else if (path === "/metrics") {
    const { contentType, body } = await options.metrics.expose();
    say(200, contentType, body);
  } else {
    say(404, "text/plain", "not found\n");
  }
}
