// SPDX-License-Identifier: Apache-2.0
import { readFile } from "node:fs/promises";
import { isIPv6 } from "node:net";
import { join } from "node:path";
import type { ApiAccess } from "./credentials.ts";

/** How the API server is reached: by a kubeconfig, an absolute path, or as a pod of its cluster. */
export type ApiServer = { readonly kubeconfig: string } | { readonly host: string; readonly port: string };

/** Where the kubelet puts the token and the authority of a Pod's service account. */
const SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount";

/** Throws CONFIG_INVALID for a kubeconfig that cannot be read. */
export async function accessOf(api: ApiServer): Promise<ApiAccess> {
  if ("host" in api) return podAccess(api);
  const { KubeConfigFile } = await import("./kubeconfig-file.ts"); // what it needs, no pod loads
  return await KubeConfigFile.open(api.kubeconfig);
}

/**
 * As a Pod: what client-node does with `loadFromCluster`, without the 80 MB that it takes up, in each replica and on
 * each node. The token is exchanged by the kubelet and read again whenever it is asked for.
 */
export function podAccess(
  { host, port }: Extract<ApiServer, { host: string }>,
  folder = SERVICE_ACCOUNT,
): ApiAccess {
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
