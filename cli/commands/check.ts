// SPDX-License-Identifier: Apache-2.0

import { counted } from "../../allocator/base/counted.ts";
import type { Finding } from "../../allocator/gc/finding.ts";
import type { Backend } from "../backend/backend.ts";
import { withBackend } from "../backend/open-backend.ts";
import { adviceOn } from "../explain/check-advice.ts";
import { type CheckResult, checkBackend, isDefect } from "../explain/consistency-check.ts";
import type { Command, Io } from "../terminal/command.ts";
import { TARGET_FLAGS } from "../terminal/flags.ts";
import { columns, document, formatOf, printable } from "../terminal/output.ts";

/** `berthctl check` */
export const check: Command = {
  name: "check",
  summary: "compare pools, claims, reservations and attachments with each other, and with who needs them",
  onlyReads: true,
  usage: ["check [-o json] [--data DIR | --context NAME]"],
  flags: {
    output: { type: "string", short: "o", value: "FORMAT", about: "table, json or yaml (default: table)" },
    ...TARGET_FLAGS,
  },
  examples: ["berthctl check", "berthctl check -o json"],
  async run(args, context) {
    args.expect();
    const format = formatOf(args.text("output"), ["table", "json", "yaml"]);
    const { clock } = context.io;
    const [auditInput, place] = await withBackend(
      context,
      "read",
      async (backend) => [await checkBackend(backend, clock), backend.place] as const,
    );
    const { counts, findings, unlooked, usedInBlocks } = auditInput;
    const sound = !findings.some(isDefect);
    if (format === "json" || format === "yaml") {
      context.io.stdout.write(
        document(
          {
            ...{ ok: sound, ...counts, findings },
            ...(usedInBlocks === undefined ? {} : { usedInBlocks }),
            ...(unlooked === undefined ? {} : { unlooked }),
          },
          format,
        ),
      );
    } else {
      print(context.io, auditInput, { sound, place });
    }
    return sound ? 0 : 1;
  },
};

type Kinds = readonly Finding["kind"][];

/** What is told of findings that are no defects, in this order: in one of two words, by how many there are. */
const NOTES: readonly (readonly [kinds: Kinds, one: string, more: string])[] = [
  [["fenced-ready"], "node is Ready and fenced", "nodes are Ready and fenced"],
  [["unneeded"], "claim is needed by nobody", "claims are needed by nobody"],
  [["missing", "of-another"], "ordinal has no claim", "ordinals have no claim"],
  [["without-claim"], "pod has lost a claim", "pods have lost a claim"],
  [["unreviewed"], "pod asks and was not reviewed", "pods ask and were not reviewed"],
  [
    ["changed-request"],
    "pod asks for others than it was assigned",
    "pods ask for others than they were assigned",
  ],
  [["in-use"], "pool has addresses that others use", "pools have addresses that others use"],
  [["no-node"], "pool has no node", "pools have no node"],
  [["closed"], "pool is closed to who would have it", "pools are closed to who would have them"],
  [["asks-in-vain"], "pod asks in vain", "pods ask in vain"],
  [["shared-cidr"], "pair of nodes shares a CIDR", "pairs of nodes share a CIDR"],
  [["two-holders"], "address has two holders", "addresses have two holders"],
];

function wellBut(findings: CheckResult["findings"]): string {
  // of a pool there may be several findings that others use its addresses
  const countOf = (kinds: Kinds) => {
    const some = findings.filter(({ kind }) => kinds.includes(kind));
    return kinds.includes("in-use") ? new Set(some.map(({ subject }) => subject)).size : some.length;
  };
  const notes = [
    ...(countOf(["not-installed"]) === 0 ? [] : ["Berth is not installed in full"]),
    ...(countOf(["not-ready"]) === 0 ? [] : ["Berth does not serve everybody"]),
    ...NOTES.flatMap(([kinds, one, more]) => {
      const many = countOf(kinds);
      return many === 0 ? [] : [counted(many, one, more)];
    }),
  ];
  return notes.length === 0 ? "ok" : `ok, but ${notes.join(" and ")}`;
}

function print(
  { stdout, stderr }: Io,
  { counts, findings, unlooked, usedInBlocks }: CheckResult,
  { sound, place }: { readonly sound: boolean; readonly place: Backend["place"] },
): void {
  const rows = findings.map(({ severity, kind, message }) => [severity, kind, printable(message)]);
  stdout.write(columns(rows));
  for (const words of adviceOn(findings, place)) stdout.write(`-> ${words}\n`);
  const all = Object.entries(counts).map(([what, n]) => counted(n, what.slice(0, -1)));
  const defects = findings.filter(isDefect).length;
  const verdict = sound ? wellBut(findings) : counted(defects, "defect");
  const ofBlocks =
    usedInBlocks === undefined
      ? []
      : [counted(usedInBlocks, "address of blocks in use", "addresses of blocks in use")];
  stdout.write(`${verdict}: ${[...all, ...ofBlocks].join(", ")}\n`);
  if (unlooked !== undefined) stderr.write(`${unlooked}\n`);
}
