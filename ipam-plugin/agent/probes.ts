// SPDX-License-Identifier: Apache-2.0
import type { ServerResponse } from "node:http";
import { BerthError, messageOf } from "../../allocator/base/errors.ts";
import type { Logger } from "../../allocator/base/ports.ts";
import type { MetricsRegistry } from "../../system/metrics.ts";
import { listenForProbes, type ProbeServer } from "../../system/probe-server.ts";
import { singleFlight } from "../../system/single-flight.ts";

interface ProbesOptions {
  readonly host: string;
  /** 0: any that is free. */
  readonly port: number;
  /** Why it is not ready, for people; undefined: it is. */
  readonly notReady: () => string | undefined;
  readonly metrics: Pick<MetricsRegistry, "expose">;
  readonly log: Logger;
}

/**
 * /healthz, /readyz and /metrics of the agent, for the kubelet and Prometheus. Throws CONFIG_INVALID when host and port
 * cannot be listened on.
 */
export async function serveProbes(options: ProbesOptions): Promise<ProbeServer> {
  const { host, port, notReady, log } = options;
  const expose = singleFlight(() => options.metrics.expose());
  return await listenForProbes({
    host,
    port,
    answer(request, response) {
      answer(request.url ?? "", response, { notReady, expose }).catch((error: unknown) => {
        log.error("request failed", { path: request.url, error });
        response.destroy();
      });
    },
    onError: (error) => log.error("server failed", { error }),
  }).catch((cause: unknown) => {
    const words = `cannot serve metrics on ${host} port ${port}: ${messageOf(cause)}`;
    throw new BerthError("CONFIG_INVALID", words, { cause });
  });
}

type Answers = Pick<ProbesOptions, "notReady"> & Pick<MetricsRegistry, "expose">;

async function answer(path: string, response: ServerResponse, { notReady, expose }: Answers): Promise<void> {
  const say = (status: number, type: string, body: string) =>
    response.writeHead(status, { "Content-Type": type }).end(body);
  if (path === "/healthz") {
    say(200, "text/plain", "ok\n");
  } else if (path === "/readyz") {
    const why = notReady();
    say(why === undefined ? 200 : 503, "text/plain", `${why ?? "ok"}\n`);
  } else if (path === "/metrics") {
    const { contentType, body } = await expose();
    say(200, contentType, body);
  } else {
    say(404, "text/plain", "not found\n");
  }
}
