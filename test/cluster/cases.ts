// SPDX-License-Identifier: Apache-2.0
import { appendFileSync, mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";

const TIMES = fileURLToPath(new URL("../../build/cluster-times.jsonl", import.meta.url));

/** Those cases alone that fit, beside everything else, into a gate's time; the others are left out, by name. */
export function isForGate(): boolean {
  return process.env["BERTH_CASES"] === "ci";
}

/** The cluster was there before, and its nodes are not this host's to switch off. */
export function isExternal(): boolean {
  return process.env["USE_EXISTING_CLUSTER"] === "true";
}

export interface CaseOptions {
  /** It takes minutes: for whoever asks for all. */
  readonly slow?: boolean;
  /** It switches nodes or parts of the control plane off. */
  readonly machines?: boolean;
  readonly timeoutMs?: number;
}

/** Options of a test; where it is left out, why. */
export function caseOptions({ slow = false, machines = false, timeoutMs = 300_000 }: CaseOptions = {}) {
  const skip =
    slow && isForGate()
      ? "left out: it takes minutes"
      : machines && isExternal() && "left out: it needs machines of its own, and USE_EXISTING_CLUSTER is set";
  return { skip, timeout: timeoutMs };
}

/** How long the steps of a case took. */
export class Times {
  readonly #id: string;
  readonly #steps: Record<string, number> = {};
  readonly #start = performance.now();
  #last = this.#start;

  constructor(id: string) {
    this.#id = id;
  }

  /** Since the step before, or since the start. */
  step(name: string): void {
    const now = performance.now();
    this.#steps[name] = Math.round(now - this.#last);
    this.#last = now;
  }

  /** One line of JSON, printed and kept. */
  end(more: Readonly<Record<string, unknown>> = {}): void {
    const total = Math.round(performance.now() - this.#start);
    const line = JSON.stringify({ case: this.#id, ms: total, steps: this.#steps, ...more });
    console.log(line);
    mkdirSync(dirname(TIMES), { recursive: true });
    appendFileSync(TIMES, `${line}\n`);
  }
}
