// SPDX-License-Identifier: Apache-2.0
import { BerthError } from "../../allocator/base/errors.ts";
import type { Kind } from "../../allocator/store/store.ts";

/** Something that is stored and cannot be read: it is there, and what it says is not known. */
export interface UnreadRecord {
  readonly kind: Kind | "host";
  readonly key: string;
  /** In words, with what to do. */
  readonly why: string;
}

/** What a command found that it could not read, and went on without. */
export class UnreadRecords {
  readonly #found = new Map<string, UnreadRecord>(); // kind and key -> it

  note(kind: UnreadRecord["kind"], key: string, { message: why }: BerthError): void {
    this.#found.set(`${kind} ${key}`, { kind, key, why });
  }

  /** Why it could not be read; undefined: it could, or is not there. */
  why(kind: UnreadRecord["kind"], key: string): string | undefined {
    return this.#found.get(`${kind} ${key}`)?.why;
  }

  all(): readonly UnreadRecord[] {
    return [...this.#found.values()];
  }

  /** The same, and whoever asks tells of them: nobody is warned of them again. */
  taken(): readonly UnreadRecord[] {
    const all = this.all();
    this.#found.clear();
    return all;
  }

  /** Undefined: it is not there, or cannot be read, which is noted. */
  async read<T>(kind: Kind, key: string, get: () => Promise<T | undefined>): Promise<T | undefined> {
    try {
      return await get();
    } catch (error) {
      if (!(error instanceof BerthError) || error.code !== "STATE_CORRUPT") throw error;
      this.note(kind, key, error);
      return undefined;
    }
  }
}
