// SPDX-License-Identifier: Apache-2.0
// What an API server writes when it starts for the first time, and Berth's definitions, kept once for all that start one:
// an API server that finds them has neither to write nor to document them anew.
import { cpSync } from "node:fs";
import { join } from "node:path";

/** The data folder of such an etcd; absent where a file is run by itself. */
export const TEMPLATE_VARIABLE = "BERTH_ETCD_TEMPLATE";

/** What can be made to stand still, so that its files do not change. */
interface Pausable {
  pause(): void;
  resume(): void;
}

/** Keeps what the etcd has in its folder now: what a power cut would leave. */
export function keepTemplate(etcd: Pausable, data: string, folder: string): string {
  const kept = join(folder, "template");
  etcd.pause();
  try {
    cpSync(data, kept, { recursive: true });
  } finally {
    etcd.resume();
  }
  return kept;
}

/** Gives a new etcd that data. False: there is no template. */
export function useTemplate(data: string): boolean {
  const kept = process.env[TEMPLATE_VARIABLE] ?? "";
  if (kept === "") return false;
  cpSync(kept, data, { recursive: true });
  return true;
}
