// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { Fields, type KubeObject, readObject } from "../../allocator/manifest/kubernetes-object.ts";
import { granted } from "../../test/support/fixtures.ts";
import type { Json } from "../../test/support/objects.ts";
import { openWorld, type World, type WorldOptions } from "../../test/support/world.ts";
import { createHandlers } from "../../webhook/admission/routes.ts";
import { parseReview, reviewOf } from "../../webhook/review/admission-review.ts";
import { kindNamed } from "../apply/kinds.ts";
import { subjectOf } from "../apply/object-ref.ts";
import { type ReviewInput, readAnswer } from "../apply/review-client.ts";
import { type ReviewTarget, type Submitted, submit } from "../apply/submit.ts";

export interface Asked extends ReviewInput {
  readonly route: string;
}

/** A world that is closed when its test is over. */
export async function worldFor(t: TestContext, options?: WorldOptions): Promise<World> {
  const world = await openWorld(options);
  t.after(() => world[Symbol.asyncDispose]());
  return world;
}

/** A counter at the real decisions, without the network between them; `asked` has every question. */
export function counterAt(world: World, dryRun = false): { target: ReviewTarget; asked: Asked[] } {
  const handlers = createHandlers(world.admission);
  const asked: Asked[] = [];
  let uuids = 0;
  const target: ReviewTarget = {
    dryRun,
    io: {
      clock: world.clock,
      random: { token: () => "", fraction: () => 0.5 },
      uuid: () => `uuid-${++uuids}`,
    },
    backend: {
      store: world.realStore,
      admitted: world.objects,
      attachments: () => [],
      journal: () => ({ journal: "", position: 0 }),
    },
    webhook: {
      review: async (route, question) => {
        asked.push({ route, ...structuredClone(question) });
        const body = {
          apiVersion: "admission.k8s.io/v1",
          kind: "AdmissionReview",
          request: { uid: "u", ...question },
        };
        const parsed = parseReview(body);
        assert.ok("request" in parsed);
        await world.settle();
        const response = await handlers[route](parsed.request, AbortSignal.timeout(5_000));
        await world.settle();
        return readAnswer(JSON.stringify(reviewOf(response)), "u");
      },
    },
  };
  return { target, asked };
}

export async function send(target: ReviewTarget, json: Json): Promise<Submitted> {
  const kind = kindNamed(String(json["kind"]));
  assert.ok(kind);
  return await submit(target, granted(subjectOf({ kind, json })));
}

/** The verb, or the refusal. */
export function said(submitted: Submitted | undefined): string {
  if (submitted === undefined) return "none";
  return submitted.kind === "done" ? submitted.verb : `refused: ${submitted.why}`;
}

export function object(submitted: Submitted): KubeObject {
  assert.ok(submitted.kind === "done");
  return granted(readObject(submitted.object));
}

/** Of what the object was before. */
export function specOf(question: Asked | undefined): unknown {
  return new Fields(question?.oldObject).get("spec");
}
