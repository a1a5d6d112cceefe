// SPDX-License-Identifier: Apache-2.0
import { userInfo } from "node:os";
import { join, resolve } from "node:path";

/** What the environment says where no flag does. */
export interface Config {
  /** Absolute. */
  readonly dataDir: string;
  readonly user: string;
}

/** The account that runs the program. */
export interface Account {
  readonly uid: number;
  readonly username: string;
  readonly homedir: string;
}

/** Reads the process's own environment. */
export function loadConfig(): Config {
  return configOf(process.env, account());
}

/** `BERTH_DATA`, else a system folder for root and a folder at home for others. */
export function configOf(env: Readonly<Record<string, string | undefined>>, who: Account): Config {
  const given = env["BERTH_DATA"];
  const own = who.uid === 0 ? "/var/lib/berth" : join(who.homedir, ".local/share/berth");
  return { dataDir: given === undefined || given === "" ? own : resolve(given), user: who.username };
}

/** A container may run as a uid that has no account. */
function account(): Account {
  try {
    return userInfo();
  } catch {
    return { uid: process.getuid?.() ?? -1, username: "unknown", homedir: process.env["HOME"] ?? "/" };
  }
}
