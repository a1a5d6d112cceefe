// SPDX-License-Identifier: Apache-2.0
import { audit, type Books, type Finding } from "../../allocator/audit.ts";
import { BerthError, isRefusal } from "../../allocator/errors.ts";
import { type Pool, parsePool } from "../../allocator/pool.ts";
import type { Command, Io, Scene } from "../command.ts";
import { DATA } from "../flags.ts";
import { allOf, audited, type Ledger, withLedger } from "../ledger.ts";
import { columns, document, formatOf, printable } from "../output.ts";
import { readStackFile } from "../stack-file.ts";

/** Longer than any one act of a stack takes. */
const SECOND_LOOK_MS = 1_000;

/** `berthctl check` */
export const check: Command = {
  name: "check",
  summary: "compare pools, claims, reservations and attachments with each other",
  usage: ["check [-o json] [--data DIR]"],
  flags: {
    output: { type: "string", short: "o", value: "FORMAT", about: "table, json or yaml (default: table)" },
    data: DATA,
  },
  examples: ["berthctl check", "berthctl check -o json"],
  async run(args, scene) {
    args.expect();
    const format = formatOf(args.text("output"), ["table", "json", "yaml"]);
    const node = readStackFile(scene.dataDir)?.node ?? "this node";
    const { books, findings } = await withLedger(scene, "read", (ledger) => look(ledger, node, scene.io));
    const sound = !findings.some(isDefect);
    if (format === "json" || format === "yaml") {
      scene.io.stdout.write(document({ ok: sound, ...counts(books), findings }, format));
    } else {
      print(scene, books, findings, sound);
    }
    return sound ? 0 : 1;
  },
};

/**
 * The records are not read in one moment, and a stack may be at work on them: what looks wrong is looked at again,
 * and counts if it has stayed.
 */
async function look(
  ledger: Ledger,
  node: string,
  { clock }: Pick<Io, "clock">,
): Promise<{ books: Books; findings: readonly Finding[] }> {
  const first = await booksOf(ledger, node);
  const found = audit(first);
  const suspected = new Set(found.filter(isDefect).map(({ message }) => message));
  if (suspected.size === 0) return { books: first, findings: found };
  await clock.sleep(SECOND_LOOK_MS);
  const books = await booksOf(ledger, node);
  const findings = audit(books).filter((finding) => !isDefect(finding) || suspected.has(finding.message));
  return { books, findings };
}

function isDefect({ severity }: Finding): boolean {
  return severity === "defect";
}

async function booksOf({ store, attachments }: Ledger, node: string): Promise<Books> {
  const used = attachments().map((attachment) => audited(attachment, node));
  const claims = await allOf(store, "claim");
  const reservations = await allOf(store, "reservation");
  const pools = await allOf(store, "pool");
  return {
    pools: pools.map(({ record }) => readable(parsePool(record), record.name)),
    claims: claims.map(({ record }) => record),
    reservations: reservations.map(({ record }) => record),
    attachments: used,
  };
}

/** Without its pool a reservation cannot be judged, and to call it sound would be a guess. */
function readable(pool: ReturnType<typeof parsePool>, name: string): Pool {
  if (!isRefusal(pool)) return pool;
  throw new BerthError("STATE_CORRUPT", `pool ${name} cannot be used: ${pool.message}; apply it anew`, {
    details: { pool: name },
  });
}

function counts({ pools, claims, reservations, attachments }: Books): Readonly<Record<string, number>> {
  return {
    pools: pools.length,
    claims: claims.length,
    reservations: reservations.length,
    attachments: attachments.length,
  };
}

function print({ io }: Scene, books: Books, findings: readonly Finding[], sound: boolean): void {
  const rows = findings.map(({ severity, kind, message }) => [severity, kind, printable(message)]);
  io.stdout.write(columns(rows));
  const all = Object.entries(counts(books)).map(([what, n]) => `${n} ${what}`);
  const defects = findings.filter(isDefect).length;
  const verdict = sound ? "ok" : `${defects} ${defects === 1 ? "defect" : "defects"}`;
  io.stdout.write(`${verdict}: ${all.join(", ")}\n`);
}
