// SPDX-License-Identifier: Apache-2.0
import { BerthError, messageOf } from "../../base/errors.ts";
import { type Logger, noopLogger } from "../../base/ports.ts";
import { type Fields, milliseconds, object, optional, text } from "../decode.ts";
import type { EtcdClient } from "./client.ts";
import { PREFIX, readable, valueIn } from "./entry.ts";
import type { KeyValue } from "./messages.ts";
import { pagesOf } from "./pages.ts";

/** What a host that gives addresses out of etcd says of itself. */
export interface HostRecord {
  /** The id of its journal: who else is called so has another one. */
  readonly journal: string;
  /** Of the process that serves; the next one has another. */
  readonly process: string;
  /** Milliseconds since 1970, by the host's own clock: for people. */
  readonly seen: number;
  /** A person has said that it is gone for good, so that its addresses may be others'. */
  readonly fenced?: { readonly at: number; readonly by: string };
  /** Why it gives no address, though it is alive, in words for people. */
  readonly refusal?: string;
}

export interface StoredHost {
  readonly name: string;
  readonly record: HostRecord;
  /** Changes with every write. */
  readonly revision: number;
}

const FENCED: Fields<NonNullable<HostRecord["fenced"]>> = { at: milliseconds, by: text };
const readFenced = object<NonNullable<HostRecord["fenced"]>>(FENCED);
const readRecord = object<HostRecord>({
  journal: text,
  process: text,
  seen: milliseconds,
  fenced: optional(readFenced),
  refusal: optional(text),
});

type Unreadable = (fault: BerthError, name: string) => void;

/** The hosts that share an etcd, each under its name: /berth/v1/host/NAME. */
export class HostRegistry {
  readonly #client: Pick<EtcdClient, "range" | "change">;
  readonly #folder = `${PREFIX}/host/`;
  readonly #log: Logger;
  readonly #unreadable: Unreadable;

  /** `unreadable` is told of what a list cannot read, in place of the log. */
  constructor(
    client: Pick<EtcdClient, "range" | "change">,
    log: Logger = noopLogger,
    unreadable: Unreadable = ({ message }) =>
      log.error("host cannot be read and is passed over", { error: message }),
  ) {
    this.#client = client;
    this.#log = log;
    this.#unreadable = unreadable;
  }

  /** Where its record is in etcd. */
  keyOf(name: string): string {
    return `${this.#folder}${name}`;
  }

  /** As a majority of the members has it. Throws BerthError. */
  async get(name: string): Promise<StoredHost | undefined> {
    const { entries } = await this.#client.range({ key: this.keyOf(name) });
    return entries[0] && this.#read(entries[0]);
  }

  /** All that can be read: of another one nobody knows whether a person has said that it is gone, so it is not. */
  async list(): Promise<readonly StoredHost[]> {
    const range = { key: this.#folder, end: `${this.#folder.slice(0, -1)}0` }; // "0" comes after "/"
    const hosts: StoredHost[] = [];
    for await (const { entries } of pagesOf({ client: this.#client, log: this.#log }, range)) {
      for (const entry of entries) {
        const tell = (fault: BerthError) => this.#unreadable(fault, entry.key.slice(this.#folder.length));
        const host = readable(() => this.#read(entry), tell);
        if (host !== undefined) hosts.push(host);
      }
    }
    return hosts;
  }

  /**
   * Compare-and-set on the revision that was seen, 0 for a host that is not there. Throws STORE_UNAVAILABLE or TIMED_OUT
   * when it may have been written.
   */
  async put(name: string, record: HostRecord, seen: number): Promise<StoredHost | "changed"> {
    const change = { key: this.keyOf(name), modRevision: seen, value: JSON.stringify(record) };
    const answer = await this.#client.change(change);
    if (answer.kind === "lost") throw answer.error;
    return answer.done ? { name, record, revision: answer.revision } : "changed";
  }

  #read(entry: KeyValue): StoredHost {
    const { key, modRevision } = entry;
    const name = key.slice(this.#folder.length);
    try {
      const value = valueIn(entry);
      // what a newer Berth wrote beside is left alone: the host itself writes it again
      return { name, record: readRecord(JSON.parse(value), "host", []), revision: modRevision };
    } catch (error) {
      const words = `${key} in etcd is no host (${messageOf(error)}); delete it, and the host writes it again`;
      throw new BerthError("STATE_CORRUPT", words, { details: { key }, cause: error });
    }
  }
}
