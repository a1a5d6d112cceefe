// SPDX-License-Identifier: Apache-2.0
import { BerthError } from "../../allocator/base/errors.ts";
import type { Answer, Call, Connection } from "./connection.ts";
import {
  apiVersionOf,
  asItem,
  collectionPath,
  describeObject,
  type ItemMeta,
  itemPath,
  type KubeItem,
  type ObjectName,
  type Resource,
} from "./resource.ts";
import { alreadyExists, isAbsent, isConflict, toBerthError } from "./status.ts";

/** An object to create, or that part of one that is written. */
export type Body = Readonly<Record<string, unknown>>;

/** What was seen of an object: a change or deletion happens to exactly this or not at all. */
type ObjectVersion = Pick<ItemMeta, "uid" | "resourceVersion">;

/** `mayBeUnknown`: fields that the kind does not have are dropped, instead of refused. */
type Patch = { readonly mayBeUnknown?: boolean } & (
  | { /** RFC 6902. */ readonly type: "json"; readonly operations: readonly Body[] }
  | { /** RFC 7396: null takes a field away. */ readonly type: "merge"; readonly body: Body }
);

interface Page {
  readonly items: readonly KubeItem[];
  /** Of the whole list, the same on each page. */
  readonly resourceVersion: string;
  /** Where the next page begins; empty on the last one. */
  readonly next: string;
  /** Of the answer, where it was bounded. */
  readonly bytes?: number;
}

/** Where a page begins, and how many objects it has at most. */
interface From {
  readonly limit: number;
  readonly next: string;
}

export interface Selection {
  readonly namespace?: string;
  readonly fieldSelector?: string;
  readonly labelSelector?: string;
}

/** Reads and writes go to the API server, never to a cache; unknown fields are refused instead of dropped. */
const WRITE = { fieldManager: "berth", fieldValidation: "Strict" };
/**
 * Of a page. 500 objects of 8 KB, some times what Berth's have; parsed it is some times as much. Everybody who may write
 * objects may make each of them 1.5 MB large, and what reads hundreds of them at once has a limit of its memory.
 */
const MOST_PAGE_BYTES = 4 * 2 ** 20;
/** Of that for the next page, by what objects weigh on the last one: they differ, and a page that is too large is read in vain. */
const PAGE_FILL = 0.75;
const LENIENT_WRITE = { ...WRITE, fieldValidation: "Ignore" };

/**
 * The objects of one resource. Throws what a Connection throws, and the faults of kube/api/status.ts: STORE_READ_ONLY
 * for an account that lacks a role, WRITE_REFUSED for an object that a quota, a policy or its namespace forbids,
 * STORE_UNAVAILABLE for 5xx and a resource that is not served, INTERNAL for an object that is invalid.
 */
export class Client {
  readonly resource: Resource;
  readonly connection: Connection;

  readonly #timeout: Pick<Call, "timeoutMs">;

  /** `timeoutMs` of each call, that of the connection if absent. */
  constructor(connection: Connection, resource: Resource, timeoutMs?: number) {
    this.connection = connection;
    this.resource = resource;
    this.#timeout = timeoutMs === undefined ? {} : { timeoutMs };
  }

  /** Create-if-absent; undefined when an object of that name is there. */
  async create(place: ObjectName, body: Body): Promise<KubeItem | undefined> {
    const answer = await this.#post(place, body, WRITE);
    return alreadyExists(answer) ? undefined : this.#item(answer, "create", place);
  }

  /** Throws as `create` would, and writes nothing. */
  async rehearseCreate(place: ObjectName, body: Body): Promise<void> {
    const answer = await this.#post(place, body, { ...WRITE, dryRun: "All" });
    if (answer.status === 201 || alreadyExists(answer)) return; // what is made up has no revision yet
    throw toBerthError(answer, `create ${describeObject(this.resource, place)}`);
  }

  async #post(place: ObjectName, body: Body, query: Call["query"]): Promise<Answer> {
    const { kind } = this.resource;
    const metadata = { ...(body["metadata"] as Body | undefined), ...place };
    return await this.#call({
      method: "POST",
      path: collectionPath(this.resource, place.namespace),
      ...(query === undefined ? {} : { query }),
      body: { ...body, apiVersion: apiVersionOf(this.resource), kind, metadata },
    });
  }

  async get(place: ObjectName): Promise<KubeItem | undefined> {
    const answer = await this.#call({ method: "GET", path: itemPath(this.resource, place) });
    return isAbsent(answer, place.name) ? undefined : this.#item(answer, "read", place);
  }

  /** Undefined when the object is gone, or not what was seen any more: a patch whose result matters says what was seen. */
  async patch(place: ObjectName, patch: Patch, subresource?: "status"): Promise<KubeItem | undefined> {
    const path = itemPath(this.resource, place);
    const answer = await this.#call({
      method: "PATCH",
      path: subresource === undefined ? path : `${path}/${subresource}`,
      query: patch.mayBeUnknown === true ? LENIENT_WRITE : WRITE,
      contentType: patch.type === "json" ? "application/json-patch+json" : "application/merge-patch+json",
      body: patch.type === "json" ? patch.operations : patch.body,
    });
    if (isConflict(answer) || isAbsent(answer, place.name)) return undefined;
    return this.#item(answer, "change", place);
  }

  /** Deletes exactly what was seen; false when that is not there any more. With finalizers it goes when they do. */
  async remove(place: ObjectName, seen: ObjectVersion): Promise<boolean> {
    const { uid, resourceVersion } = seen;
    const body = {
      apiVersion: "v1",
      kind: "DeleteOptions",
      propagationPolicy: "Background",
      preconditions: { uid, resourceVersion },
    };
    const answer = await this.#call({
      method: "DELETE",
      path: itemPath(this.resource, place),
      body,
    });
    if (answer.status === 200 || answer.status === 202) return true;
    if (isConflict(answer) || isAbsent(answer, place.name)) return false;
    throw toBerthError(answer, `delete ${describeObject(this.resource, place)}`);
  }

  /**
   * One page of the list as of one moment: the newest for the first page, then that of the first page. Undefined when it is too
   * large to be read at once; one object never is.
   */
  async pageAtOnce(selection: Selection, from: From): Promise<Page | undefined> {
    const bound = from.limit > 1 ? { mostBytes: MOST_PAGE_BYTES } : {};
    const answer = await this.#call({ ...this.#pageCall(selection, from), ...bound });
    return answer.isTooLarge === true ? undefined : this.#pageIn(answer);
  }

  /** All pages, of `limit` objects or of as many as can be read at once. */
  async *pages(selection: Selection, limit: number): AsyncGenerator<Page, void, void> {
    let next = "";
    for (let most = limit; ; ) {
      const page = await this.pageAtOnce(selection, { limit: most, next });
      if (page === undefined) {
        most = Math.ceil(most / 4);
        continue;
      }
      yield page;
      if (page.next === "") return;
      next = page.next;
      most = Math.min(limit, most * 2, roomAfter(page));
    }
  }

  #pageCall(selection: Selection, { limit, next }: From): Call {
    return {
      method: "GET",
      path: collectionPath(this.resource, selection.namespace),
      query: {
        ...queryOf(selection),
        limit: String(limit),
        ...(next === "" ? {} : { continue: next }),
      },
    };
  }

  #pageIn({ status, ...answer }: Answer): Page {
    if (status !== 200) throw toBerthError({ status, ...answer }, `list ${this.resource.plural}`);
    const { bytes } = answer;
    return { ...asPage(answer.body), ...(bytes === undefined ? {} : { bytes }) };
  }

  /** The call that a watch makes. */
  watchCall(selection: Selection, query: Readonly<Record<string, string>>): Call {
    const path = collectionPath(this.resource, selection.namespace);
    return { method: "GET", path, query: { ...queryOf(selection), ...query, watch: "true" } };
  }

  #call(call: Call): Promise<Answer> {
    return this.connection.call({ ...call, ...this.#timeout });
  }

  #item(answer: Answer, verb: string, place: ObjectName): KubeItem {
    if (answer.status === 200 || answer.status === 201) return asItem(answer.body);
    throw toBerthError(answer, `${verb} ${describeObject(this.resource, place)}`);
  }
}

function queryOf({ fieldSelector, labelSelector }: Selection): Record<string, string> {
  return {
    ...(fieldSelector === undefined ? {} : { fieldSelector }),
    ...(labelSelector === undefined ? {} : { labelSelector }),
  };
}

/** How many objects as those of this page the next one has room for. */
function roomAfter({ items, bytes = 0 }: Page): number {
  const each = bytes / Math.max(1, items.length);
  return Math.max(1, Math.floor((MOST_PAGE_BYTES * PAGE_FILL) / Math.max(1, each)));
}

function asPage(body: unknown): Page {
  const list = body as { items?: unknown; metadata?: { resourceVersion?: unknown; continue?: unknown } };
  const { resourceVersion, continue: next } = list?.metadata ?? {};
  if (!Array.isArray(list?.items) || typeof resourceVersion !== "string") {
    throw new BerthError("STORE_UNAVAILABLE", "the API server answered with something that is no list");
  }
  return { items: list.items.map(asItem), resourceVersion, next: typeof next === "string" ? next : "" };
}
