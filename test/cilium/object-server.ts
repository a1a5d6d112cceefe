// SPDX-License-Identifier: Apache-2.0

import type { Answer, Call, Connection, Stream } from "../../kube/api/connection.ts";
import type { KubeItem } from "../../kube/api/resource.ts";

type Json = Readonly<Record<string, unknown>>;
type Item = KubeItem & Json;

/**
 * What an API server does with objects that nobody but their writers looks at: create if absent, merge patches against a version, spec and
 * status apart. In memory, so that a test walks over thousands of orders.
 */
export class ObjectServer {
  readonly #items = new Map<string, Item>(); // path -> object
  #count = 0;

  /** A caller's way to it; `pause` comes before a call is carried out, and before its answer is heard. */
  connection(pause: () => Promise<void> = async () => {}): Connection {
    return {
      call: async (call) => {
        await pause();
        const answer = this.#answer(call);
        await pause();
        return answer;
      },
      stream: async (): Promise<Stream | Answer> => ({ status: 405, body: undefined }),
      close: () => {},
    };
  }

  items(plural: string): readonly Item[] {
    return [...this.#items].flatMap(([path, item]) => (path.includes(`/${plural}/`) ? [item] : []));
  }

  #answer({ method, path, body }: Call): Answer {
    const isStatus = path.endsWith("/status");
    const place = isStatus ? path.slice(0, -"/status".length) : path;
    if (method === "POST") return this.#create(place, body as Item);
    const found = this.#items.get(place);
    if (found === undefined) return missing(place);
    if (method === "GET") return { status: 200, body: found };
    if (method === "DELETE") {
      this.#items.delete(place);
      return { status: 200, body: found };
    }
    return this.#patch(place, found, body as Json, isStatus);
  }

  #create(folder: string, body: Item): Answer {
    const path = `${folder}/${body.metadata.name}`;
    if (this.#items.has(path)) return failure(409, "AlreadyExists", path);
    const metadata = { ...body.metadata, uid: `uid-${++this.#count}`, resourceVersion: `${this.#count}` };
    const item = { ...body, metadata };
    this.#items.set(path, item);
    return { status: 201, body: item };
  }

  #patch(path: string, found: Item, body: Json, isStatus: boolean): Answer {
    const { uid, resourceVersion, ...metadata } = (body["metadata"] ?? {}) as Partial<KubeItem["metadata"]>;
    const now = found.metadata;
    if ((uid ?? now.uid) !== now.uid || (resourceVersion ?? now.resourceVersion) !== now.resourceVersion)
      return failure(409, "Conflict", path);
    const part = isStatus ? "status" : "spec";
    const next = {
      ...found,
      [part]: merged(found[part], body[part] ?? {}),
      metadata: isStatus ? now : (merged(now, metadata) as Item["metadata"]),
    };
    if (JSON.stringify(next) === JSON.stringify(found)) return { status: 200, body: found };
    const item = { ...next, metadata: { ...next.metadata, resourceVersion: `${++this.#count}` } };
    this.#items.set(path, item);
    return { status: 200, body: item };
  }
}

/** RFC 7396 */
function merged(target: unknown, patch: unknown): unknown {
  if (typeof patch !== "object" || patch === null || Array.isArray(patch)) return patch;
  const isObject = typeof target === "object" && target !== null && !Array.isArray(target);
  const result: Record<string, unknown> = isObject ? { ...target } : {};
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key];
    else result[key] = merged(result[key], value);
  }
  return result;
}

function missing(path: string): Answer {
  return failure(404, "NotFound", path);
}

function failure(status: number, reason: string, path: string): Answer {
  const name = path.split("/").at(-1) ?? "";
  return {
    status,
    body: { kind: "Status", status: "Failure", code: status, reason, message: path, details: { name } },
  };
}
