// SPDX-License-Identifier: Apache-2.0
import { BerthError, isRefusal } from "../../allocator/base/errors.ts";
import { Fields } from "../../allocator/manifest/kubernetes-object.ts";
import type { AdmittedObjects } from "../../allocator/store/sqlite/admitted-objects.ts";
import type { Store } from "../../allocator/store/store.ts";
import type { AdmissionRequest, Handler, Route } from "../../webhook/review/admission-review.ts";
import { type ManifestObject, readDocuments } from "../apply/documents.ts";
import { subjectOf, titleAsWritten, titleOf } from "../apply/object-ref.ts";
import { currentOf, isUnchanged } from "../apply/submit.ts";

interface Into {
  readonly handlers: Readonly<Record<Route, Handler>>;
  readonly store: Store;
  readonly admitted: AdmittedObjects;
  readonly uuid: () => string;
  /** Of an object that is there and that the file has otherwise. */
  readonly report: (title: string) => void;
}

const AT_START = ["Namespace", "IPPool"];
const REVIEW_TIMEOUT_MS = 9_000;

/** A file of pools and namespaces. */
export interface PoolsFile {
  readonly path: string;
  readonly objects: readonly ManifestObject[];
}

/** @throws BerthError CONFIG_INVALID naming the file, when it cannot be read or holds anything else */
export async function readPools(path: string): Promise<PoolsFile> {
  const { objects } = await readDocuments([path], { stdin: () => Promise.resolve("") });
  const unsupported = objects.find(({ kind }) => !AT_START.includes(kind.kind));
  if (unsupported === undefined) return { path, objects };
  const why = `it holds an object of kind ${unsupported.kind.kind}; apply it when the stack runs, with: berthctl apply -f`;
  throw invalid(path, why);
}

/**
 * Makes the pools and namespaces of a file that are not there yet, judged by the same rules as everybody's. One that is there
 * stays: it may have been changed since, and pods live by it; `told` hears of what the file says otherwise. Throws CONFIG_INVALID
 * naming the file and the object: a stack with half of its pools must not start.
 */
export async function loadPools({ path, objects }: PoolsFile, into: Into): Promise<void> {
  for (const object of objects) {
    const subject = subjectOf(object);
    if (isRefusal(subject)) throw invalid(path, `${titleAsWritten(object)}: ${subject.message}`);
    const current = await currentOf(into, subject);
    if (current !== undefined) {
      if (!isUnchanged(subject, current)) into.report(titleOf(subject));
      continue;
    }
    const request = requestFor(object, into);
    const answer = await into.handlers[object.kind.route](request, AbortSignal.timeout(REVIEW_TIMEOUT_MS));
    if (!answer.allowed) {
      throw invalid(path, `${object.kind.kind} ${request.name}: ${answer.status?.message ?? "refused"}`);
    }
  }
}

function requestFor({ kind, json }: ManifestObject, { uuid }: Into): AdmissionRequest {
  const name = new Fields(json).at("metadata").text("name");
  const { group, version, plural } = kind;
  return {
    uid: uuid(),
    kind: { group, version, kind: kind.kind },
    resource: { group, version, resource: plural },
    subResource: "",
    name,
    namespace: "",
    operation: "CREATE",
    userInfo: { username: "berthctl up", uid: "", groups: [] },
    object: json,
    oldObject: null,
    dryRun: false,
  };
}

function invalid(path: string, why: string): BerthError {
  return new BerthError("CONFIG_INVALID", `${path}: ${why}`, { details: { path } });
}
