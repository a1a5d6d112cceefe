// SPDX-License-Identifier: Apache-2.0
import { createServer, type RequestListener } from "node:http";
import { type Bound, Connections } from "./connections.ts";
import { type ListeningPlace, listenAt } from "./listening.ts";
import { ONE_BODILESS_REQUEST } from "./one-request.ts";

/** A kubelet and a Prometheus have one each; one address may have all that nobody else comes for. */
export const PROBE_CONNECTIONS: Bound = { inAll: 64, perPeer: 64 };
const TIMEOUT_MS = 10_000;
const PROBE_TIMES = {
  headersTimeout: TIMEOUT_MS,
  requestTimeout: TIMEOUT_MS,
  keepAliveTimeout: 5_000,
  connectionsCheckingInterval: 1_000,
} as const;

export interface ProbeServer {
  readonly port: number;
  /** Repeatable. */
  close(): Promise<void>;
}

interface ProbeServerOptions extends ListeningPlace {
  readonly answer: RequestListener;
  readonly onError?: (error: Error) => void;
}

/**
 * Serves kubelet's probes and scrapes, bounded as what strangers reach has to be: few connections, the idle ones of which go for one that
 * comes, and little time. Rejects with the error of the system when host and port cannot be listened on.
 */
export async function listenForProbes(options: ProbeServerOptions): Promise<ProbeServer> {
  const { port, answer, onError = () => {} } = options;
  const server = createServer({ ...ONE_BODILESS_REQUEST, ...PROBE_TIMES });
  // neither does an answer that nobody reads go on for longer
  server.timeout = TIMEOUT_MS;
  const connections = new Connections(server, PROBE_CONNECTIONS);
  server.on("request", (request, response) => {
    connections.enter(response);
    request.resume();
    answer(request, response);
  });
  await listenAt(server, options);
  server.on("error", onError);
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
