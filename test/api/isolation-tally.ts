// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import type { Answer } from "../../kube/api/connection.ts";
import { statusOf } from "../../kube/api/status.ts";

/** A pod on the host's network that says that a claim is its: refused by policy alone. */
export const HOST_WITH_CLAIM = "on the host's network, with another's annotations: refused";
/** The least share of each outcome, so that the test is known to try what it is about. In thousandths. */
const LEAST: Readonly<Record<string, number>> = {
  obtained: 100,
  "POOL_FORBIDDEN namespace": 50,
  "POOL_FORBIDDEN account": 20,
  "POOL_FORBIDDEN labels": 15,
  LIMIT_REACHED: 15,
  POOL_DISABLED: 15,
  ADDRESS_EXCLUDED: 4,
  ADDRESS_OUTSIDE: 2,
  ADDRESS_TAKEN: 2,
  "obtained, with another's annotations": 20,
  "untouched, stripped of another's annotations": 2,
  [HOST_WITH_CLAIM]: 3,
};

/** A busy machine decides some too late, and says so: that is an answer, and nothing was given away by it. */
const TOO_LATE = "fault: too late";
/** The words of an API server that waited long enough for a webhook, or for etcd. */
const LATE = /deadline exceeded|timeout|timed out/i;

/** What came of it, in a word: for a refusal its code, and what of the pool denies it. */
export function refusalIn(answer: Answer): string {
  const { message, causes } = statusOf(answer.body, answer.status);
  if (message.includes("ValidatingAdmissionPolicy")) return "policy";
  const code = causes[0]?.reason ?? `${answer.status}`;
  if (answer.status !== 403 && (code === "TIMED_OUT" || LATE.test(message))) return TOO_LATE;
  if (answer.status !== 403) return `fault ${answer.status} ${code}`;
  if (code !== "POOL_FORBIDDEN") return code;
  if (message.includes("is not open to namespace")) return `${code} namespace`;
  if (message.includes("only for service accounts")) return `${code} account`;
  return `${code} labels`;
}

/** How often what came of it. */
export class Tally {
  readonly #times = new Map<string, number>(); // outcome -> how often

  count(outcome: string): void {
    this.#times.set(outcome, this.of(outcome) + 1);
  }

  of(outcome: string): number {
    return this.#times.get(outcome) ?? 0;
  }

  /** The commonest first. */
  lines(): readonly string[] {
    const all = [...this.#times].sort(([, a], [, b]) => b - a);
    return all.map(([what, times]) => `  ${times} ${what}`);
  }

  /** Enough was tried of everything, the policies agree with the webhook, and hardly anything failed. */
  assertTold(pods: number): void {
    const late = this.of(TOO_LATE);
    for (const [outcome, least] of Object.entries(LEAST)) {
      const share = (least * (pods - late)) / 1_000;
      // few pods have more or fewer of something rare, by chance
      const wanted = Math.max(1, share - 3 * Math.sqrt(share));
      assert.ok(this.of(outcome) >= wanted, `${this.of(outcome)} of ${outcome}`);
    }
    assert.equal(this.of("policy"), 0, "webhook and policies disagree");
    const faults = [...this.#times].filter(([what]) => what.startsWith("fault") && what !== TOO_LATE);
    const sum = faults.reduce((all, [, times]) => all + times, 0);
    assert.ok(sum <= pods / 100, `${sum} faults`);
  }
}
