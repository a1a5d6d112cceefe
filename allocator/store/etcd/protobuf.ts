// SPDX-License-Identifier: Apache-2.0
// The wire format of protocol buffers, as far as etcd's messages need it: whole numbers, text, and messages in messages.
// https://protobuf.dev/programming-guides/encoding/

const VARINT = 0;
const FIXED64 = 1;
const BYTES = 2;
const FIXED32 = 5;

/** Puts a message together, field by field. A zero that is written is one, as a member of a `oneof` needs it. */
export class MessageWriter {
  readonly #parts: Uint8Array[] = [];

  /** `int64`, or an enum; never negative here. */
  int(field: number, value: number): this {
    this.#varint(field * 8 + VARINT);
    return this.#varint(value);
  }

  flag(field: number, value: boolean): this {
    return this.int(field, value ? 1 : 0);
  }

  /** `string`, or `bytes` that are UTF-8. */
  text(field: number, value: string): this {
    return this.#bytes(field, Buffer.from(value, "utf8"));
  }

  message(field: number, value: MessageWriter): this {
    return this.#bytes(field, value.bytes());
  }

  bytes(): Buffer {
    return Buffer.concat(this.#parts);
  }

  #bytes(field: number, value: Uint8Array): this {
    this.#varint(field * 8 + BYTES);
    this.#varint(value.length);
    this.#parts.push(value);
    return this;
  }

  #varint(value: number): this {
    if (!Number.isSafeInteger(value) || value < 0) throw new TypeError(`${value} cannot be written`);
    const bytes: number[] = [];
    let left = value;
    for (; left >= 128; left = Math.floor(left / 128)) bytes.push((left % 128) + 128);
    this.#parts.push(Uint8Array.from([...bytes, left]));
    return this;
  }
}

/** A field of a message that is read. Each of these throws TypeError for a value that is not of its kind. */
export interface FieldValue {
  /** Exactly: what a number cannot hold is refused. */
  int(): number;
  /** A number of any size, in hexadecimal digits. */
  hex(): string;
  flag(): boolean;
  text(): string;
  /** A message in the message. */
  bytes(): Buffer;
}

/**
 * Reads a message, in the order in which its fields were written: each known one is given to its reader, the others are
 * passed over. Throws TypeError for bytes that are no message.
 */
export function readMessage(
  bytes: Uint8Array,
  readers: Readonly<Record<number, (value: FieldValue) => void>>,
): void {
  const cursor = new Cursor(bytes);
  while (!cursor.done) {
    const tag = cursor.exact();
    const value = cursor.value(tag % 8);
    readers[Math.floor(tag / 8)]?.(value);
  }
}

class Cursor {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  get done(): boolean {
    return this.#at >= this.#bytes.length;
  }

  value(wire: number): FieldValue {
    switch (wire) {
      case VARINT:
        return numberValue(this.#varint());
      case BYTES:
        return bytesValue(this.#take(this.exact()));
      case FIXED64:
        return bytesValue(this.#take(8));
      case FIXED32:
        return bytesValue(this.#take(4));
      default:
        throw new TypeError(`there is no wire type ${wire}`);
    }
  }

  exact(): number {
    return exactly(this.#varint());
  }

  #take(length: number): Buffer {
    const start = this.#at;
    if (length < 0 || start + length > this.#bytes.length) throw new TypeError("it ends within a field");
    this.#at += length;
    return this.#bytes.subarray(start, this.#at);
  }

  #varint(): bigint {
    let value = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = this.#bytes[this.#at++];
      if (byte === undefined) throw new TypeError("it ends within a field");
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) return value;
    }
    throw new TypeError("a number has more than ten bytes");
  }
}

function exactly(value: bigint): number {
  const signed = BigInt.asIntN(64, value);
  const number = Number(signed);
  if (!Number.isSafeInteger(number)) throw new TypeError(`${signed} is too large to be read exactly`);
  return number;
}

function numberValue(value: bigint): FieldValue {
  return {
    int: () => exactly(value),
    hex: () => value.toString(16),
    flag: () => value !== 0n,
    text: () => wrong("text"),
    bytes: () => wrong("a message"),
  };
}

function bytesValue(value: Buffer): FieldValue {
  return {
    int: () => wrong("a number"),
    hex: () => wrong("a number"),
    flag: () => wrong("a flag"),
    text: () => value.toString("utf8"),
    bytes: () => value,
  };
}

function wrong(what: string): never {
  throw new TypeError(`a field is not ${what}`);
}
