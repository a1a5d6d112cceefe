// SPDX-License-Identifier: Apache-2.0
import { readdirSync, readFileSync, statSync } from "node:fs";
import { extname, join } from "node:path";
import { LineCounter, parseAllDocuments } from "yaml";
import { isRefusal, messageOf } from "../../allocator/base/errors.ts";
import { nearestWord } from "../../allocator/base/nearest-word.ts";
import { templateAnnotations } from "../../allocator/demand/workload-allocation.ts";
import { dialectKeysIn } from "../../allocator/manifest/dialects.ts";
import { Fields, readObject } from "../../allocator/manifest/kubernetes-object.ts";
import { OWN_PREFIX } from "../../allocator/manifest/own-keys.ts";
import { apiVersionOf } from "../../kube/api/resource.ts";
import type { Io } from "../terminal/command.ts";
import { usageError } from "../terminal/flags.ts";
import { type KindFacts, kindOf, MANAGED } from "./kinds.ts";

/** One object of a file, with the kind that it is of. */
export interface ManifestObject {
  readonly kind: KindFacts;
  /** As it was written. */
  readonly json: Readonly<Record<string, unknown>>;
}

/** Objects that can be worked on, and for each of the others a line saying what it is. */
interface Reading {
  readonly objects: readonly ManifestObject[];
  readonly skipped: readonly string[];
  /** Those of them whose pods ask Berth for addresses, and why nobody hears it. */
  readonly unheard: readonly string[];
}

interface Text {
  /** As messages name it. */
  readonly name: string;
  readonly text: string;
}

/** What a folder is searched for, as kubectl does. */
const EXTENSIONS = [".yaml", ".yml", ".json"];

/**
 * Reads files, folders (not what is below them) and, for `-`, standard input: YAML of any number of documents, or
 * JSON; a List is opened. Throws a misuse naming file and line for what cannot be read, and when nothing is left.
 */
export async function readDocuments(paths: readonly string[], io: Pick<Io, "stdin">): Promise<Reading> {
  if (paths.length === 0) throw usageError("-f is missing: -f FILE, -f DIR, or -f - for standard input");
  const objects: ManifestObject[] = [];
  const skipped: string[] = [];
  const unheard: string[] = [];
  for (const path of paths) {
    for (const text of await readTexts(path, io)) {
      for (const value of parse(text)) sort(value, text.name, { objects, skipped, unheard });
    }
  }
  if (objects.length > 0) return { objects, skipped, unheard };
  const kinds = MANAGED.map(({ kind }) => kind).join(", ");
  const others = [...skipped, ...unheard].join("; ");
  const found = others === "" ? "holds no object" : `holds none of ${kinds}: ${others}`;
  throw usageError(`${paths.map(nameOf).join(", ")} ${found}`);
}

async function readTexts(path: string, io: Pick<Io, "stdin">): Promise<readonly Text[]> {
  if (path === "-") return [{ name: nameOf(path), text: await io.stdin() }];
  try {
    const files = statSync(path).isDirectory() ? filesIn(path) : [path];
    return files.map((file) => ({ name: file, text: readFileSync(file, "utf8") }));
  } catch (error) {
    if (/^https?:\/\//.test(path))
      throw usageError(
        `${path} is a URL, which is not fetched; write: curl -fsSL ${path} | berthctl ... -f -`,
      );
    throw usageError(`${path} cannot be read: ${whyUnread(error)}`);
  }
}

const UNREAD: Readonly<Record<string, string>> = {
  ENOENT: "there is no such file or folder; name one that is there",
  ENOTDIR: "a part of the path is not a folder; name a file that is there",
  EACCES: "you may not read it; run as a user who may, or name another file",
};

function whyUnread(error: unknown): string {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  return UNREAD[code] ?? `${messageOf(error)}; name another file`;
}

function nameOf(path: string): string {
  return path === "-" ? "standard input" : path;
}

function filesIn(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => !entry.isDirectory() && EXTENSIONS.includes(extname(entry.name)))
    .map((entry) => join(folder, entry.name))
    .sort();
}

/** Every document that is not empty. */
function parse({ name, text }: Text): unknown[] {
  const lineCounter = new LineCounter();
  const documents = parseAllDocuments(text, { lineCounter, prettyErrors: false });
  if (!Array.isArray(documents)) return [];
  return documents
    .map((document) => {
      const [error] = document.errors;
      if (error !== undefined) {
        throw usageError(`${name}, line ${lineCounter.linePos(error.pos[0]).line}: ${error.message}`);
      }
      return toJs(document, name);
    })
    .filter((value) => value !== null && value !== undefined);
}

/** Aliases are resolved only here, and too many of them are refused here. */
function toJs(document: { toJS(): unknown }, name: string): unknown {
  try {
    return document.toJS();
  } catch (error) {
    throw usageError(`${name}: ${messageOf(error)}`);
  }
}

interface Sorted {
  readonly objects: ManifestObject[];
  readonly skipped: string[];
  readonly unheard: string[];
}

function sort(value: unknown, file: string, into: Sorted): void {
  const fields = new Fields(value);
  const [apiVersion, kind] = [fields.text("apiVersion"), fields.text("kind")];
  if (kind === "") throw usageError(`${file} holds something that is no Kubernetes object: it has no kind`);
  if (kind === "List" && apiVersion === "v1") {
    for (const item of fields.list("items")) sort(item, file, into);
    return;
  }
  const known = kindOf(apiVersion, kind);
  const misread = known === undefined ? misreadOwn(apiVersion, kind) : undefined;
  if (misread !== undefined) {
    throw usageError(`${file} holds ${describe(fields)}: ${misread}`);
  }
  if (known !== undefined) {
    into.objects.push({ kind: known, json: fields.value });
    return;
  }
  const what = describe(fields);
  const asks = requestsIn(fields.value);
  if (asks.length === 0) into.skipped.push(what);
  else
    into.unheard.push(
      `${what}: ${asks.join(", ")} in its template asks for nothing on one host, where berth hears of no ${kind} and of none of its pods until they are applied; apply the pods`,
    );
}

/** Without what the object does not say. */
function describe(object: Fields): string {
  const group = object.text("apiVersion");
  const parts = [object.text("kind"), object.at("metadata").text("name"), group === "" ? "" : `(${group})`];
  return parts.filter((part) => part !== "").join(" ");
}

/** What the template of an object that is not read asks for. */
function requestsIn(json: ManifestObject["json"]): readonly string[] {
  const object = readObject(json);
  if (isRefusal(object)) return [];
  const annotations = templateAnnotations(object);
  const own = Object.keys(annotations).filter((key) => key.toLowerCase().startsWith(OWN_PREFIX));
  return [...own, ...dialectKeysIn(annotations)];
}

/** What to write instead in an object of Berth's own that is not one: nobody else has the group. */
function misreadOwn(apiVersion: string, kind: string): string | undefined {
  if (apiVersion.split("/")[0] !== "berth.dev") return undefined;
  const own = MANAGED.filter(({ group }) => group === "berth.dev");
  const meant = nearestWord(
    kind,
    own.map((known) => known.kind),
  );
  const facts = own.find((known) => known.kind === meant);
  if (facts === undefined) return undefined;
  if (facts.kind !== kind) return `did you mean kind: ${facts.kind}?`;
  return `write apiVersion: ${apiVersionOf(facts)}`;
}
