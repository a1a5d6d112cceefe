// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { randomBytes, randomUUID } from "node:crypto";
import { applyPatch } from "rfc6902";
import { type Manifest, type Metadata, type Question, ReviewClient, type Verdict } from "./review.ts";
import type { Endpoint } from "./stack-folder.ts";

/** An object as the API server keeps it. */
export interface Kept extends Manifest {
  readonly metadata: Metadata & { readonly name: string; readonly uid: string };
}

export type Outcome =
  | { readonly kind: "kept"; readonly object: Kept; readonly warnings: readonly string[] }
  | { readonly kind: "refused"; readonly reason: string; readonly message: string };

const ROUTES: Readonly<Record<string, string>> = {
  Namespace: "/validate/namespaces",
  Pod: "/validate/pods",
  StatefulSet: "/validate/workloads",
  Deployment: "/validate/workloads",
  IPPool: "/validate/pools",
  IPClaim: "/validate/claims",
};

interface HowToWrite {
  readonly dryRun?: boolean;
  /** As if the mutating webhook were not configured, or were down with failurePolicy Ignore. */
  readonly skipMutation?: boolean;
}

/** Does with an object what the API server does between a request and etcd: asks the webhooks, and keeps the result. */
export class ApiServer {
  readonly #client: ReviewClient;
  readonly #kept = new Map<string, Kept>(); // kind/namespace/name -> object

  constructor(endpoint: Endpoint, connections?: number) {
    this.#client = new ReviewClient(endpoint, connections);
  }

  /** Creates, or updates what is there under the same name. Pods are reviewed twice: before and after they have a uid. */
  async write(
    manifest: Manifest,
    { dryRun = false, skipMutation = false }: HowToWrite = {},
  ): Promise<Outcome> {
    const warnings: string[] = [];
    const old = this.#kept.get(keyOf(manifest));
    const create = { operation: "CREATE", oldObject: null, dryRun } as const;
    let object = manifest;
    if (manifest.kind === "Pod" && !skipMutation) {
      const verdict = await this.ask({ ...create, route: "/mutate/pods", object });
      if (!verdict.allowed) return refused(verdict);
      warnings.push(...verdict.warnings);
      object = this.mutated(manifest, verdict);
      if (dryRun) return { kind: "kept", object: born(object), warnings };
    }
    const next = born(object, old);
    const route = ROUTES[manifest.kind] ?? "";
    const verdict = await this.ask(
      old === undefined
        ? { ...create, route, object: next }
        : { route, operation: "UPDATE", object: next, oldObject: old, dryRun },
    );
    if (!verdict.allowed) return refused(verdict);
    if (!dryRun) this.#kept.set(keyOf(next), next);
    return { kind: "kept", object: next, warnings: [...warnings, ...verdict.warnings] };
  }

  /** Writes what must be let through. */
  async create(manifest: Manifest): Promise<Kept> {
    const outcome = await this.write(manifest);
    assert.equal(outcome.kind, "kept", outcome.kind === "refused" ? outcome.message : "");
    return outcome.kind === "kept" ? outcome.object : assert.fail();
  }

  /** Writes what must be refused; answers with the words. */
  async refusal(manifest: Manifest): Promise<{ readonly reason: string; readonly message: string }> {
    const outcome = await this.write(manifest);
    assert.equal(outcome.kind, "refused", "it was let through");
    return outcome.kind === "refused" ? outcome : assert.fail();
  }

  /** What its kubelet says of a pod: its phase, while the object stays. */
  async report(pod: Kept, phase: "Running" | "Succeeded" | "Failed"): Promise<void> {
    const object: Kept = { ...pod, status: { phase } };
    const how = {
      route: "/validate/pods",
      operation: "UPDATE",
      subResource: "status",
      dryRun: false,
    } as const;
    const verdict = await this.ask({ ...how, object, oldObject: pod });
    assert.ok(verdict.allowed, verdict.message);
    this.#kept.set(keyOf(object), object);
  }

  async delete(object: Kept, { dryRun = false }: HowToWrite = {}): Promise<Outcome> {
    const route = ROUTES[object.kind] ?? "";
    const verdict = await this.ask({ route, operation: "DELETE", object: null, oldObject: object, dryRun });
    if (!verdict.allowed) return refused(verdict);
    if (!dryRun) this.#kept.delete(keyOf(object));
    return { kind: "kept", object, warnings: verdict.warnings };
  }

  /** The object with the verdict's patch, as the API server applies it, and not with the code that made it. */
  mutated(manifest: Manifest, { patch }: Verdict): Manifest {
    const object = structuredClone(manifest);
    const problems = applyPatch(object, [...patch]).filter((problem) => problem !== null);
    assert.deepEqual(problems, [], "the patch applies");
    return object;
  }

  /** One review by itself. */
  async ask(question: Question): Promise<Verdict> {
    return await this.#client.ask(question);
  }

  close(): void {
    this.#client.close();
  }
}

function refused({ reason, message }: Verdict): Outcome {
  return { kind: "refused", reason, message };
}

/** Name and uid come after mutation. */
function born(object: Manifest, old?: Kept): Kept {
  const { name = "", generateName = "" } = object.metadata;
  const given = name === "" ? `${generateName}${randomBytes(3).toString("hex").slice(0, 5)}` : name;
  const metadata = { ...object.metadata, name: given, uid: old?.metadata.uid ?? randomUUID() };
  return { ...object, metadata };
}

function keyOf({ kind, metadata }: Manifest): string {
  return `${kind}/${metadata.namespace ?? ""}/${metadata.name ?? ""}`;
}
