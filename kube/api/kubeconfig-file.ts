// SPDX-License-Identifier: Apache-2.0
import { readFile } from "node:fs/promises";
import type { RequestOptions } from "node:https";
import { dirname } from "node:path";
import { createSecureContext } from "node:tls";
// biome-ignore lint/style/noRestrictedImports: only files are read with it; calls go through kube/api/connection.ts
import { KubeConfig } from "@kubernetes/client-node";
import { BerthError, messageOf } from "../../allocator/base/errors.ts";
import { certificatesIn, readCertificate } from "../../system/pem/pair.ts";
import { emptyAuthority } from "./authority-data.ts";
import type { ApiAccess } from "./credentials.ts";
import { endsPlugins } from "./exec-plugins.ts";
import { readsTokenFiles, withTokenFiles } from "./token-files.ts";

/**
 * The package that reads kubeconfigs takes up 80 MB: only those load this who have one.
 *
 * What a kubeconfig says now: certificates and tokens in it end, and whoever renews them writes the file anew. One that cannot be read or used, or
 * is half written, changes nothing. The server stays that of the first reading, and no other server's credentials are sent to it.
 */
export class KubeConfigFile implements ApiAccess {
  readonly #file: string;
  #text: string;
  #config: KubeConfig;

  private constructor(file: string, text: string) {
    this.#file = file;
    this.#text = text;
    this.#config = read({ text, file });
    const empty = emptyAuthority(this.#config.getCurrentCluster());
    if (empty !== undefined) throw new BerthError("CONFIG_INVALID", empty);
  }

  /** The kubeconfig of that file, which BERTH_KUBECONFIG names. Throws CONFIG_INVALID. */
  static async open(file: string): Promise<KubeConfigFile> {
    try {
      return new KubeConfigFile(file, await readFile(file, "utf8"));
    } catch (cause) {
      const [why = ""] = messageOf(cause).split("\n");
      const verb = cause instanceof BerthError ? "cannot be used" : "cannot be read";
      throw new BerthError("CONFIG_INVALID", `BERTH_KUBECONFIG ${file} ${verb}: ${why}`, { cause });
    }
  }

  getCurrentCluster(): ReturnType<ApiAccess["getCurrentCluster"]> {
    return this.#config.getCurrentCluster();
  }

  async applyToHTTPSOptions(options: Parameters<ApiAccess["applyToHTTPSOptions"]>[0]): Promise<void> {
    await this.#follow(options.signal);
    // client-node keeps one agent for a proxy, with the certificates that it was made with, and has no other way to let it go
    this.#config["agentCache"].clear();
    await this.#config.applyToHTTPSOptions(options);
  }

  async #follow(signal: RequestOptions["signal"]): Promise<void> {
    try {
      const text = await readFile(this.#file, "utf8");
      if (text === this.#text) return;
      const next = read({ text, file: this.#file });
      if (!(isForServerOf(this.#config, next) && (await isUsable(next, signal)))) return;
      this.#config = next;
      this.#text = text;
    } catch {
      // what was read before stays in force; it is read again soon
    }
  }
}

/** The current context may be another cluster's by now, as `kubectl config use-context` writes it: then that of before counts. */
function isForServerOf(before: KubeConfig, next: KubeConfig): boolean {
  const server = before.getCurrentCluster()?.server;
  return [next.getCurrentContext(), before.getCurrentContext()].some((context) => {
    next.setCurrentContext(context);
    return next.getCurrentCluster()?.server === server && next.getCurrentUser() !== null;
  });
}

/** Of a file that was cut off, a user may be left without credentials, or with half a key, or a cluster with half an authority. Throws for that. */
async function isUsable(config: KubeConfig, signal: RequestOptions["signal"]): Promise<boolean> {
  if (emptyAuthority(config.getCurrentCluster()) !== undefined) return false;
  const options: RequestOptions = { signal };
  await config.applyToHTTPSOptions(options);
  const { ca, cert, key, auth, headers } = options;
  createSecureContext({ ca, cert, key });
  // OpenSSL passes over an authority that it cannot read; one that was cut off is the last
  if (ca !== undefined) readCertificate(certificatesIn(String(ca)).at(-1) ?? "");
  return cert !== undefined || auth !== undefined || "Authorization" in (headers ?? {});
}

function read(of: { readonly text: string; readonly file: string }): KubeConfig {
  const config = new KubeConfig();
  config.loadFromString(of.text);
  config.makePathsAbsolute(dirname(of.file));
  config.users = withTokenFiles(config.users, of);
  return endsPlugins(readsTokenFiles(config));
}
