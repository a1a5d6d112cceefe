// SPDX-License-Identifier: Apache-2.0
import { posix } from "node:path";
import { isRefusal, type Refusal, refuse } from "../../../../allocator/base/errors.ts";
import { type EtcdAccess, readEndpoints } from "../../../../allocator/store/etcd/access.ts";
import type { EtcdConfig } from "../../../cni/etcd-config.ts";

/** Which etcds the configuration of a network may name. */
export interface EtcdRules {
  /** The folder of the certificates: no other file is read, whoever wrote the configuration. Absolute. */
  readonly certificates: string;
  /** Only what shows a certificate of an authority in that folder: in a cluster others than its administrator write configurations. */
  readonly provenOnly: boolean;
}

const FIELDS = {
  certFile: "etcdCertFile",
  keyFile: "etcdKeyFile",
  caFile: "etcdTrustedCAFileFile",
} as const;

/** How the etcd of a configuration is reached. As with cni-ipam-etcd certificates count for https alone. Throws CONFIG_INVALID. */
export function accessOf(etcd: EtcdConfig, rules: EtcdRules): EtcdAccess | Refusal {
  const endpoints = readEndpoints(etcd.url);
  const open = endpoints.find((url) => !url.startsWith("https:"));
  if (open !== undefined && rules.provenOnly) {
    return unfit("etcdURL", `${open} is not https; in a cluster an etcd has to prove who it is`);
  }
  if (endpoints.every((url) => !url.startsWith("https:"))) return { endpoints };
  if (etcd.caFile === undefined && rules.provenOnly) {
    return unfit(
      FIELDS.caFile,
      `is missing; name the authority of etcd's certificate in ${rules.certificates}`,
    );
  }
  if ((etcd.certFile === undefined) !== (etcd.keyFile === undefined)) {
    return unfit(
      FIELDS.certFile,
      `a certificate and its key go together; name ${FIELDS.keyFile} too, or none`,
    );
  }
  const files: { certFile?: string; keyFile?: string; caFile?: string } = {};
  for (const key of ["certFile", "keyFile", "caFile"] as const) {
    const path = etcd[key];
    if (path === undefined) continue;
    const outside = refusalOf(FIELDS[key], path, rules);
    if (isRefusal(outside)) return outside;
    files[key] = path;
  }
  return { endpoints, ...files };
}

/** By its words alone: whether there is such a file must not be learned. What is linked from the folder its owner has linked. */
function refusalOf(field: string, path: string, { certificates }: EtcdRules): Refusal | undefined {
  if (path.startsWith(`${certificates}/`) && posix.normalize(path) === path && !path.endsWith("/"))
    return undefined;
  return unfit(
    field,
    `${JSON.stringify(path)} is not in ${certificates}, from where alone this agent reads them`,
  );
}

function unfit(field: string, words: string): Refusal {
  return refuse("REQUEST_INVALID", `ipam.etcdConfig.${field}: ${words}`, {
    field: `ipam.etcdConfig.${field}`,
  });
}
