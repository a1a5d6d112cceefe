// SPDX-License-Identifier: Apache-2.0
// biome-ignore lint/style/noRestrictedImports: only files are read with it; calls go through kube/api/connection.ts
import type { KubeConfig } from "@kubernetes/client-node";
import { BerthError, messageOf } from "../../allocator/base/errors.ts";

/**
 * The kubeconfig of that file, which BERTH_KUBECONFIG names. The package that reads it takes up 80 MB, and is loaded by
 * those who ask. Throws CONFIG_INVALID.
 */
export async function readKubeConfig(file: string): Promise<KubeConfig> {
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
