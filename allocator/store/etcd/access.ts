// SPDX-License-Identifier: Apache-2.0
import { readFileSync, statSync } from "node:fs";
import { readCertificates, readWholePair } from "../../../system/pem/pair.ts";
import { BerthError, messageOf } from "../../base/errors.ts";
import type { TlsMaterial } from "./grpc-connection.ts";

/** How the words begin for certificates on disk that cannot be read or do not fit together. */
export const UNUSABLE_CERTIFICATES = "the certificates for etcd cannot be used";

/** How an etcd cluster is reached. */
export interface EtcdAccess {
  /** http://host:port or https://host:port, at least one. Certificates count for https alone. */
  readonly endpoints: readonly string[];
  /** Paths of PEM files, which may change at any time. */
  readonly caFile?: string;
  readonly certFile?: string;
  readonly keyFile?: string;
  /** For an etcd whose users have passwords. */
  readonly user?: string;
  /** The file of the password; a line break at its end is not of it. */
  readonly passwordFile?: string;
}

/** Reads `etcdURL`: URLs with commas between them. Throws CONFIG_INVALID naming the one that is none. */
export function readEndpoints(text: string): readonly string[] {
  const given = text.split(",").map((part) => part.trim());
  const endpoints = given.filter((part) => part !== "").map(endpointOf);
  if (endpoints.length > 0) return [...new Set(endpoints)];
  throw new BerthError("CONFIG_INVALID", "no URL of etcd is given; say for example https://10.0.0.1:2379");
}

function endpointOf(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isEndpoint = url !== undefined && /^https?:$/.test(url.protocol) && url.hostname !== "";
  const isBare = isEndpoint && url.username === "" && /^\/?$/.test(url.pathname) && url.search === "";
  if (isBare) return url.origin;
  const words = `${JSON.stringify(text)} is no URL of etcd, such as https://10.0.0.1:2379`;
  throw new BerthError("CONFIG_INVALID", words);
}

/** Whether two accesses are the same, in whatever order their URLs are. */
export function accessKey({ endpoints, ...files }: EtcdAccess): string {
  return JSON.stringify([endpoints.toSorted(), Object.entries(files).toSorted()]);
}

/** The certificates of an access, as they are on disk now. */
export class CertificateFiles {
  readonly #files: { readonly [K in keyof TlsMaterial]?: string };
  #seen = "";
  #refused = "";
  #usable: TlsMaterial | undefined; // what was read last

  constructor({ caFile, certFile, keyFile }: EtcdAccess) {
    this.#files = {
      ...(caFile === undefined ? {} : { ca: caFile }),
      ...(certFile === undefined ? {} : { cert: certFile }),
      ...(keyFile === undefined ? {} : { key: keyFile }),
    };
    if ((certFile === undefined) !== (keyFile === undefined)) {
      throw new BerthError("CONFIG_INVALID", "a client certificate of etcd and its key go together");
    }
  }

  /** Throws CERTIFICATE_INVALID, which says which of the files cannot be used, why, and what to do. */
  read(): TlsMaterial {
    try {
      this.#seen = this.#stamp();
      this.#usable = this.#readAll();
      return this.#usable;
    } catch (error) {
      const words = `${UNUSABLE_CERTIFICATES}: ${messageOf(error)}; fix that, or name other files`;
      throw new BerthError("CERTIFICATE_INVALID", words, { cause: error });
    }
  }

  /** For a connection: as `read`, or what was read before where the files cannot be used now, as while somebody writes them. */
  current(): TlsMaterial {
    const [before, seen] = [this.#usable, this.#seen];
    try {
      return this.read();
    } catch (error) {
      if (before === undefined) throw error;
      return before;
    } finally {
      if (before !== undefined) this.#seen = seen; // other connections stand with what was read then
    }
  }

  #readAll(): TlsMaterial {
    const { ca: caFile, cert: certFile, key: keyFile } = this.#files;
    // each by itself, as it was read: OpenSSL passes over those of a text that do not begin on a line of their own, and says later that
    // it knows nobody
    const ca = caFile === undefined ? {} : { ca: readCertificates(textOf(caFile), caFile).map(String) };
    if (certFile === undefined || keyFile === undefined) return ca;
    const pair = { cert: textOf(certFile), key: textOf(keyFile) };
    readWholePair(pair, { cert: certFile, key: keyFile });
    return { ...ca, ...pair };
  }

  /** Whether other files lie there than were read last, and can be used. `refused` is told once of those that cannot: they may be half written. */
  hasChanged(refused: (error: unknown) => void): boolean {
    const [before, now] = [this.#seen, this.#stamp()];
    if (now === before) return false;
    try {
      this.read();
      return true;
    } catch (error) {
      this.#seen = before; // looked at again
      if (before !== "" && this.#refused !== now) refused(error);
      this.#refused = now;
      return false;
    }
  }

  /** Of all files: a rename in a mounted folder, as Kubernetes does it, gives others too. */
  #stamp(): string {
    return Object.values(this.#files).map(stampOf).join(" ");
  }
}

function textOf(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    const why = messageOf(error);
    throw new Error(why.includes(file) ? why : `${file} cannot be read: ${why}`, { cause: error });
  }
}

function stampOf(file: string): string {
  const found = statSync(file, { throwIfNoEntry: false });
  return found === undefined ? "none" : `${found.ino}:${found.mtimeMs}:${found.size}`;
}

/** The password as it is on disk now. Throws CONFIG_INVALID naming the file. */
export function readPassword(file: string): string {
  try {
    return readFileSync(file, "utf8").replace(/\r?\n$/, "");
  } catch (error) {
    const words = `the password for etcd cannot be read (${messageOf(error)})`;
    throw new BerthError("CONFIG_INVALID", words, { cause: error });
  }
}
