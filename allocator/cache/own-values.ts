// SPDX-License-Identifier: Apache-2.0

/** Between two values. No value has it, or the record is not packed. */
const BETWEEN = "\n";
/** In the place of a value that is not there. */
const ABSENT = "\t";
const BASE = 36;

/**
 * Values of one record, in a fixed order, as one text. In V8 each text has 16 bytes besides its characters, a large number
 * 16 and an object 24, and each is pointed to with 8: a record of many takes several times what its characters take.
 */
export class ValueWriter {
  readonly #values: string[] = [];
  #fits = true;

  text(value: string | undefined): this {
    if (value?.includes(BETWEEN) || value?.includes(ABSENT)) this.#fits = false;
    this.#values.push(value ?? ABSENT);
    return this;
  }

  /** Whole. */
  number(value: number | undefined): this {
    if (value !== undefined && (!Number.isSafeInteger(value) || Object.is(value, -0))) this.#fits = false;
    this.#values.push(value === undefined ? ABSENT : value.toString(BASE));
    return this;
  }

  /** Undefined: one of the values cannot be written so. */
  get written(): string | undefined {
    return this.#fits ? this.#values.join(BETWEEN) : undefined;
  }
}

/** Reads them again, in the order in which they were written. */
export class ValueReader {
  readonly #values: readonly string[];
  #at = 0;

  constructor(written: string) {
    this.#values = written.split(BETWEEN);
  }

  text(): string {
    return this.#values[this.#at++] ?? "";
  }

  textIfAny(): string | undefined {
    const value = this.text();
    return value === ABSENT ? undefined : value;
  }

  number(): number {
    return Number.parseInt(this.text(), BASE);
  }

  numberIfAny(): number | undefined {
    const value = this.textIfAny();
    return value === undefined ? undefined : Number.parseInt(value, BASE);
  }
}

/** Milliseconds since 1970 in two whole numbers. V8 keeps small ones in the field itself, and others beside it with 16 bytes more. */
export function secondsOf(ms: number): number {
  const seconds = Math.floor(ms / 1000);
  const small = seconds | 0; // of an operation on integers V8 knows that it is one
  return small === seconds ? small : seconds;
}
