// SPDX-License-Identifier: Apache-2.0
import { readFile } from "node:fs/promises";
import { dirname } from "node:path";
// biome-ignore lint/style/noRestrictedImports: only files are read with it; calls go through kube/api/connection.ts
import { KubeConfig } from "@kubernetes/client-node";
import { BerthError, messageOf } from "../../allocator/base/errors.ts";
import type { ApiAccess } from "./credentials.ts";
import { readsTokenFiles, withTokenFiles } from "./token-files.ts";

/**
 * The package that reads kubeconfigs takes up 80 MB: only those load this who have one.
 *
 * What a kubeconfig says now: certificates and tokens in it end, and whoever renews them writes the file anew. One that cannot be read, or
 * is half written, changes nothing. The server stays that of the first reading.
 */
export class KubeConfigFile implements ApiAccess {
  readonly #file: string;
  #text: string;
  #config: KubeConfig;

  private constructor(file: string, text: string) {
    this.#file = file;
    this.#text = text;
    this.#config = read({ text, file });
  }

  /** The kubeconfig of that file, which BERTH_KUBECONFIG names. Throws CONFIG_INVALID. */
  static async open(file: string): Promise<KubeConfigFile> {
    try {
      return new KubeConfigFile(file, await readFile(file, "utf8"));
    } catch (cause) {
      const [why = ""] = messageOf(cause).split("\n");
      throw new BerthError("CONFIG_INVALID", `BERTH_KUBECONFIG ${file} cannot be read: ${why}`, { cause });
    }
  }

  getCurrentCluster(): ReturnType<ApiAccess["getCurrentCluster"]> {
    return this.#config.getCurrentCluster();
  }

  async applyToHTTPSOptions(options: Parameters<ApiAccess["applyToHTTPSOptions"]>[0]): Promise<void> {
    await this.#follow();
    await this.#config.applyToHTTPSOptions(options);
  }

  async #follow(): Promise<void> {
    try {
      const text = await readFile(this.#file, "utf8");
      if (text === this.#text) return;
      const next = read({ text, file: this.#file });
      if (next.getCurrentCluster() === null || next.getCurrentUser() === null) return;
      this.#config = next;
      this.#text = text;
    } catch {
      // what was read before stays in force; it is read again soon
    }
  }
}

function read(of: { readonly text: string; readonly file: string }): KubeConfig {
  const config = new KubeConfig();
  config.loadFromString(of.text);
  config.makePathsAbsolute(dirname(of.file));
  config.users = withTokenFiles(config.users, of);
  return readsTokenFiles(config);
}
