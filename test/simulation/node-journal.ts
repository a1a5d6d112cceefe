// SPDX-License-Identifier: Apache-2.0
import type { Database } from "../../allocator/store/sqlite/database.ts";
import type { MarkFile } from "../../ipam-plugin/agent/journal/boot-mark.ts";
import { copyOf } from "./journal-disk.ts";

/** The journal that is in its folder on a node, and the mark of the one that has served in this boot. */
export class NodeJournal {
  readonly #spare: () => Database;
  #journal: Database;
  /** That of the boot, while another one is in its place. */
  #lost: Database | undefined;
  #copy: Database | undefined;
  #mark: string | undefined;
  #markAtLoss: string | undefined;

  /** `spare` gives an empty one. */
  constructor(database: Database, spare: () => Database) {
    this.#journal = database;
    this.#spare = spare;
  }

  get database(): Database {
    return this.#journal;
  }

  /** Not the one that has served since the node booted. */
  get isOther(): boolean {
    return this.#lost !== undefined;
  }

  /** An empty one is there, or the copy. */
  lose(withMark: boolean): void {
    if (withMark) this.#mark = undefined;
    this.#markAtLoss = this.#mark;
    this.#lost = this.#journal;
    this.#journal = this.#copy ?? this.#spare();
    this.#copy = undefined;
  }

  copy(): Promise<void> {
    this.#copy = this.#spare();
    return copyOf(this.#journal, this.#copy);
  }

  /** The old one is put back, unless the other has begun to serve. */
  find(): boolean {
    const old = this.#lost;
    this.#lost = undefined;
    if (old === undefined || this.#mark !== this.#markAtLoss) return false;
    this.#journal = old;
    return true;
  }

  powerOff(): void {
    this.#mark = undefined; // /run goes with the power
    this.#lost = undefined;
  }

  markFile(): MarkFile {
    return {
      path: "/run/berth/agent.sock.journal",
      read: async () => this.#mark,
      write: async (text) => {
        this.#mark = text;
      },
      update: (text) => {
        this.#mark = text;
      },
      close: () => undefined,
    };
  }
}
