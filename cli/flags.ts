// SPDX-License-Identifier: Apache-2.0
import { BerthError } from "../allocator/errors.ts";

/** One flag of a command, as it is read and as the help shows it. */
export interface Flag {
  readonly type: "string" | "boolean";
  readonly short?: string;
  readonly multiple?: boolean;
  /** What stands for the value in the help: DIR, FILE, N. */
  readonly value?: string;
  readonly about: string;
}

/** Long name -> flag. */
export type Flags = Readonly<Record<string, Flag>>;

export const DATA: Flag = {
  type: "string",
  value: "DIR",
  about: "data folder (default: $BERTH_DATA, else /var/lib/berth for root, ~/.local/share/berth for others)",
};
export const DRY_RUN: Flag = { type: "boolean", about: "say what would happen and write nothing" };
export const NAMESPACE: Flag = {
  type: "string",
  short: "n",
  value: "NS",
  about: "namespace (default: default)",
};
const HELP: Flag = { type: "boolean", short: "h", about: "print this" };

/** Called wrongly: exit code 2. */
export function misuse(message: string): BerthError {
  return new BerthError("CONFIG_INVALID", message);
}

/** The flags of a command, with the one that every command has. */
export function withHelp(flags: Flags): Flags {
  return { ...flags, help: HELP };
}
