// SPDX-License-Identifier: Apache-2.0
// A controller makes a pod anew when the last one has ended, and leaves that one where it is.

import { isRefusal } from "../../allocator/base/errors.ts";
import { HOLD_TIMEOUT_MS } from "../../allocator/lifecycle/hold.ts";
import { readRequest } from "../../allocator/manifest/annotations.ts";
import { claimKey } from "../../allocator/model/claim.ts";
import { slotName } from "../../allocator/model/identity.ts";
import { deploymentPod, type Json } from "../support/objects.ts";
import { DEPLOYMENT, JOB, JOB_INDEXES, JOB_REQUESTS, NAMESPACE, NODES } from "./cast.ts";
import { indexPod, livesIndex, pick, templateOf } from "./pod-kinds.ts";
import { BEGIN } from "./process.ts";
import type { World } from "./world.ts";

interface Replacement {
  readonly json: Json;
  /** What it would have, and no living pod has. */
  readonly free: string;
}

/** Asks for the next pod of a Deployment's set and of each index of a Job, and gives the words where it is refused in vain. */
export async function refusedReplacement(
  world: World,
  calmly: <T>(done: Promise<T>) => Promise<T>,
): Promise<string | undefined> {
  for (const { json, free } of replacements(world)) {
    const refused = await calmly(world.clients.createPod(json, { node: pick(NODES, 0), webhook: 0 }));
    if (refused !== undefined) return `nobody had ${free}, and the next pod was refused: ${refused}`;
  }
  return undefined;
}

function replacements(world: World): Replacement[] {
  const { cluster } = world;
  const found: Replacement[] = [];
  const owner = cluster.find("Deployment", NAMESPACE, DEPLOYMENT);
  if (owner !== undefined && owner !== "deleted") {
    const annotations = templateOf(owner);
    const request = readRequest(annotations);
    const entries = isRefusal(request) ? [] : (request.entries ?? []);
    const slot = entries.findIndex((entry, n) => isFree(world, slotName(DEPLOYMENT, n), entry));
    if (slot >= 0) found.push({ json: deploymentPod(DEPLOYMENT, { annotations }), free: `slot ${slot}` });
  }
  const annotations = pick(JOB_REQUESTS, 0);
  const request = readRequest(annotations);
  for (let index = 0; index < JOB_INDEXES; index++) {
    const entry = isRefusal(request) ? undefined : request.entries?.[index];
    if (entry === undefined || livesIndex(world, index) || !isFree(world, `${JOB}-${index}`, entry)) continue;
    found.push({ json: indexPod(index, annotations), free: `index ${index}` });
  }
  return found;
}

/** Nobody else has one of the addresses, and no living pod the claim. */
function isFree(
  { records, cluster, nodes, schedule }: World,
  name: string,
  addresses: readonly string[],
): boolean {
  const key = claimKey({ namespace: NAMESPACE, name });
  const others = addresses.some((address) => {
    const holder = records.get("reservation", address)?.record;
    return holder !== undefined && claimKey(holder.claim) !== key;
  });
  const inUse = nodes.some(({ sandboxes }) =>
    sandboxes.some((one) => one.phase !== "down" && one.addresses.some((own) => addresses.includes(own))),
  );
  if (others || inUse) return false;
  const claim = records.get("claim", key)?.record;
  if (claim === undefined) return true;
  if (claim.handMade === true) return false;
  const { podName = "", node = "", since = 0 } = claim.binding ?? {};
  // a hold is kept for its time, whoever it is for
  if (claim.binding !== undefined && node === "" && BEGIN + schedule.time - since < HOLD_TIMEOUT_MS)
    return false;
  if (podName === "") return claim.binding === undefined;
  return cluster.pod(NAMESPACE, podName)?.ended !== false;
}
