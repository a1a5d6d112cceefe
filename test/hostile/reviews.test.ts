// SPDX-License-Identifier: Apache-2.0
// Admission reviews that no API server sends: each is answered with a decision in words, and the books stay in order.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import fc from "fast-check";
import { ANNOTATION_FORMATS } from "../../allocator/manifest/annotations.ts";
import { anyCharacter } from "../support/any-character.ts";
import { assertSound } from "../support/assert-audit.ts";
import { DB_POOL, poolRecord } from "../support/fixtures.ts";
import { pod, review } from "../support/objects.ts";
import { isFull } from "../support/runs.ts";
import { openWorld } from "../support/world.ts";
import { Growth } from "./growth.ts";
import { BASES, type Base, Webhook } from "./reviews.ts";
import { evilText, mutantOf, pathsOf, replacedAt, runs, SEED, WRONG_VALUES } from "./values.ts";

/** In short each place has a third of the wrong values, the next place the next third. */
const STEP = isFull ? 1 : 3;

const POOLS = [DB_POOL, poolRecord("web", "10.30.0.0/16")];

/** A world of its own, whose books are in order at the end. */
async function inWorld(work: (webhook: Webhook) => Promise<void>): Promise<void> {
  await using world = await openWorld({ pools: POOLS });
  await work(new Webhook(world));
  await assertSound(world);
}

describe("hostile admission reviews", () => {
  let cases = 0;
  const growth = new Growth();

  before(() => console.log(`seed ${SEED}`));
  after(() => console.log(`${cases} reviews`));

  it("with a wrong value at any place are decided in words", async () => {
    for (const { route, review: whole } of BASES) {
      await inWorld(async (webhook) => {
        for (const [n, path] of pathsOf(whole).entries()) {
          for (const wrong of WRONG_VALUES.filter((_, i) => (i + n) % STEP === 0)) {
            await webhook.send(route, JSON.stringify(replacedAt(whole, path, wrong)));
            cases++;
          }
        }
      });
    }
  });

  it("with several wrong values are too, and nothing of them stays in memory", async () => {
    const perRound = 4_000;
    const mutant = fc
      .constantFrom(...BASES)
      .chain(({ route, review: whole }) =>
        mutantOf(whole).map((mutated): Base => ({ route, review: mutated as Base["review"] })),
      );
    for (let round = 0; round < 5; round++) {
      await inWorld((webhook) =>
        fc.assert(
          fc.asyncProperty(mutant, async ({ route, review: mutated }) => {
            await webhook.send(route, JSON.stringify(mutated));
            cases++;
          }),
          { ...runs(perRound), seed: SEED + round },
        ),
      );
      growth.measure();
    }
    growth.assertNone();
  });

  it("of pods with annotations that nobody can mean are too", async () => {
    const keys = fc.constantFrom(
      ...ANNOTATION_FORMATS.map(({ key }) => key),
      "berth.dev/claim",
      "berth.dev/token",
    );
    const annotations = fc.dictionary(keys, evilText, { minKeys: 1, maxKeys: 3 });
    await inWorld((webhook) =>
      fc.assert(
        fc.asyncProperty(
          annotations,
          fc.constantFrom("/mutate/pods", "/validate/pods"),
          async (own, route) => {
            const object = pod(`pod-${cases % 50}`, { annotations: own, uid: "u" });
            const whole = {
              apiVersion: "admission.k8s.io/v1",
              kind: "AdmissionReview",
              request: review(object),
            };
            await webhook.send(route, JSON.stringify(whole));
            cases++;
          },
        ),
        runs(12_000),
      ),
    );
  });

  it("that are no reviews, or no JSON, are said to be none", async () => {
    const whole = JSON.stringify(BASES[0]?.review);
    const cut = fc.nat({ max: whole.length }).map((end) => whole.slice(0, end));
    const spoiled = fc
      .tuple(fc.nat({ max: whole.length - 1 }), fc.string({ unit: anyCharacter, minLength: 1, maxLength: 3 }))
      .map(([at, text]) => whole.slice(0, at) + text + whole.slice(at + 1));
    const any = fc.oneof(cut, spoiled, evilText, fc.json({ maxDepth: 6 }));
    await inWorld((webhook) =>
      fc.assert(
        fc.asyncProperty(any, async (body) => {
          await webhook.send("/mutate/pods", body);
          cases++;
        }),
        runs(12_000),
      ),
    );
  });

  it("that are deep, wide or long are decided, or said to be too much", async () => {
    const deep = (n: number, open: string, close: string) => `${open.repeat(n)}1${close.repeat(n)}`;
    const inside = (value: string) => JSON.stringify(BASES[0]?.review).replace('"10.20.0.70"', `${value}`);
    const bodies = [
      deep(5_000, "[", "]"),
      deep(5_000, '{"a":', "}"),
      inside(deep(900, "[", "]")),
      inside(deep(900, '{"a":', "}")),
      inside(JSON.stringify("a".repeat(7_000_000))),
      inside(JSON.stringify(Array.from({ length: 400_000 }, (_, i) => i))),
      inside(JSON.stringify(Object.fromEntries(Array.from({ length: 200_000 }, (_, i) => [`k${i}`, ""])))),
      inside(JSON.stringify(`10.20.0.70${";10.20.0.70".repeat(300_000)}`)),
      "[".repeat(8 * 1024 * 1024),
      `"${"\\u0000".repeat(1_000_000)}"`,
    ];
    await inWorld(async (webhook) => {
      for (const body of bodies) {
        const began = process.cpuUsage();
        await webhook.send("/mutate/pods", body);
        const { user, system } = process.cpuUsage(began);
        assert.ok(
          user + system < 3_000_000,
          `${body.slice(0, 40)}... took ${(user + system) / 1000} ms of CPU`,
        );
        cases++;
      }
    });
  });
});
