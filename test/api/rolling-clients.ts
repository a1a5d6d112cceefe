// SPDX-License-Identifier: Apache-2.0
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createClock } from "../../system/clock.ts";
import type { CertificatePair } from "../../system/pem/pair.ts";
import { type ClientName, issueClient as issue, issueAuthority } from "../../webhook/certificates/issue.ts";

const API_SERVER: ClientName = { name: "kube-apiserver", organization: "berth.dev:reviewers" };

/** An authority of clients, and a client of it, as an administrator makes them for an API server. */
export async function issueClient(who: ClientName = API_SERVER): Promise<{
  readonly authority: string;
  readonly client: CertificatePair;
}> {
  const clock = createClock();
  const authority = await issueAuthority(clock);
  return { authority: authority.cert, client: await issue(authority, who, clock) };
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
