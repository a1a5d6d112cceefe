// SPDX-License-Identifier: Apache-2.0

/** How it stands with a pod or claim: one sentence, whether it is stuck, and what to do. */
export interface Diagnosis {
  /** Goes on behind the subject: "has its addresses". */
  readonly words: string;
  /** Of a pod: the same behind its claim; absent, nothing else than that the pod wants it. */
  readonly ofClaim?: string;
  readonly stuck: boolean;
  /** Each a whole advice. */
  readonly next: readonly string[];
}

export function blocked(words: string, ...next: readonly string[]): Diagnosis {
  return { words, stuck: true, next };
}

export function ok(words: string): Diagnosis {
  return { words, stuck: false, next: [] };
}
