// SPDX-License-Identifier: Apache-2.0
import { readFile } from "node:fs/promises";
import type { RequestOptions } from "node:https";
import { dirname, resolve } from "node:path";
// biome-ignore lint/style/noRestrictedImports: what it leaves out of a kubeconfig is added to it
import type { KubeConfig, User } from "@kubernetes/client-node";
import { parse } from "yaml";

const KEY = "tokenFile";
/** How a user is marked whose token is in a file. */
const PROVIDER = "token-file";

interface Marked {
  readonly name: typeof PROVIDER;
  readonly path: string;
  /** The one beside it, for as long as the file cannot be read. */
  readonly token?: string;
}

/**
 * The users of a kubeconfig, `text` of `file`, with their `tokenFile`: client-node does not know that key. As kubectl does, the file counts before
 * a token beside it, if it can be read, and a relative path is relative to the kubeconfig.
 */
export function withTokenFiles(
  users: readonly User[],
  { text, file }: { readonly text: string; readonly file: string },
): User[] {
  // client-node has parsed the text, and keeps nothing of that: most say no such key, and are parsed that once
  if (!text.includes(KEY)) return [...users];
  const said: unknown = parse(text);
  const named = new Map(entriesOf(said).map(({ name, user }) => [name, user?.[KEY]]));
  return users.map((user) => {
    const path = named.get(user.name);
    if (typeof path !== "string" || path === "") return user;
    const { token, ...rest } = user;
    const beside = token === undefined ? {} : { token };
    const authProvider: Marked = { name: PROVIDER, path: resolve(dirname(file), path), ...beside };
    return { ...rest, authProvider };
  });
}

/** Such a token is read whenever it is asked for: who renews it exchanges the file. */
export function readsTokenFiles(config: KubeConfig): KubeConfig {
  config.addAuthenticator({
    isAuthProvider: (user) => markOf(user) !== undefined,
    applyAuthentication: async (user, options: Pick<RequestOptions, "headers">) => {
      const token = await tokenOf(markOf(user));
      options.headers = { ...options.headers, Authorization: `Bearer ${token}` };
    },
  });
  return config;
}

async function tokenOf(mark: Marked | undefined): Promise<string> {
  try {
    return (await readFile(mark?.path ?? "", "utf8")).trim();
  } catch (error) {
    if (mark?.token === undefined) throw error;
    return mark.token;
  }
}

function markOf({ authProvider }: User): Marked | undefined {
  const { name } = (authProvider ?? {}) as Partial<Marked>;
  return name === PROVIDER ? (authProvider as Marked) : undefined;
}

interface Entry {
  readonly name?: unknown;
  readonly user?: { readonly [KEY]?: unknown } | null;
}

function entriesOf(said: unknown): readonly Entry[] {
  const { users } = (said ?? {}) as { readonly users?: unknown };
  return Array.isArray(users)
    ? users.filter((one): one is Entry => typeof one === "object" && one !== null)
    : [];
}
