// SPDX-License-Identifier: Apache-2.0

import type { PodState } from "../../allocator/model/cluster-state.ts";

/** Token -> the pod that was admitted with it. */
export type ByToken = ReadonlyMap<string, PodState>;

/**
 * Looks for pods by their tokens, for which a whole namespace has to be listed. Whoever asks while it is being listed shares the
 * next list with all others who ask: each hears of what was there after it asked.
 */
export class PodsByToken {
  readonly #list: (namespace: string) => Promise<ByToken>;
  readonly #running = new Map<string, Promise<unknown>>(); // namespace -> the list under way
  readonly #next = new Map<string, Promise<ByToken>>(); // namespace -> the list after that one

  constructor(list: (namespace: string) => Promise<ByToken>) {
    this.#list = list;
  }

  async find(namespace: string, token: string): Promise<PodState | undefined> {
    const next = this.#next.get(namespace) ?? this.#queue(namespace);
    return (await next).get(token);
  }

  #queue(namespace: string): Promise<ByToken> {
    const before = this.#running.get(namespace) ?? Promise.resolve();
    const next = before.then(() => {
      this.#next.delete(namespace);
      const list = this.#list(namespace);
      const ended = list
        .catch(() => undefined)
        .then(() => {
          if (this.#running.get(namespace) === ended) this.#running.delete(namespace);
        });
      this.#running.set(namespace, ended);
      return list;
    });
    this.#next.set(namespace, next);
    return next;
  }
}
