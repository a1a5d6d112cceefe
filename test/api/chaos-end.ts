// SPDX-License-Identifier: Apache-2.0
// What must be so when everybody has gone.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { listed } from "../../allocator/store/contract/subject.ts";
import type { Kind, Store } from "../../allocator/store/store.ts";
import { eventually } from "../support/eventually.ts";
import { run } from "../support/process.ts";
import { BUILD } from "./berthctl-cluster.ts";
import { openStore } from "./open-store.ts";
import type { ControlPlane } from "./plane.ts";

/** Claims and reservations as `kind key`, in order. */
export async function leftovers(plane: ControlPlane): Promise<string[]> {
  const connection = plane.connect();
  const store = openStore(connection);
  try {
    return [...(await keysOf(store, "claim")), ...(await keysOf(store, "reservation"))];
  } finally {
    await store.close();
    connection.close();
  }
}

async function keysOf(store: Store, kind: Kind): Promise<string[]> {
  return (await listed(store, kind)).map(({ key }) => `${kind} ${key}`).sort();
}

/** Waits until nothing else is left; gives the milliseconds that it took, or throws naming what is left. */
export async function untilLeft(plane: ControlPlane, wanted: readonly string[], ms: number): Promise<number> {
  const began = performance.now();
  let left: string[] = [];
  const look = async () => {
    left = await leftovers(plane);
    return left.join() === wanted.join() ? true : undefined;
  };
  await eventually("nothing is left over", look, ms).catch((error: unknown) => {
    throw new Error(`${String(error)}\n${left.join("\n")}`);
  });
  return performance.now() - began;
}

/** What `berthctl check` says: its exit status and its words. */
export async function berthctlCheck(plane: ControlPlane): Promise<string> {
  const kubeconfig = join(plane.folder, "check.kubeconfig");
  writeFileSync(kubeconfig, plane.kubeConfig().exportConfig(), { mode: 0o600 });
  const env = { KUBECONFIG: kubeconfig, HOME: plane.folder, PATH: "/usr/bin:/bin" };
  const { rc, stdout, stderr } = await run(join(BUILD, "berthctl"), ["check"], { env });
  // webhooks and agents are processes here: nothing of them is installed
  const lines = stdout.split("\n").filter((line) => !/^pending +not-installed /.test(line));
  return `${rc} ${lines.join("\n")}${stderr}`.trim();
}
