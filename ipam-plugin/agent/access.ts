// SPDX-License-Identifier: Apache-2.0
import { readFile } from "node:fs/promises";
import { isIPv6 } from "node:net";
import { join } from "node:path";
import type { Access } from "../../kube/credentials.ts";
import { readKubeConfig } from "../../kube/kube-config.ts";
import type { AgentConfig } from "./config.ts";

/** Where the kubelet puts the token and the authority of a Pod's service account. */
const SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount";

/** Throws CONFIG_INVALID for a kubeconfig that cannot be read. */
export async function accessOf(api: AgentConfig["api"]): Promise<Access> {
  return "host" in api ? podAccess(api) : await readKubeConfig(api.kubeconfig);
}

/**
 * As a Pod: what client-node does with `loadFromCluster`, without the 80 MB that it takes up, on each node. The token is
 * exchanged by the kubelet and read again whenever it is asked for.
 */
export function podAccess(
  { host, port }: { readonly host: string; readonly port: string },
  folder = SERVICE_ACCOUNT,
): Access {
  const server = `https://${isIPv6(host) ? `[${host}]` : host}:${port}`;
  return {
    getCurrentCluster: () => ({ server }),
    async applyToHTTPSOptions(options) {
      options.ca = await readFile(join(folder, "ca.crt"));
      const token = (await readFile(join(folder, "token"), "utf8")).trim();
      options.headers = { Authorization: `Bearer ${token}` };
    },
  };
}
