// SPDX-License-Identifier: Apache-2.0
// Whether a host that shares an etcd is alive: it writes its record every few seconds, by a clock of its own that says nothing here.

import type { Backend } from "../backend/backend.ts";
import type { Io } from "../terminal/command.ts";
import { printable } from "../terminal/output.ts";

/** A host that is alive writes every 10 s (presence.ts), and is given two chances. */
export const WATCHED_MS = 25_000;
const LOOK_MS = 1_000;

export function tellOfWatch({ stderr }: Pick<Io, "stderr">, name: string): void {
  stderr.write(`looking for ${WATCHED_MS / 1000} s whether ${printable(name)} is alive\n`);
}

/** Ends as soon as it is seen to be. */
export async function isAlive(
  backend: Pick<Backend, "hosts">,
  name: string,
  io: Pick<Io, "clock" | "stderr">,
): Promise<boolean> {
  const revision = async () => (await backend.hosts?.())?.find((host) => host.name === name)?.revision;
  const before = await revision();
  tellOfWatch(io, name);
  for (let waited = 0; waited < WATCHED_MS; waited += LOOK_MS) {
    await io.clock.sleep(LOOK_MS);
    if ((await revision()) !== before) return true;
  }
  return false;
}
