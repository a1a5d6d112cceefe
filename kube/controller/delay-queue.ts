// SPDX-License-Identifier: Apache-2.0

interface Entry {
  readonly key: string;
  readonly due: number;
}

/** Keys by when they are due, a heap: what is due is found at once, however many are not. */
export class DelayQueue {
  readonly #due = new Map<string, number>(); // key -> when it is due
  /** The soonest first: 2i + 1 and 2i + 2 are no sooner than i. An appointment that is not in `#due` any more is void. */
  #heap: Entry[] = [];

  get size(): number {
    return this.#due.size;
  }

  keys(): Iterable<string> {
    return this.#due.keys();
  }

  /** When the key is due; infinite for one that is not in it. */
  of(key: string): number {
    return this.#due.get(key) ?? Number.POSITIVE_INFINITY;
  }

  /** In place of what was appointed for the key. */
  set(key: string, due: number): void {
    this.#due.set(key, due);
    this.#heap.push({ key, due });
    this.#rise(this.#heap.length - 1);
    if (this.#heap.length > 2 * this.#due.size + 16) this.#tidy();
  }

  delete(key: string): void {
    this.#due.delete(key);
  }

  /** When the first of all keys is due; infinite without any. */
  soonest(): number {
    return this.#first()?.due ?? Number.POSITIVE_INFINITY;
  }

  /** Takes out the key that is due first, if it is due by then. */
  take(now: number): string | undefined {
    const first = this.#first();
    if (first === undefined || first.due > now) return undefined;
    this.#pop();
    this.#due.delete(first.key);
    return first.key;
  }

  #first(): Entry | undefined {
    for (;;) {
      const [first] = this.#heap;
      if (first === undefined || this.#due.get(first.key) === first.due) return first;
      this.#pop();
    }
  }

  #pop(): void {
    const last = this.#heap.pop();
    if (last === undefined || this.#heap.length === 0) return;
    this.#heap[0] = last;
    this.#sink(0);
  }

  /** Without what is void. Sorted is a heap too. */
  #tidy(): void {
    this.#heap = [...this.#due].map(([key, due]) => ({ key, due })).sort((a, b) => a.due - b.due);
  }

  #rise(from: number): void {
    for (let i = from; i > 0; ) {
      const above = (i - 1) >>> 1;
      if (this.#dueAt(above) <= this.#dueAt(i)) return;
      this.#swap(i, above);
      i = above;
    }
  }

  #sink(from: number): void {
    for (let i = from; ; ) {
      const [left, right] = [2 * i + 1, 2 * i + 2];
      const sooner = this.#dueAt(right) < this.#dueAt(left) ? right : left;
      if (this.#dueAt(i) <= this.#dueAt(sooner)) return;
      this.#swap(i, sooner);
      i = sooner;
    }
  }

  #dueAt(i: number): number {
    return this.#heap[i]?.due ?? Number.POSITIVE_INFINITY;
  }

  #swap(i: number, j: number): void {
    const [a, b] = [this.#heap[i], this.#heap[j]];
    if (a === undefined || b === undefined) return;
    this.#heap[i] = b;
    this.#heap[j] = a;
  }
}
