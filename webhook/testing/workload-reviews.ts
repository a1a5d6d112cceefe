// SPDX-License-Identifier: Apache-2.0
// Workloads, and what their reviews say.
import { DB_POOL, poolRecord } from "../../test/support/fixtures.ts";
import { deniedAs, type Json, workload } from "../../test/support/objects.ts";
import { send } from "../../test/support/reviewing.ts";
import type { World } from "../../test/support/world.ts";

const ROUTE = "/validate/workloads";
export const POOLS = [DB_POOL, poolRecord("tiny", "10.80.0.0/30")];
export const IPS = "berth.dev/ips";

export function set(replicas: number, annotations: Readonly<Record<string, string>>, spec: Json = {}): Json {
  return workload("StatefulSet", "mysql", { replicas, annotations, spec });
}

export const LIST = { [IPS]: "10.20.0.70;10.20.0.71;10.20.0.72" };

/** "" when it was let through without a word, else its warnings or the refusal. */
export async function said(world: World, object: Json, over = {}): Promise<string> {
  const response = await send(world, ROUTE, object, over);
  return response.allowed ? (response.warnings ?? []).join(" | ") : deniedAs(response);
}
