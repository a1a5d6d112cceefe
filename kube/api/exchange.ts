// SPDX-License-Identifier: Apache-2.0

/** A call that is under way: a request, then its answer. It can be broken off at any moment, and fails then. */
export class Exchange {
  #waitsFor: { destroy(error: Error): unknown } | undefined;
  #broken: Error | undefined;

  /** What is to fail from now on, when it is broken off. */
  waitsFor(part: { destroy(error: Error): unknown }): void {
    this.#waitsFor = part;
    if (this.#broken !== undefined) part.destroy(this.#broken);
  }

  breakOff(error: Error): void {
    this.#broken ??= error;
    this.#waitsFor?.destroy(error);
  }
}
