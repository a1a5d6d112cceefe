// SPDX-License-Identifier: Apache-2.0

import { BerthError } from "../../../allocator/base/errors.ts";
import type { Random } from "../../../allocator/base/ports.ts";
import { parseAddress } from "../../../allocator/ip/address.ts";
import type { Database } from "../../../allocator/store/sqlite/database.ts";
import {
  integerOf,
  type Reader,
  type Row,
  type Sql,
  textColumn,
} from "../../../allocator/store/sqlite/sql.ts";
import type { Attachment, AttachmentId, Position } from "./attachment.ts";
import { decode, encode, NETNS_STEPS, PUT, primaryKey } from "./attachment-row.ts";
import {
  BLOCK_STEPS,
  BLOCKS,
  type BlockChange,
  decodeBlock,
  decodePool,
  type JournalBlock,
  PARTED,
  writeBlocks,
} from "./owned-blocks.ts";

/**
 * Each step is one statement; steps are only ever added. Times on the monotonic clock are text: in nanoseconds they
 * outgrow 2^53 after 104 days.
 */
const STEPS: readonly string[] = [
  `CREATE TABLE attachments (
    network TEXT NOT NULL,
    data_dir TEXT NOT NULL,
    container_id TEXT NOT NULL,
    interface TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('attached', 'detached')),
    source TEXT NOT NULL,
    addresses TEXT NOT NULL,
    routes TEXT NOT NULL,
    dns TEXT NOT NULL,
    netns TEXT NOT NULL,
    netns_seen INTEGER NOT NULL,
    pod_namespace TEXT NOT NULL,
    pod_name TEXT NOT NULL,
    pod_uid TEXT NOT NULL,
    claim TEXT NOT NULL,
    start_ns TEXT NOT NULL,
    attached_at INTEGER NOT NULL,
    boot_id TEXT NOT NULL,
    detached_at INTEGER NOT NULL,
    deadline_ns TEXT NOT NULL,
    notice_pending INTEGER NOT NULL,
    PRIMARY KEY (data_dir, network, container_id, interface)
  ) STRICT, WITHOUT ROWID`,
  `CREATE TABLE positions (
    network TEXT NOT NULL,
    data_dir TEXT NOT NULL,
    range_set INTEGER NOT NULL,
    address TEXT NOT NULL,
    PRIMARY KEY (data_dir, network, range_set)
  ) STRICT, WITHOUT ROWID`,
  "CREATE TABLE probe (id INTEGER PRIMARY KEY, at INTEGER NOT NULL) STRICT",
];

/** Apart from the others: a version that does not know of it reads the journal all the same. */
const ID_STEPS: readonly string[] = [
  "CREATE TABLE journal_id (one INTEGER PRIMARY KEY CHECK (one = 1), id TEXT NOT NULL) STRICT",
];
const ID = "SELECT id FROM journal_id";
const POSITION_STEPS: readonly string[] = [
  "CREATE TABLE journal_position (one INTEGER PRIMARY KEY CHECK (one = 1), at INTEGER NOT NULL) STRICT",
];
const POSITION = "SELECT at FROM journal_position";
const ADVANCE = `INSERT INTO journal_position (one, at) VALUES (1, 1)
  ON CONFLICT (one) DO UPDATE SET at = at + 1 RETURNING at`;

const WRITER_STEPS: readonly string[] = [
  "CREATE TABLE journal_writer (one INTEGER PRIMARY KEY CHECK (one = 1), token TEXT NOT NULL) STRICT",
];
const WRITER = "SELECT token FROM journal_writer";

const PUT_POSITION =
  "INSERT OR REPLACE INTO positions (network, data_dir, range_set, address) VALUES (?, ?, ?, ?)";
const AT = "network = ? AND data_dir = ? AND container_id = ? AND interface = ?";
const TELL = `UPDATE attachments SET notice_pending = 0 WHERE ${AT} AND state = 'detached'`;
const FORGET = `DELETE FROM attachments WHERE ${AT} AND state = 'detached' AND notice_pending = 0`;

/** What is written together: all of it or nothing. */
export interface Change {
  readonly put?: readonly Attachment[];
  readonly positions?: readonly Position[];
  /** Detached, and the claim's status says so. */
  readonly reported?: readonly AttachmentId[];
  /** Tombstones that are old enough. */
  readonly forgotten?: readonly AttachmentId[];
  readonly blocks?: BlockChange;
}

export interface JournalContents {
  readonly attachments: readonly Attachment[];
  readonly positions: readonly Position[];
  readonly blocks: readonly JournalBlock[];
  /** How addresses of the blocks are reached, as it was last heard. */
  readonly pools: readonly ReturnType<typeof decodePool>[];
}

/** The attachments of this node on disk. What ADD and DEL answer is here first. */
export class Journal {
  readonly #database: Database;
  #failing = false;
  /** What the journal has while this process is its writer. Undefined: this one never writes. */
  #token: string | undefined;
  #followed: (position: number) => void = () => undefined;
  #notified = 0;

  /** Brings the tables up to date. Throws BerthError of the database. */
  constructor(database: Database) {
    this.#database = database;
    database.migrateAll([
      { name: "attachments", steps: STEPS },
      { name: "journal id", steps: ID_STEPS },
      { name: BLOCKS, steps: BLOCK_STEPS, lock: PARTED },
      { name: "journal position", steps: POSITION_STEPS },
      { name: "journal network namespaces", steps: NETNS_STEPS },
      { name: "journal writer", steps: WRITER_STEPS },
    ]);
  }

  /**
   * Makes this process the writer, to be called before `load`: what another one wrote until then is loaded, and whatever
   * it writes afterwards fails, though it may still be answering calls. It would give what this one gives.
   */
  async take(random: Random): Promise<void> {
    const token = random.token();
    await this.#database.write((sql) =>
      sql.run("INSERT OR REPLACE INTO journal_writer (one, token) VALUES (1, ?)", token),
    );
    this.#token = token;
  }

  /** Whether no other process has taken it since. */
  get isOurs(): boolean {
    return this.#database.read((sql) => this.#isWriter(sql));
  }

  /** Throws NOT_READY when another process has taken it: what this one remembers says nothing of sandboxes any more. */
  requireOurs(): void {
    if (!this.isOurs) throw takenOver(this.#database.path);
  }

  /** What this journal is told from others by, made when it is asked for first. On the disk when this resolves. */
  async id(random: Random): Promise<string> {
    const made = random.token();
    return await this.#database.write((sql) => {
      sql.run("INSERT OR IGNORE INTO journal_id (one, id) VALUES (1, ?)", made);
      return textColumn(sql.get(ID) ?? {}, "id");
    });
  }

  /** Undefined: no agent has begun to serve from it. */
  knownId(): string | undefined {
    const row = this.#database.read((sql) => sql.get(ID));
    return row && textColumn(row, "id");
  }

  /** The same journal under another id, on the disk when this resolves: its copies are others from then on. */
  async rename(id: string): Promise<void> {
    await this.#database.write((sql) => sql.run("UPDATE journal_id SET id = ?", id));
  }

  /** How many changes have been written, in this and in earlier lives of the process. */
  position(): number {
    const row = this.#database.read((sql) => sql.get(POSITION));
    return row === undefined ? 0 : integerOf(row, "at");
  }

  /** Calls it with the position after each change is on the disk, and before the change counts as written. It must not throw. */
  follow(tell: (position: number) => void): void {
    this.#followed = tell;
  }

  /** The last write failed and none has succeeded since. */
  get failing(): boolean {
    return this.#failing;
  }

  /** Everything that is stored. Throws STATE_CORRUPT, naming the attachment, for what does not decode. */
  load(): JournalContents {
    return this.#database.read((sql) => ({
      attachments: sql.all("SELECT * FROM attachments").map(decode),
      positions: sql.all("SELECT * FROM positions").map(decodePosition),
      blocks: sql.all("SELECT * FROM blocks").map(decodeBlock),
      pools: sql.all("SELECT * FROM block_pools").map(decodePool),
    }));
  }

  /** Resolves when the change is on the disk; rejects with BerthError when nothing of it is kept. */
  async write(change: Change): Promise<void> {
    const position = await this.#attempt((sql) => {
      for (const attachment of change.put ?? []) sql.run(PUT, ...encode(attachment));
      for (const { scope, rangeSet, address } of change.positions ?? []) {
        sql.run(PUT_POSITION, scope.network, scope.dataDir, rangeSet, address);
      }
      for (const place of change.reported ?? []) sql.run(TELL, ...primaryKey(place));
      for (const place of change.forgotten ?? []) sql.run(FORGET, ...primaryKey(place));
      if (change.blocks !== undefined) writeBlocks(sql, change.blocks);
      return integerOf(sql.get(ADVANCE) ?? {}, "at");
    });
    if (position <= this.#notified) return;
    this.#followed(position);
    this.#notified = position;
  }

  /** Finds out whether the journal can be written again. */
  async probe(now: number): Promise<void> {
    await this.#attempt((sql) => {
      sql.run("INSERT OR REPLACE INTO probe (id, at) VALUES (1, ?)", now);
    });
  }

  #isWriter(sql: Reader): boolean {
    const row = sql.get(WRITER);
    return this.#token === undefined || (row !== undefined && textColumn(row, "token") === this.#token);
  }

  async #attempt<T>(work: (sql: Sql) => T): Promise<T> {
    try {
      const done = await this.#database.write((sql) => {
        if (!this.#isWriter(sql)) throw takenOver(this.#database.path);
        return work(sql);
      });
      this.#failing = false;
      return done;
    } catch (error) {
      this.#failing = true;
      throw error;
    }
  }
}

function takenOver(path: string): BerthError {
  const words = `another agent of this host has taken over the journal ${path}, and is the one to ask; end this one`;
  return new BerthError("NOT_READY", words, { details: { path } });
}

function decodePosition(row: Row): Position {
  const address = parseAddress(textColumn(row, "address"));
  const scope = { network: textColumn(row, "network"), dataDir: textColumn(row, "data_dir") };
  if (address === undefined)
    throw new BerthError("STATE_CORRUPT", `a position of ${scope.network} is no address`);
  return { scope, rangeSet: integerOf(row, "range_set"), address };
}
