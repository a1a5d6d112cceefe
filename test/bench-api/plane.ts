// SPDX-License-Identifier: Apache-2.0
import { closeSync, fdatasyncSync, openSync, readdirSync, readFileSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import type { Connection } from "../../kube/api/connection.ts";
import { installDefinitions, makeNamespaces } from "../api/crds.ts";
import { type OwnControlPlane, startControlPlane } from "../api/harness.ts";
import { API_SERVER_FLAGS, fill } from "../api/scale-load.ts";
import { processorTimeOf } from "../support/processor.ts";
import type { ApiSetup } from "./api-setup.ts";
import { NAMESPACE } from "./contender.ts";
import { makeList } from "./models.ts";
import { installStandIns } from "./stand-ins.ts";

/** An API server and its etcd, which waits for the disk, with Berth's kinds and a pool of which so many addresses are taken. */
export interface Plane {
  readonly control: OwnControlPlane;
  readonly connection: Connection;
  readonly taken: number;
  /** Processor time that both have used so far, milliseconds. */
  readonly cpu: () => { readonly apiServer: number; readonly etcd: number };
}

/** Ended with the figure. */
export async function openPlane(setup: ApiSetup, taken: number): Promise<Plane> {
  const control = await startControlPlane({ durable: true, apiServerFlags: API_SERVER_FLAGS });
  setup.defer(() => control.close());
  const connection = control.connect();
  await installDefinitions(connection);
  await installStandIns(connection);
  await makeNamespaces(connection, [NAMESPACE]);
  await fill(connection, control.etcdUrl, { claims: taken, pods: 0, nodes: 0 });
  await makeList(connection, Math.min(taken, MOST_LISTED));
  const pids = { apiServer: childOf("kube-apiserver", control), etcd: childOf("etcd", control) };
  const cpu = () => ({ apiServer: processorTimeOf(pids.apiServer), etcd: processorTimeOf(pids.etcd) });
  return { control, connection, taken, cpu };
}

/** etcd takes no object that is larger than 1.5 MiB, so one object cannot hold 50,000. */
const MOST_LISTED = 1_000;

/** The pid of a process of this control plane. */
function childOf(name: string, { folder }: OwnControlPlane): number {
  const found = readdirSync("/proc").find((pid) => {
    if (!/^\d+$/.test(pid)) return false;
    const words = textOf(`/proc/${pid}/cmdline`).split("\0");
    return words[0]?.endsWith(`/${name}`) && words.some((word) => word.includes(folder));
  });
  if (found === undefined) throw new Error(`${name} does not run`);
  return Number(found);
}

/** Processes come and go. */
function textOf(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

/** Milliseconds that the disk takes to make 4 KiB at the end of a file durable, as etcd asks for with every write. */
export function timeDisk(folder: string, count: number): readonly number[] {
  const path = join(folder, "disk");
  const file = openSync(path, "a");
  const page = Buffer.alloc(4096, 1);
  const times = Array.from({ length: count }, () => {
    const since = performance.now();
    writeSync(file, page);
    fdatasyncSync(file);
    return performance.now() - since;
  });
  closeSync(file);
  rmSync(path);
  return times;
}
