// SPDX-License-Identifier: Apache-2.0
import { isDeepStrictEqual } from "node:util";
import { BerthError, isRefusal } from "../../allocator/base/errors.ts";
import type { Labels } from "../../allocator/base/ports.ts";
import { ASSIGNED_CLAIM } from "../../allocator/manifest/annotations.ts";
import { readClaimRequest } from "../../allocator/manifest/claim-spec.ts";
import { Fields, readObject } from "../../allocator/manifest/kubernetes-object.ts";
import { ASSIGNED } from "../../allocator/manifest/opt-in.ts";
import type { Claim } from "../../allocator/model/claim.ts";
import { withSettledSize } from "../../allocator/pool/settled-size.ts";
import type { Operation } from "../../webhook/review/admission-review.ts";
import { applyAndVerify } from "../../webhook/review/json-patch.ts";
import type { EmbeddedBackend } from "../backend/embedded-backend.ts";
import type { Io } from "../terminal/command.ts";
import { timeOf } from "../terminal/output.ts";
import { gvkOf, gvrOf } from "./kinds.ts";
import { claimManifest, poolManifest } from "./manifest.ts";
import type { Json, Subject, SubjectKey } from "./object-ref.ts";
import type { Answer, Webhook } from "./review-client.ts";

/** What became of one object. */
export type Submitted =
  | {
      readonly kind: "done";
      readonly verb: "created" | "configured" | "unchanged" | "deleted";
      /** As it stands now: with its generated name, and what the webhook wrote into it. */
      readonly object: Json;
      readonly warnings: readonly string[];
    }
  | {
      readonly kind: "refused";
      readonly why: string;
      readonly code: string;
      readonly warnings: readonly string[];
      /** It could not be decided or stored, as on a full disk: nothing is wrong with the object. */
      readonly isFault: boolean;
    };

/** Where objects go, and where they are afterwards. */
export interface ReviewTarget {
  readonly webhook: Webhook;
  readonly backend: EmbeddedBackend;
  readonly io: Pick<Io, "clock" | "random" | "uuid">;
  readonly dryRun: boolean;
}

/** The API server's for generated names: no vowels, and nothing that looks like something else. */
const NAME_LETTERS = "bcdfghjklmnpqrstvwxz2456789";
const SUFFIX_LENGTH = 5;
/** 63 less the suffix: the longest prefix that is kept. */
const LONGEST_PREFIX = 58;

/** Creates the object, or changes the one of its name, as the API server would: by asking the webhook. */
export async function submit(target: ReviewTarget, subject: Subject): Promise<Submitted> {
  const current = subject.name === "" ? undefined : await currentOf(target.backend, subject);
  if (current === undefined) {
    return subject.kind.kind === "Pod"
      ? await createPod(target, subject)
      : await write(target, subject, { object: born(subject.json, target.io), oldObject: null });
  }
  if (isUnchanged(subject, current) && !isUnreserved(subject, current)) {
    const warnings = subject.kind.kind === "Pod" ? await warnOfRelease(target.backend, current) : [];
    return { kind: "done", verb: "unchanged", object: current, warnings };
  }
  return await write(target, subject, { object: changedFrom(current, subject), oldObject: current });
}

/** What a person may write of an object that is there; a pod is as it was but for what says things about it. */
function changedFrom(current: Json, { kind, json }: Subject): Json {
  const [old, next] = [new Fields(current).at("metadata"), new Fields(json).at("metadata")];
  const kept = { uid: old.get("uid"), creationTimestamp: old.get("creationTimestamp") };
  if (kind.kind !== "Pod") return withMetadata(json, kept);
  const own = Object.entries(old.texts("annotations")).filter(([key]) => ASSIGNED.includes(key));
  const annotations = { ...next.texts("annotations"), ...Object.fromEntries(own) };
  return withMetadata(current, { labels: next.texts("labels"), annotations });
}

/** A pod that is there although the claim that it was admitted with is not. */
async function warnOfRelease({ store }: Pick<EmbeddedBackend, "store">, pod: Json): Promise<string[]> {
  const metadata = new Fields(pod).at("metadata");
  const [namespace, name] = [metadata.text("namespace"), metadata.text("name")];
  const claim = metadata.at("annotations").text(ASSIGNED_CLAIM);
  if (claim === "" || (await store.get("claim", `${namespace}/${claim}`)) !== undefined) return [];
  return [
    `its claim ${namespace}/${claim} was released, and without it the pod cannot start; delete it with: berthctl delete pod/${namespace}/${name}, and apply it again`,
  ];
}

/** Deletes the object of that key; `undefined` when there is none. */
export async function deleteObject(target: ReviewTarget, key: SubjectKey): Promise<Submitted | undefined> {
  const current = await readableOf(target.backend, key);
  if (current === undefined) return undefined;
  const answer = await ask(target, key, { operation: "DELETE", object: null, oldObject: current });
  return outcome(answer, "deleted", current);
}

/** What cannot be read any more is deleted by its key alone: there is no other way to be rid of it. */
export async function readableOf(backend: EmbeddedBackend, key: SubjectKey): Promise<Json | undefined> {
  try {
    return await currentOf(backend, key);
  } catch (error) {
    if (!(error instanceof BerthError && error.code === "STATE_CORRUPT") || key.kind.group === "berth.dev")
      throw error;
    const { group, version, kind } = gvkOf(key.kind);
    const apiVersion = group === "" ? version : `${group}/${version}`;
    return { apiVersion, kind, metadata: { namespace: key.namespace, name: key.name } };
  }
}

/** The object as it is kept now: pools and claims as records, the others as they were admitted. */
export async function currentOf(
  backend: Pick<EmbeddedBackend, "store" | "admitted">,
  key: SubjectKey,
): Promise<Json | undefined> {
  const { kind, namespace, name } = key;
  switch (kind.kind) {
    case "IPPool": {
      const pool = await backend.store.get("pool", name);
      return pool && { ...poolManifest(pool) };
    }
    case "IPClaim": {
      const claim = await backend.store.get("claim", `${namespace}/${name}`);
      return claim && { ...claimManifest(claim) };
    }
    default:
      return (await backend.admitted.object(kind.kind, namespace, name))?.json.value;
  }
}

/** Of a pod its labels and annotations are compared, for the rest of it never changes; of the others, what a person writes. */
export function isUnchanged({ kind, json }: Pick<Subject, "kind" | "json">, current: Json): boolean {
  const [now, next] = [new Fields(current), new Fields(json)];
  switch (kind.kind) {
    case "Pod":
      return isDeepStrictEqual(statusesOf(now), statusesOf(next));
    case "IPPool":
      return isDeepStrictEqual(
        now.at("spec").value,
        withSettledSize(next.at("spec").value, now.at("spec").value),
      );
    case "IPClaim":
      return now.at("spec").flag("handMade") && isSameClaim(now, json);
    default:
      return (
        isDeepStrictEqual(
          withoutUnread(now.at("spec").value),
          withoutUnread(asKept(next.at("spec").value, now.at("spec").value)),
        ) &&
        ["labels", "annotations"].every((part) =>
          isDeepStrictEqual(now.at("metadata").at(part).value, next.at("metadata").at(part).value),
        )
      );
  }
}

/** A review leaves out what Berth does not read, as containers: null is kept in their place. */
export function withoutUnread(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutUnread);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, inner]) => (inner === null ? [] : [[key, withoutUnread(inner)]])),
  );
}

/** What a review would have kept of it, as it has kept of `kept`. */
function asKept(value: unknown, kept: unknown): unknown {
  if (kept === null) return null;
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  const before = new Fields(kept);
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [key, asKept(inner, before.get(key))]),
  );
}

/** Labels and annotations, without those that Berth writes. */
function statusesOf(object: Fields): readonly Labels[] {
  const metadata = object.at("metadata");
  const written = Object.entries(metadata.texts("annotations")).filter(([key]) => !ASSIGNED.includes(key));
  return [metadata.texts("labels"), Object.fromEntries(written)];
}

/** A call that was broken off has left it without addresses, and the next review reserves them. */
function isUnreserved({ kind }: Pick<Subject, "kind">, current: Json): boolean {
  return kind.kind === "IPClaim" && new Fields(current).at("spec").text("nonce") === "";
}

function isSameClaim(current: Fields, json: Json): boolean {
  const [before, after] = [claimWritten(withoutOwn(current.value)), claimWritten(json)];
  return before !== undefined && after !== undefined && isDeepStrictEqual(before, after);
}

/** What of a claim a person writes. */
function withoutOwn(current: Json): Json {
  const { identity, request, retention, interface: attachTo } = new Fields(current).at("spec").value;
  return { ...current, spec: { identity, request, retention, interface: attachTo } };
}

function claimWritten(json: Json): Claim | undefined {
  const object = readObject(json);
  const claim = isRefusal(object) ? object : readClaimRequest(object);
  return isRefusal(claim) ? undefined : claim;
}

/** A pod is reviewed twice: before it has a name of its own and a uid, and as it will be. */
async function createPod(target: ReviewTarget, subject: Subject): Promise<Submitted> {
  const first = await ask(
    target,
    subject,
    { operation: "CREATE", object: subject.json, oldObject: null },
    "/mutate/pods",
  );
  if (first.denied !== "") return outcome(first, "created", subject.json);
  const patched = new Fields(applyAndVerify(subject.json, first.patch)).value;
  const name = subject.name === "" ? await generatedName(target, subject) : subject.name;
  const object = born(withMetadata(patched, { name }), target.io);
  const second = await write(target, { ...subject, name }, { object, oldObject: null });
  return { ...second, warnings: [...first.warnings, ...second.warnings] };
}

async function write(
  target: ReviewTarget,
  subject: Subject,
  to: { object: Json; oldObject: Json | null },
): Promise<Submitted> {
  const creates = to.oldObject === null;
  const answer = await ask(target, subject, { operation: creates ? "CREATE" : "UPDATE", ...to });
  return outcome(answer, creates ? "created" : "configured", to.object);
}

function ask(
  { webhook, dryRun }: ReviewTarget,
  { kind, namespace, name }: SubjectKey,
  how: { operation: Operation; object: Json | null; oldObject: Json | null },
  route = kind.route,
): Promise<Answer> {
  // The API server names a Namespace in both fields.
  const scope = kind.kind === "Namespace" ? name : namespace;
  return webhook.review(route, {
    kind: gvkOf(kind),
    resource: gvrOf(kind),
    name,
    namespace: scope,
    dryRun,
    ...how,
  });
}

function outcome(
  answer: Answer,
  verb: Extract<Submitted, { kind: "done" }>["verb"],
  object: Json,
): Submitted {
  const { denied, code, isFault, warnings } = answer;
  return denied === ""
    ? { kind: "done", verb, object, warnings }
    : { kind: "refused", why: denied, code, isFault, warnings };
}

function withMetadata(json: Json, more: Json): Json {
  return { ...json, metadata: { ...new Fields(json).at("metadata").value, ...more } };
}

/** What the API server fills in before it validates. */
function born(json: Json, { clock, uuid }: Pick<Io, "clock" | "uuid">): Json {
  return withMetadata(json, { uid: uuid(), creationTimestamp: timeOf(clock.now()) });
}

/** Until one is free, as the API server does. */
async function generatedName(
  { backend, io }: ReviewTarget,
  { namespace, generateName }: Subject,
): Promise<string> {
  for (;;) {
    const letters = Array.from({ length: SUFFIX_LENGTH }, () =>
      NAME_LETTERS.charAt(Math.floor(io.random.fraction() * NAME_LETTERS.length)),
    );
    const name = generateName.slice(0, LONGEST_PREFIX) + letters.join("");
    if ((await backend.admitted.object("Pod", namespace, name)) === undefined) return name;
  }
}
