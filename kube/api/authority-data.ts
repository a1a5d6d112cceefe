// SPDX-License-Identifier: Apache-2.0

/** What a kubeconfig says of a cluster, as client-node reads it. */
interface SaidCluster {
  readonly name: string;
  /** Whatever YAML has there. */
  readonly caData?: unknown;
  readonly caFile?: string;
  readonly skipTLSVerify?: boolean;
}

/**
 * Why the cluster's authority is none, in words: its field is there, and empty or no text, as of a kubeconfig that was cut off or whose authority could not
 * be read when it was written. Without any the host's would count, of which none was meant.
 */
export function emptyAuthority(cluster: SaidCluster | null): string | undefined {
  if (cluster === null || cluster.caFile || cluster.skipTLSVerify === true) return undefined;
  const { name, caData } = cluster;
  if (caData === undefined || (typeof caData === "string" && caData.trim() !== "")) return undefined;
  const what = caData === null || typeof caData === "string" ? "empty" : "no text";
  return `certificate-authority-data of cluster ${JSON.stringify(name)} is ${what}; put the authority's certificate there (base64 of its PEM), or leave the field out if one of this host's authorities signed the server's`;
}
