// SPDX-License-Identifier: Apache-2.0
import type { ApiAccess } from "../../kube/api/credentials.ts";

export interface TokenUser {
  /** `https://host:port` */
  readonly server: string;
  /** PEM of the authority of its certificate; "" where nothing answers. */
  readonly ca: string;
  readonly user: string;
  readonly token: string;
}

/**
 * How somebody with a token reaches an API server. client-node's KubeConfig says the same, and takes each process a third of a second of
 * the processor's time to load.
 */
export class TokenConfig implements ApiAccess {
  readonly #said: TokenUser;

  constructor(said: TokenUser) {
    this.#said = said;
  }

  get token(): string {
    return this.#said.token;
  }

  /** The same user elsewhere: another server, perhaps with another authority. */
  at(where: Partial<Pick<TokenUser, "server" | "ca">>): TokenConfig {
    return new TokenConfig({ ...this.#said, ...where });
  }

  getCurrentCluster(): { readonly server: string } {
    return { server: this.#said.server };
  }

  async applyToHTTPSOptions(options: Parameters<ApiAccess["applyToHTTPSOptions"]>[0]): Promise<void> {
    options.ca = this.#said.ca;
    options.headers = { Authorization: `Bearer ${this.#said.token}` };
  }

  /** A file for kubectl and Berth's processes. */
  exportConfig(): string {
    const { server, ca, user, token } = this.#said;
    const authority = ca === "" ? {} : { "certificate-authority-data": Buffer.from(ca).toString("base64") };
    return JSON.stringify({
      apiVersion: "v1",
      kind: "Config",
      clusters: [{ name: "test", cluster: { server, ...authority } }],
      users: [{ name: user, user: { token } }],
      contexts: [{ name: "test", context: { cluster: "test", user } }],
      "current-context": "test",
    });
  }
}
