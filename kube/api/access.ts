// SPDX-License-Identifier: Apache-2.0
import { readFile } from "node:fs/promises";
import { isIPv6 } from "node:net";
import { join } from "node:path";
// biome-ignore lint/style/noRestrictedImports: only files are read with it; calls go through kube/api/connection.ts
import type { KubeConfig } from "@kubernetes/client-node";
import { BerthError, messageOf } from "../../allocator/base/errors.ts";
import type { ApiAccess } from "./credentials.ts";

/** How the API server is reached: by a kubeconfig, an absolute path, or as a pod of its cluster. */
export type ApiServer = { readonly kubeconfig: string } | { readonly host: string; readonly port: string };

/** Where the kubelet puts the token and the authority of a Pod's service account. */
const SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount";

/** Throws CONFIG_INVALID for a kubeconfig that cannot be read. */
export async function accessOf(api: ApiServer): Promise<ApiAccess> {
  return "host" in api ? podAccess(api) : await readKubeConfig(api.kubeconfig);
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

/**
 * The kubeconfig of that file, which BERTH_KUBECONFIG names. The package that reads it takes up 80 MB, and is loaded by
 * those who ask. Throws CONFIG_INVALID.
 */
async function readKubeConfig(file: string): Promise<KubeConfig> {
  // biome-ignore lint/style/noRestrictedImports: only files are read with it; calls go through kube/api/connection.ts
  const { KubeConfig } = await import("@kubernetes/client-node");
  const config = new KubeConfig();
  try {
    config.loadFromFile(file);
    return config;
  } catch (cause) {
    const [why = ""] = messageOf(cause).split("\n");
    throw new BerthError("CONFIG_INVALID", `BERTH_KUBECONFIG ${file} cannot be read: ${why}`, { cause });
  }
}
