// SPDX-License-Identifier: Apache-2.0
import { BerthError, messageOf } from "../../allocator/base/errors.ts";
import { type ListeningPlace, placeWords } from "../../system/listening.ts";
import { listenForProbes, type ProbeServer } from "../../system/probe-server.ts";

/** /healthz and /readyz, for kubelet. Throws CONFIG_INVALID when host and port cannot be listened on. */
export async function serveProbes(
  at: ListeningPlace & { readonly isReady: () => boolean },
): Promise<ProbeServer> {
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
