// SPDX-License-Identifier: Apache-2.0

import type { Route } from "../../webhook/review/admission-review.ts";
import { BASES } from "./reviews.ts";
import { EVIL_TEXTS, pathsOf, replacedAt, WRONG_VALUES } from "./values.ts";

const deep = (n: number, open: string, close: string) => `${open.repeat(n)}1${close.repeat(n)}`;
const inside = (value: string) => JSON.stringify(BASES[0]?.review).replace('"10.20.0.70"', `${value}`);

/** Deep, wide or long, up to what is read. */
export const LARGE_BODIES: readonly (() => string)[] = [
  () => deep(5_000, "[", "]"),
  () => deep(5_000, '{"a":', "}"),
  () => inside(deep(900, "[", "]")),
  () => inside(deep(900, '{"a":', "}")),
  () => inside(JSON.stringify("a".repeat(7_000_000))),
  () => inside(JSON.stringify("__proto__".repeat(700_000))),
  () => inside(JSON.stringify(Array.from({ length: 400_000 }, (_, i) => i))),
  () => inside(JSON.stringify(Object.fromEntries(Array.from({ length: 200_000 }, (_, i) => [`k${i}`, ""])))),
  () => inside(JSON.stringify(`10.20.0.70${";10.20.0.70".repeat(300_000)}`)),
  () => "[".repeat(8 * 1024 * 1024),
  () => `"${"\\u0000".repeat(1_000_000)}"`,
];

export interface HostileBody {
  readonly route: Route;
  readonly body: string;
}

/** Real reviews of every route with a wrong value at any place, and what is no review or no JSON. */
export function* malformed(): Generator<HostileBody> {
  for (const { route, review } of BASES) {
    const whole = JSON.stringify(review);
    for (const body of EVIL_TEXTS) yield { route, body };
    for (let cut = 0; cut < whole.length; cut += 101) yield { route, body: whole.slice(0, cut) };
    for (const path of pathsOf(review)) {
      for (const wrong of WRONG_VALUES)
        yield { route, body: JSON.stringify(replacedAt(review, path, wrong)) ?? "" };
    }
  }
}
