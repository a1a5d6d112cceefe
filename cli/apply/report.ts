// SPDX-License-Identifier: Apache-2.0
import type { ExitCode, Io } from "../terminal/command.ts";
import { printable } from "../terminal/output.ts";
import type { Submitted } from "./submit.ts";

/**
 * Prints what became of an object, and says how that ends. On a dry run the warnings are the answer, and go where
 * the answer goes. `holdings` are the addresses it has now.
 */
export function reportSubmitted(
  io: Io,
  title: string,
  submitted: Submitted,
  how: { readonly dryRun: boolean; readonly holdings?: string },
): ExitCode {
  const { dryRun, holdings = "" } = how;
  if (submitted.kind === "refused") {
    for (const warning of submitted.warnings) reportWarning(io, warning);
    reportError(io, `${title}: ${submitted.why}`);
    return submitted.isFault ? 2 : 1;
  }
  const verb = `${submitted.verb}${dryRun ? " (dry run)" : ""}`;
  io.stdout.write(`${title} ${verb}${holdings === "" ? "" : `   ${printable(holdings)}`}\n`);
  for (const warning of submitted.warnings) {
    if (dryRun) io.stdout.write(`  ${printable(warning)}\n`);
    else reportWarning(io, warning);
  }
  return 0;
}

export function reportError(io: Pick<Io, "stderr">, message: string): void {
  io.stderr.write(`Error: ${printable(message)}\n`);
}

export function reportWarning(io: Pick<Io, "stderr">, message: string): void {
  io.stderr.write(`Warning: ${printable(message)}\n`);
}
