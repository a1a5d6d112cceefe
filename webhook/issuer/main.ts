// SPDX-License-Identifier: Apache-2.0

import { BerthError, messageOf } from "../../allocator/base/errors.ts";
import { accessOf } from "../../kube/api/access.ts";
import { connect } from "../../kube/api/connection.ts";
import { EventRecorder } from "../../kube/controller/event-recorder.ts";
import { kubeEventSink } from "../../kube/controller/event-sink.ts";
import manifest from "../../package.json" with { type: "json" };
import { createClock } from "../../system/clock.ts";
import { endWithoutCleanup } from "../../system/exit.ts";
import { type ListeningPlace, placeWords } from "../../system/listening.ts";
import { createLogger, standardError } from "../../system/logger.ts";
import { listenForProbes, type ProbeServer } from "../../system/probe-server.ts";
import { createRandom } from "../../system/random.ts";
import { withCleanup } from "../../system/shutdown.ts";
import { untilEndingSignal } from "../../system/signals.ts";
import { termsOf } from "../certificates/terms.ts";
import { loadConfig } from "./config.ts";
import { startIssuer } from "./issuer.ts";

// No top-level await: the image has it as one CommonJS script (scripts/dist.sh), which has none.
endWithoutCleanup();
void run().catch((error: unknown) => {
  standardError().write(`berth-issuer: ${messageOf(error)}\n`);
  process.exitCode = 1;
});

/** Keeps certificates until the process is told to end. What is wrong with its surroundings at the start is thrown. */
async function run(): Promise<void> {
  const { api, logLevel, host, port, secrets, podName, ...config } = loadConfig();
  const clock = createClock();
  const random = createRandom();
  const log = createLogger({ stream: standardError(), level: logLevel, clock });
  const connection = connect(await accessOf(api), { clock, userAgent: `berth-issuer/${manifest.version}` });
  const ended = untilEndingSignal();
  try {
    const parts = await withCleanup(async (closers) => {
      const sink = kubeEventSink(connection, { controller: "berth.dev/issuer", instance: podName });
      const events = new EventRecorder({ sink, clock, random, log });
      const stop = new AbortController();
      const sending = events.run(stop.signal);
      closers.push(async () => {
        stop.abort();
        await sending;
      });
      const terms = termsOf(secrets.namespace, config);
      const issuer = startIssuer({ connection, clock, random, log, events, secrets, terms });
      closers.push(() => issuer.close());
      const probes = await serveProbes({ host, port, isReady: () => issuer.ready() });
      closers.push(() => probes.close());
      return { port: probes.port };
    });
    log.info("issuer runs", { port: parts.port, version: manifest.version });
    const signal = await ended;
    log.info("issuer ends", { signal });
    await parts.close();
  } finally {
    connection.close();
  }
  await log.flush();
}

/** /healthz and /readyz, for kubelet. Throws CONFIG_INVALID when host and port cannot be listened on. */
async function serveProbes(at: ListeningPlace & { readonly isReady: () => boolean }): Promise<ProbeServer> {
  return await listenForProbes({
    host: at.host,
    port: at.port,
    answer(request, response) {
      const status = { "/healthz": 200, "/readyz": at.isReady() ? 200 : 503 }[request.url ?? ""] ?? 404;
      response.writeHead(status, { "Content-Type": "text/plain" }).end(status === 200 ? "ok\n" : "no\n");
    },
  }).catch((cause: unknown) => {
    const words = `cannot answer probes on ${placeWords(at)}: ${messageOf(cause)}`;
    throw new BerthError("CONFIG_INVALID", words, { cause });
  });
}
