// SPDX-License-Identifier: Apache-2.0
import { fullClaim } from "../contract/samples.ts";

/** What a stored full claim says, with some of it exchanged; undefined takes a field away. */
export function claimText(changes: Readonly<Record<string, unknown>>): string {
  return JSON.stringify({ v: 1, record: { ...fullClaim("mysql-0"), ...changes } });
}
