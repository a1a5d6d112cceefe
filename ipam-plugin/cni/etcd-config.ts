// SPDX-License-Identifier: Apache-2.0
import { nearestWord } from "../../allocator/base/nearest-word.ts";
import { type CniError, cniError } from "./errors.ts";
import type { Fields } from "./json-fields.ts";

/** `ipam.etcdConfig`, in the words of cni-ipam-etcd: the network's addresses are kept in this etcd, for many hosts. */
export interface EtcdConfig {
  /** URLs with commas between them. */
  readonly url: string;
  /** Paths of PEM files, as they are written. Which of them are read is the agent's to decide. */
  readonly certFile?: string;
  readonly keyFile?: string;
  readonly caFile?: string;
}

const KEYS = ["etcdURL", "etcdCertFile", "etcdKeyFile", "etcdTrustedCAFileFile"];

/** Undefined: the network is not kept in etcd. What has the wrong type is among the problems of `ipam`. */
export function readEtcdConfig(ipam: Fields): EtcdConfig | CniError | undefined {
  const section = ipam.section("etcdConfig");
  if (section === undefined) return undefined;
  const known = new Set(KEYS.map((key) => key.toLowerCase()));
  for (const key of section.keys) {
    const near = known.has(key.toLowerCase()) ? undefined : nearestWord(key, KEYS);
    if (near === undefined) continue;
    return cniError("INVALID_CONFIG", `${section.nameOf(key)} is no field of berth's; did you mean ${near}?`);
  }
  const [url = "", certFile, keyFile, caFile] = KEYS.map((key) => section.text(key) || undefined);
  if (section.problem !== undefined) return section.problem;
  const files = { ...(certFile && { certFile }), ...(keyFile && { keyFile }), ...(caFile && { caFile }) };
  if (url !== "") return { url, ...files };
  const words = "ipam.etcdConfig names no etcdURL; write for example https://10.0.0.1:2379";
  return cniError("INVALID_CONFIG", words);
}
