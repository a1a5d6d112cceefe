// SPDX-License-Identifier: Apache-2.0
import type { IncomingHttpHeaders, OutgoingHttpHeaders } from "node:http";
import { type Agent, request as httpsRequest } from "node:https";
import type { TLSSocket } from "node:tls";

export const UID = "705ab4f5-6393-11e8-b7cc-42010a800002";

/** A review as an API server writes it, of the creation of a pod. For tests. */
export function podReview(changes: Readonly<Record<string, unknown>> = {}) {
  return {
    kind: "AdmissionReview",
    apiVersion: "admission.k8s.io/v1",
    request: {
      uid: UID,
      kind: { group: "", version: "v1", kind: "Pod" },
      resource: { group: "", version: "v1", resource: "pods" },
      requestKind: { group: "", version: "v1", kind: "Pod" },
      requestResource: { group: "", version: "v1", resource: "pods" },
      name: "mysql-0",
      namespace: "shop",
      operation: "CREATE",
      userInfo: {
        username: "system:serviceaccount:kube-system:statefulset-controller",
        groups: ["system:masters"],
      },
      object: { metadata: { name: "mysql-0", namespace: "shop" }, spec: { containers: [] } },
      oldObject: null,
      dryRun: false,
      options: null,
      ...changes,
    },
  };
}

export interface Call {
  readonly port: number;
  readonly ca: string;
  readonly path: string;
  readonly method?: string;
  readonly headers?: OutgoingHttpHeaders;
  /** Parts of an iterable are sent one by one. */
  readonly body?: string | Buffer | AsyncIterable<string | Buffer>;
  readonly agent?: Agent | false;
  readonly signal?: AbortSignal;
  /** Of the client. */
  readonly certificate?: { readonly cert: string; readonly key: string };
}

export interface Reply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  /** Serial number of the certificate that the server showed. */
  readonly serial: string;
}

/** One request over TLS, whose server must be 127.0.0.1 and trusted by `ca`. */
export function call(options: Call): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const request = httpsRequest({
      host: "127.0.0.1",
      port: options.port,
      ca: options.ca,
      path: options.path,
      method: options.method ?? "POST",
      headers: { "Content-Type": "application/json", ...options.headers },
      agent: options.agent ?? false,
      ...options.certificate,
      ...(options.signal === undefined ? {} : { signal: options.signal }),
    });
    request.once("error", reject);
    request.once("response", (response) => {
      const serial = (response.socket as TLSSocket).getPeerCertificate().serialNumber;
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.once("error", reject);
      response.once("end", () => {
        const text = Buffer.concat(chunks).toString();
        resolve({ status: response.statusCode ?? 0, headers: response.headers, text, serial });
      });
    });
    send(request, options.body ?? "").catch(reject);
  });
}

async function send(request: NodeJS.WritableStream, body: NonNullable<Call["body"]>): Promise<void> {
  if (typeof body === "string" || Buffer.isBuffer(body)) {
    request.end(body);
    return;
  }
  for await (const part of body) request.write(part);
  request.end();
}
