// SPDX-License-Identifier: Apache-2.0
import { type Audit, auditRegistry, isDefect } from "../books.ts";
import type { Command, Io } from "../command.ts";
import { PLACE } from "../flags.ts";
import { columns, document, formatOf, printable } from "../output.ts";
import { withRegistry } from "../registries.ts";

/** `berthctl check` */
export const check: Command = {
  name: "check",
  summary: "compare pools, claims, reservations and attachments with each other",
  usage: ["check [-o json] [--data DIR | --context NAME]"],
  flags: {
    output: { type: "string", short: "o", value: "FORMAT", about: "table, json or yaml (default: table)" },
    ...PLACE,
  },
  examples: ["berthctl check", "berthctl check -o json"],
  async run(args, scene) {
    args.expect();
    const format = formatOf(args.text("output"), ["table", "json", "yaml"]);
    const { clock } = scene.io;
    const { counts, findings } = await withRegistry(scene, "read", (registry) =>
      auditRegistry(registry, clock),
    );
    const sound = !findings.some(isDefect);
    if (format === "json" || format === "yaml") {
      scene.io.stdout.write(document({ ok: sound, ...counts, findings }, format));
    } else {
      print(scene.io, { counts, findings }, sound);
    }
    return sound ? 0 : 1;
  },
};

function print({ stdout }: Io, { counts, findings }: Audit, sound: boolean): void {
  const rows = findings.map(({ severity, kind, message }) => [severity, kind, printable(message)]);
  stdout.write(columns(rows));
  const all = Object.entries(counts).map(([what, n]) => `${n} ${what}`);
  const defects = findings.filter(isDefect).length;
  const verdict = sound ? "ok" : `${defects} ${defects === 1 ? "defect" : "defects"}`;
  stdout.write(`${verdict}: ${all.join(", ")}\n`);
}
