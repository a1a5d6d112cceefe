// SPDX-License-Identifier: Apache-2.0
import { BerthError } from "../../../allocator/base/errors.ts";
import { parseCidr } from "../../../allocator/ip/address.ts";
import type { PoolRecord } from "../../../allocator/pool/pool.ts";
import { integerOf, type Row, type Sql, textColumn } from "../../../allocator/store/sqlite/sql.ts";

/**
 * A series of its own, so that a version that knows of no blocks reads the journal all the same. To that one an address
 * out of a block is one of its network's ranges: it keeps it for the sandbox, and frees it at DEL.
 */
export const BLOCK_STEPS: readonly string[] = [
  `CREATE TABLE blocks (
    cidr TEXT NOT NULL,
    uid TEXT NOT NULL,
    pool TEXT NOT NULL,
    holes TEXT NOT NULL,
    boot_id TEXT NOT NULL,
    returning_at INTEGER NOT NULL,
    PRIMARY KEY (cidr, uid)
  ) STRICT, WITHOUT ROWID`,
  "CREATE TABLE block_pools (name TEXT PRIMARY KEY, spec TEXT NOT NULL) STRICT, WITHOUT ROWID",
  "ALTER TABLE attachments ADD COLUMN pool TEXT NOT NULL DEFAULT ''",
];

/** What those steps are called. */
export const BLOCKS = "journal blocks";

/**
 * Added to their number from when single addresses of a block are others' until the node has no block left: a version that does not
 * know of such addresses would give them again, and refuses the file (ADR 0025).
 */
export const PARTED = 1_000;
const PART = `UPDATE schemas SET version = version % ${PARTED} + ${PARTED} WHERE name = '${BLOCKS}'`;
const UNPART = `UPDATE schemas SET version = version % ${PARTED} WHERE name = '${BLOCKS}' AND NOT EXISTS (SELECT 1 FROM blocks)`;

/** A block of this node: one incarnation of its record. */
export interface OwnedBlock {
  readonly cidr: string;
  readonly uid: string;
  readonly pool: string;
  readonly holes: readonly string[];
}

/** The same as the journal has it. */
export interface JournalBlock extends OwnedBlock {
  /** The boot in which its record was last seen to be this node's. */
  readonly bootId: string;
  /** Of the Node object that this host had then; empty: it was not known. */
  readonly nodeUID: string;
  /** Milliseconds since 1970: it is given back, and nothing of it is given any more; 0 before. */
  readonly returningAt: number;
}

/** What changes of the blocks. */
export interface BlockChange {
  readonly put?: readonly JournalBlock[];
  /** Addresses of one of these are others', or it lies in another block. */
  readonly parted?: boolean;
  /** Their records are gone. */
  readonly gone?: readonly Pick<OwnedBlock, "cidr" | "uid">[];
  /** How addresses of blocks are reached, and which pools there are to choose from. */
  readonly pools?: readonly PoolRecord[];
  /** Names of pools that are gone. */
  readonly poolsGone?: readonly string[];
}

export function writeBlocks(
  sql: Sql,
  { put = [], parted = false, gone = [], pools = [], poolsGone = [] }: BlockChange,
): void {
  for (const { cidr, uid, pool, holes, bootId, nodeUID, returningAt } of put) {
    // one column for both: to a version that knows of no UID it is another boot's, and proven anew
    const seenIn = nodeUID === "" ? bootId : `${bootId} ${nodeUID}`;
    const values = [cidr, uid, pool, JSON.stringify(holes), seenIn, Math.ceil(returningAt)];
    sql.run(
      "INSERT OR REPLACE INTO blocks (cidr, uid, pool, holes, boot_id, returning_at) VALUES (?, ?, ?, ?, ?, ?)",
      ...values,
    );
  }
  for (const { name, spec } of pools)
    sql.run("INSERT OR REPLACE INTO block_pools (name, spec) VALUES (?, ?)", name, JSON.stringify(spec));
  if (parted) sql.run(PART);
  for (const { cidr, uid } of gone) sql.run("DELETE FROM blocks WHERE cidr = ? AND uid = ?", cidr, uid);
  if (gone.length > 0) sql.run(UNPART);
  for (const name of poolsGone) sql.run("DELETE FROM block_pools WHERE name = ?", name);
}

export function decodeBlock(row: Row): JournalBlock {
  const cidr = textColumn(row, "cidr");
  const holes = parsedOf(textColumn(row, "holes"));
  const isWhole = parseCidr(cidr)?.text === cidr && Array.isArray(holes) && holes.every(isNetwork);
  if (!isWhole) throw corrupt(`block ${cidr}`);
  const [bootId = "", ...uid] = textColumn(row, "boot_id").split(" ");
  return {
    cidr,
    uid: textColumn(row, "uid"),
    pool: textColumn(row, "pool"),
    holes,
    ...{ bootId, nodeUID: uid.join(" ") },
    returningAt: integerOf(row, "returning_at"),
  };
}

/** What the spec says is for parseStoredPool to read. */
export function decodePool(row: Row): Pick<PoolRecord, "name"> & { readonly spec: unknown } {
  const name = textColumn(row, "name");
  const spec = parsedOf(textColumn(row, "spec"));
  if (spec === undefined) throw corrupt(`pool ${name}`);
  return { name, spec };
}

function isNetwork(text: unknown): text is string {
  return typeof text === "string" && parseCidr(text) !== undefined;
}

function parsedOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function corrupt(what: string): BerthError {
  return new BerthError("STATE_CORRUPT", `the journal's ${what} cannot be read; restore it from a backup`);
}
