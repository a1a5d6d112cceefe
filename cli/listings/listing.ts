// SPDX-License-Identifier: Apache-2.0
import { type Refusal, refuse } from "../../allocator/base/errors.ts";
import { listOf } from "../apply/manifest.ts";
import type { Backend } from "../backend/backend.ts";
import { type Column, document, type Format, LongTable, table } from "../terminal/output.ts";

/** Lines that are aligned with each other. */
const PART = 1_000;

/** Things to list, and what is to be said beside them on stderr, if anything. */
type Loaded<T> = readonly T[] | { readonly things: readonly T[]; readonly remark: string };

/** What `get` can list: how it is read, told apart and shown. */
interface Listing<T> {
  /** What it is called on the command line, first the usual name. */
  readonly names: readonly string[];
  /** In words, for `no claims in namespace default`. */
  readonly noun: string;
  readonly scope: Scope;
  /** At least what the query asks for. */
  load(backend: Backend, query: Query): Promise<Loaded<T>>;
  /** All of them, one by one in the same order, where there may be so many that a table must not wait for all of them. */
  stream?(backend: Backend): AsyncIterable<T>;
  /** `namespace` of what has none is empty. */
  keyOf(thing: T): { readonly namespace: string; readonly name: string };
  columns(context: ListContext): readonly Column<T>[];
  manifest(thing: T, context: ListContext): unknown;
}

/**
 * - `namespace`: things of one namespace are shown, unless all are asked for.
 * - `host`: all are shown, unless those of one namespace are asked for.
 * - `namespace in a cluster`: `namespace` there, and `host` on a data folder.
 * - `cluster`: they belong to no namespace.
 */
type Scope = "namespace" | "host" | "namespace in a cluster" | "cluster";

/** What rows depend on besides the records. */
interface ListContext {
  /** Milliseconds since 1970, for ages. */
  readonly now: number;
  /** Of the stack on this host; empty when none runs, and in a cluster. */
  readonly node: string;
  readonly place: Backend["place"];
}

export interface Query {
  readonly format: Format;
  /** Undefined: all. */
  readonly namespace: string | undefined;
  readonly name: string | undefined;
}

/** A remark for stderr, or why there is nothing to show. */
type Shown = { readonly kind: "shown"; readonly remark: string } | Refusal;

/** Takes text for stdout; resolves when there is room for more. */
type Write = (text: string) => Promise<void>;

/** A listing of whatever, its own type closed in. */
export interface AnyListing {
  readonly names: readonly string[];
  readonly scope: Scope;
  /** `now` in milliseconds since 1970, for ages. */
  show(backend: Backend, query: Query, now: number, write: Write): Promise<Shown>;
}

/** Makes a listing ready for `get`. */
export function listing<T>(how: Listing<T>): AnyListing {
  return {
    names: how.names,
    scope: how.scope,
    show: async (backend, query, now, write) => {
      const { node, place } = backend;
      const context = { now, node, place };
      const { format, name, namespace } = query;
      const isAll = name === undefined && namespace === undefined;
      if (how.stream !== undefined && isAll && (format === "table" || format === "wide")) {
        const lines = new LongTable(how.columns(context), format);
        const some = await inParts(how.stream(backend), (part) => write(lines.part(part)));
        return { kind: "shown", remark: some ? "" : nothing(how, query, { place, elsewhere: 0 }) };
      }
      return await showAll(how, query, context, { backend, write });
    },
  };
}

async function showAll<T>(
  how: Listing<T>,
  query: Query,
  context: ListContext,
  { backend, write }: { readonly backend: Backend; readonly write: Write },
): Promise<Shown> {
  const loaded = await how.load(backend, query);
  const { things: all, remark } = "things" in loaded ? loaded : { things: loaded, remark: "" };
  const found = all.filter((thing) => answers(how.keyOf(thing), query));
  if (query.name !== undefined && found.length === 0) return missing(how, query);
  await write(render(how, found, query, context));
  const { place } = context;
  const none = found.length === 0 ? nothing(how, query, { place, elsewhere: all.length }) : "";
  return { kind: "shown", remark: [none, remark].filter((line) => line !== "").join("\n") };
}

/** Hands them on while they are read, so that no more than a part is in memory; whether there were any. */
async function inParts<T>(things: AsyncIterable<T>, handOn: (part: readonly T[]) => Promise<void>) {
  let [some, part]: [boolean, T[]] = [false, []];
  for await (const thing of things) {
    part.push(thing);
    some = true;
    if (part.length < PART) continue;
    await handOn(part);
    part = [];
  }
  if (part.length > 0) await handOn(part);
  return some;
}

function answers(key: { namespace: string; name: string }, { namespace, name }: Query): boolean {
  return (
    (namespace === undefined || key.namespace === namespace) && (name === undefined || key.name === name)
  );
}

function render<T>(how: Listing<T>, found: readonly T[], query: Query, context: ListContext): string {
  const { format, name } = query;
  if (format === "table" || format === "wide") {
    return found.length === 0 ? "" : table(how.columns(context), found, format);
  }
  const manifests = found.map((thing) => how.manifest(thing, context));
  return document(name !== undefined && manifests.length === 1 ? manifests[0] : listOf(manifests), format);
}

function missing(how: Pick<Listing<never>, "names" | "noun">, { namespace, name }: Query): Refusal {
  const where = namespace === undefined || namespace === "" ? "" : ` in namespace ${namespace}`;
  return refuse(
    "OBJECT_INVALID",
    `there is no ${how.noun} ${name}${where}; see what there is with: berthctl get ${how.names[0]} -A`,
  );
}

function nothing(
  how: Pick<Listing<never>, "names" | "noun">,
  { namespace }: Query,
  { place, elsewhere }: { readonly place: Backend["place"]; readonly elsewhere: number },
): string {
  if (namespace !== undefined && place === "cluster") {
    return `no ${how.names[0]} in namespace ${namespace}; see those of all with -A`;
  }
  if (namespace === undefined || elsewhere === 0) return `no ${how.names[0]}`;
  return `no ${how.names[0]} in namespace ${namespace}; ${elsewhere} elsewhere, see them with -A`;
}
