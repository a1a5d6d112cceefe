// SPDX-License-Identifier: Apache-2.0
import { createServer } from "node:http";
import { BerthError, messageOf } from "../../allocator/base/errors.ts";
import { ONE_REQUEST } from "../../system/one-request.ts";

export interface Probes {
  readonly port: number;
  close(): Promise<void>;
}

/** /healthz and /readyz, for kubelet. Throws CONFIG_INVALID when host and port cannot be listened on. */
export async function serveProbes(at: {
  readonly host: string;
  /** 0: any that is free. */
  readonly port: number;
  readonly isReady: () => boolean;
}): Promise<Probes> {
  const server = createServer(ONE_REQUEST, (request, response) => {
    request.resume();
    const status = { "/healthz": 200, "/readyz": at.isReady() ? 200 : 503 }[request.url ?? ""] ?? 404;
    response.writeHead(status, { "Content-Type": "text/plain" }).end(status === 200 ? "ok\n" : "no\n");
  });
  await new Promise<void>((done, fail) => {
    server.once("error", fail);
    server.listen(at.port, at.host, done);
  }).catch((cause: unknown) => {
    const words = `cannot answer probes on ${at.host} port ${at.port}: ${messageOf(cause)}`;
    throw new BerthError("CONFIG_INVALID", words, { cause });
  });
  const address = server.address();
  return {
    port: typeof address === "object" && address !== null ? address.port : at.port,
    close: () =>
      new Promise((done) => {
        server.close(() => done());
        server.closeAllConnections();
      }),
  };
}
