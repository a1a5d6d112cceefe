// SPDX-License-Identifier: Apache-2.0

import { BerthError } from "../../allocator/base/errors.ts";
import type { Clock, Random } from "../../allocator/base/ports.ts";
import type { BlockStatus } from "../../allocator/model/block.ts";
import type { ClaimStatus } from "../../allocator/model/claim.ts";
import { keyOf } from "../../allocator/store/codec.ts";
import type {
  Change,
  CreateResult,
  Kind,
  Records,
  RemoveResult,
  ReplaceResult,
  Store,
  Stored,
} from "../../allocator/store/store.ts";
import type { MemoryRecords } from "./memory-records.ts";
import type { Observation, Process } from "./process.ts";
import { inShort } from "./record-words.ts";

/** The store as one process has it: every verb is one step. */
export class ProcessStore implements Store {
  readonly stampsSeconds?: true;
  readonly #process: Process;
  readonly #records: MemoryRecords;
  readonly #now: () => number;

  constructor(
    process: Process,
    auditInput: MemoryRecords,
    { now, stampsSeconds }: { readonly now: () => number; readonly stampsSeconds: boolean },
  ) {
    this.#process = process;
    this.#records = auditInput;
    if (stampsSeconds) this.stampsSeconds = true;
    this.#now = stampsSeconds ? () => 1_000 * Math.floor(now() / 1_000) : now;
  }

  /** Stamped when it begins, as an API server does: quotas and webhooks come between that and the write. */
  async create<K extends Kind>(kind: K, record: Records[K]): Promise<CreateResult<K>> {
    const call = () => `create ${kind} ${keyOf(kind, record)}: ${inShort(kind, record)}`;
    const stamp = this.stampsSeconds === undefined ? undefined : await this.#begin(call);
    return await this.#process.turn({
      call,
      perform: () => this.#records.create(kind, record, stamp ?? this.#now()),
      learn: (result) => ({ text: result.kind, kind, stored: result.stored }),
    });
  }

  #begin(call: () => string): Promise<number> {
    return this.#process.turn({
      call: () => `begin to ${call()}`,
      perform: () => this.#now(),
      learn: (time) => ({ text: "begun", time }),
    });
  }

  get<K extends Kind>(kind: K, key: string): Promise<Stored<K> | undefined> {
    return this.#process.turn({
      call: () => `get ${kind} ${key}`,
      perform: () => this.#records.get(kind, key),
      learn: (stored) => ({
        text: "none",
        question: `get ${kind}`,
        ...(stored && { text: "found", kind, stored }),
      }),
    });
  }

  replace<K extends Kind>(kind: K, seen: Stored<K>, next: Records[K]): Promise<ReplaceResult<K>> {
    return this.#process.turn({
      call: () => `replace ${kind} ${seen.key} r${seen.revision}: ${inShort(kind, next)}`,
      perform: () => this.#records.replace(kind, seen, next),
      learn: (result) => replaced(kind, result),
    });
  }

  report(seen: Stored<"claim">, status: ClaimStatus): Promise<ReplaceResult<"claim">> {
    return this.#process.turn({
      call: () =>
        `report claim ${seen.key} r${seen.revision}: ${status.attachment?.detached === true ? "detached" : "attached"}`,
      perform: () => this.#records.report(seen, status),
      learn: (result) => replaced("claim", result),
    });
  }

  reportBlock(seen: Stored<"block">, status: BlockStatus): Promise<ReplaceResult<"block">> {
    const word = status.returnedAt === undefined ? `used ${status.used}` : "returned";
    return this.#process.turn({
      call: () => `report block ${seen.key} r${seen.revision}: ${word}`,
      perform: () => this.#records.reportBlock(seen, status),
      learn: (result) => replaced("block", result),
    });
  }

  remove<K extends Kind>(kind: K, seen: Stored<K>): Promise<RemoveResult> {
    return this.#process.turn({
      call: () => `remove ${kind} ${seen.key} r${seen.revision}`,
      perform: () => this.#records.remove(kind, seen),
      learn: (result) => ({ text: result.kind }),
    });
  }

  list<K extends Kind>(kind: K): AsyncIterable<Stored<K>> {
    throw new BerthError("INTERNAL", `list of ${kind} is not explored: a step is one answer`);
  }

  watch<K extends Kind>(kind: K): AsyncIterable<Change<K>> {
    throw new BerthError("INTERNAL", `watch of ${kind} is not explored; give the process a view instead`);
  }

  async close(): Promise<void> {}
}

function replaced(kind: Kind, result: ReplaceResult<Kind>): Observation {
  return result.kind === "replaced"
    ? { text: "replaced", kind, stored: result.stored }
    : { text: "conflict" };
}

/** Time as one process has it. Sleeping is a step that takes no time: time goes by in steps of its own. */
export function processClock(process: Process, now: () => number): Clock {
  return {
    now: () => process.noteTime(now()),
    monotonic: () => process.noteTime(now()),
    sleep: (ms) =>
      process.turn({
        call: () => `sleep ${ms} ms`,
        perform: () => undefined,
        learn: () => ({ text: "woken" }),
      }),
  };
}

export function processRandom(process: Process): Random {
  return { token: () => process.token(), fraction: () => 0.5 };
}
