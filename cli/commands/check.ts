// SPDX-License-Identifier: Apache-2.0

import { counted } from "../../allocator/base/counted.ts";
import { withBackend } from "../backend/open-backend.ts";
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
    const auditInput = await withBackend(context, "read", (backend) => checkBackend(backend, clock));
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
      print(context.io, auditInput, sound);
    }
    return sound ? 0 : 1;
  },
};

function wellBut(findings: CheckResult["findings"]): string {
  const idle = findings.filter(({ kind }) => kind === "unneeded").length;
  const lacking = findings.filter(({ kind }) => kind === "missing" || kind === "of-another").length;
  const claimless = findings.filter(({ kind }) => kind === "without-claim").length;
  const used = new Set(findings.flatMap(({ kind, subject }) => (kind === "in-use" ? subject : []))).size;
  const vain = findings.filter(({ kind }) => kind === "asks-in-vain").length;
  const twice = findings.filter(({ kind }) => kind === "two-holders").length;
  const shared = findings.filter(({ kind }) => kind === "shared-cidr").length;
  const parts = findings.filter(({ kind }) => kind === "not-installed").length;
  const fenced = findings.filter(({ kind }) => kind === "fenced-ready").length;
  const notes = [
    ...(parts === 0 ? [] : ["Berth is not installed in full"]),
    ...(fenced === 0 ? [] : [`${counted(fenced, "node is", "nodes are")} Ready and fenced`]),
    ...(idle === 0 ? [] : [`${counted(idle, "claim is", "claims are")} needed by nobody`]),
    ...(lacking === 0 ? [] : [`${counted(lacking, "ordinal has", "ordinals have")} no claim`]),
    ...(claimless === 0 ? [] : [`${counted(claimless, "pod has", "pods have")} lost a claim`]),
    ...(used === 0 ? [] : [`${counted(used, "pool has", "pools have")} addresses that others use`]),
    ...(vain === 0 ? [] : [`${counted(vain, "pod asks", "pods ask")} in vain`]),
    ...(shared === 0 ? [] : [`${counted(shared, "pair of nodes shares", "pairs of nodes share")} a CIDR`]),
    ...(twice === 0 ? [] : [`${counted(twice, "address has", "addresses have")} two holders`]),
  ];
  return notes.length === 0 ? "ok" : `ok, but ${notes.join(" and ")}`;
}

function print(
  { stdout, stderr }: Io,
  { counts, findings, unlooked, usedInBlocks }: CheckResult,
  sound: boolean,
): void {
  const rows = findings.map(({ severity, kind, message }) => [severity, kind, printable(message)]);
  stdout.write(columns(rows));
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
