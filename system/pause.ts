// SPDX-License-Identifier: Apache-2.0
/** A time in which something is not done; a longer one replaces what is left of it. */
export class Pause {
  readonly #onEnd: () => void;
  #timer: NodeJS.Timeout | undefined;
  #until = 0;

  constructor(onEnd: () => void) {
    this.#onEnd = onEnd;
  }

  get isOn(): boolean {
    return this.#timer !== undefined;
  }

  last(ms: number): void {
    const until = performance.now() + ms;
    if (this.isOn && until <= this.#until) return;
    this.#until = until;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#onEnd();
    }, ms).unref();
  }
}
