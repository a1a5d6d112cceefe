// SPDX-License-Identifier: Apache-2.0
// The least that a webhook of this runtime can be: TLS, Express, a body that is parsed, and yes. A process of its own;
// its argument is the folder for its certificates. Prints its port.
import express from "express";
import { noopLogger } from "../../allocator/base/ports.ts";
import { createClock } from "../../system/clock.ts";
import { ensureCertificates } from "../../webhook/certificates/folder.ts";
import { serveTls } from "../../webhook/http/tls-server.ts";

const folder = process.argv[2] ?? "";
const clock = createClock();
const { leaf } = await ensureCertificates(
  folder,
  { dnsNames: ["localhost"], addresses: ["127.0.0.1"] },
  clock,
);
const app = express();
app.disable("x-powered-by");
app.disable("etag");
app.post("/mutate/pods", express.json({ limit: "8mb" }), (request, response) => {
  const { uid } = request.body.request;
  response.json({
    apiVersion: "admission.k8s.io/v1",
    kind: "AdmissionReview",
    response: { uid, allowed: true },
  });
});
const server = await serveTls({ app, host: "127.0.0.1", port: 0, certificate: leaf, log: noopLogger, clock });
process.stdout.write(`${server.address.port}\n`);
