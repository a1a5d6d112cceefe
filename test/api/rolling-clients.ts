// SPDX-License-Identifier: Apache-2.0
import "../../webhook/reflect-metadata.ts";
import { createPrivateKey } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  PemConverter,
  X509Certificate,
  X509CertificateGenerator,
} from "@peculiar/x509";
import { createClock } from "../../system/clock.ts";
import type { CertificatePair } from "../../webhook/certificate-pair.ts";
import { issueAuthority } from "../../webhook/certificates.ts";

const P256 = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };

/** An authority of clients, and a client of it, as an administrator makes them for an API server. */
export async function issueClient(): Promise<{
  readonly authority: string;
  readonly client: CertificatePair;
}> {
  const authority = await issueAuthority(createClock());
  const pkcs8 = createPrivateKey(authority.key).export({ type: "pkcs8", format: "der" });
  const signingKey = await crypto.subtle.importKey("pkcs8", pkcs8, P256, false, ["sign"]);
  const keys = await crypto.subtle.generateKey(P256, true, ["sign", "verify"]);
  const certificate = await X509CertificateGenerator.create({
    subject: "CN=kube-apiserver",
    issuer: new X509Certificate(authority.cert).subjectName,
    notAfter: new Date(Date.now() + 3_600_000),
    signingAlgorithm: P256,
    publicKey: keys.publicKey,
    signingKey,
    extensions: [new ExtendedKeyUsageExtension([ExtendedKeyUsage.clientAuth])],
  });
  const key = PemConverter.encode(await crypto.subtle.exportKey("pkcs8", keys.privateKey), "PRIVATE KEY");
  return { authority: authority.cert, client: { cert: certificate.toString("pem"), key } };
}

/** Files by which an API server shows the certificate to every webhook; gives its flag. */
export function clientFlag(folder: string, client: CertificatePair): string {
  mkdirSync(folder, { recursive: true });
  const write = (name: string, text: string) => {
    writeFileSync(join(folder, name), text, { mode: 0o600 });
    return join(folder, name);
  };
  const user = {
    "client-certificate": write("client.crt", client.cert),
    "client-key": write("client.key", client.key),
  };
  const kubeconfig = { apiVersion: "v1", kind: "Config", users: [{ name: "*", user }] };
  const apiVersion = "apiserver.config.k8s.io/v1";
  const kubeConfigFile = write("webhooks.kubeconfig", JSON.stringify(kubeconfig));
  const configuration = { apiVersion, kind: "WebhookAdmissionConfiguration", kubeConfigFile };
  const plugins = ["MutatingAdmissionWebhook", "ValidatingAdmissionWebhook"].map((name) => ({
    name,
    configuration,
  }));
  const file = write(
    "admission.json",
    JSON.stringify({ apiVersion, kind: "AdmissionConfiguration", plugins }),
  );
  return `--admission-control-config-file=${file}`;
}
