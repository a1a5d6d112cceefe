// SPDX-License-Identifier: Apache-2.0

import { BerthError, refuse } from "../../allocator/base/errors.ts";
import type { Context } from "../../allocator/cache/context.ts";
import { retryOnConflict } from "../../allocator/store/retry-on-conflict.ts";
import type { Subject } from "../apply/object-ref.ts";
import { reportWarning } from "../apply/report.ts";
import type { Cluster } from "../backend/cluster-backend.ts";
import { deleteInCluster } from "../backend/cluster-release.ts";
import type { Io } from "../terminal/command.ts";
import { unlessDenied } from "./claim-to-release.ts";
import { create } from "./cluster-reserve.ts";
import { type Moved, type Mover, refusedOf, successorConflict, type Transfer } from "./transfer.ts";

/** A controller takes milliseconds; the one that leads may just be another one than a moment ago. */
const TIMEOUT_MS = 30_000;
const LOOK_MS = 100;

export function movesInCluster(cluster: Cluster, io: Io): Mover {
  return {
    move: (context, transfer) => moveInCluster(cluster, context, transfer, io),
    finish: (_context, { successor }) => reservedFor(cluster, successor.key, io),
  };
}

export function triesInCluster(cluster: Cluster, io: Io): Mover {
  return {
    move: (_context, transfer) => tryInCluster(cluster, transfer, io),
    finish: async (_context, { successor: { record } }) => ({
      kind: "moved",
      addresses: record.request.addresses ?? [],
    }),
  };
}

/**
 * With the rights of a person, who may make and delete claims and nothing more: the new claim says whom it takes over
 * from, and when the old one is deleted the controller makes its reservations the new one's.
 */
async function moveInCluster(cluster: Cluster, context: Context, transfer: Transfer, io: Io): Promise<Moved> {
  const { seen, subject } = transfer;
  const key = `${subject.namespace}/${subject.name}`;
  const made = await create(cluster, subject, { io, dryRun: false, timeoutMs: TIMEOUT_MS });
  if (made.kind === "refused") return refuse("CLAIM_REFUSED", `ipclaim/${key}: ${made.why}`);
  const successor = await cluster.store.get("claim", key);
  if (successor === undefined) return "changed";
  const conflict = made.kind === "there" ? successorConflict(successor, transfer) : undefined;
  if (conflict !== undefined) return await refusedOf(cluster.store, transfer, conflict);
  const released = await unlessDenied(cluster, seen, () => deleteInCluster(context, seen)).catch((error) => {
    reportWarning(io, waits(subject, seen.key));
    throw error;
  });
  if (released === "released") return await reservedFor(cluster, key, io);
  if (made.kind === "made") await takeBack(cluster, made.uid, { key, from: seen.key });
  return released;
}

/** Whether the old one was deleted is not known, so the new one stays: it may have the addresses already. */
function waits({ namespace, name }: Subject, from: string): string {
  return `ipclaim/${namespace}/${name} is there, and has the addresses as soon as claim ${from} is deleted: say the same again, or take it back with: kubectl delete ipclaim ${name} -n ${namespace}`;
}

/** What the API server and Berth's admission say to the new claim; nothing is written. */
async function tryInCluster(cluster: Cluster, transfer: Transfer, io: Io): Promise<Moved> {
  const { seen, subject } = transfer;
  const key = `${subject.namespace}/${subject.name}`;
  const made = await create(cluster, subject, { io, dryRun: true, timeoutMs: TIMEOUT_MS });
  if (made.kind === "refused") return refuse("CLAIM_REFUSED", `ipclaim/${key}: ${made.why}`);
  const there = made.kind === "there" ? await cluster.store.get("claim", key) : undefined;
  const conflict = there && successorConflict(there, transfer);
  return conflict ?? { kind: "moved", addresses: seen.record.addresses };
}

/**
 * The new claim must not wait for the next deletion, which nobody means for it. With the old one gone another call relies on it,
 * and so does whoever has made one of the name since.
 */
async function takeBack(
  { store }: Cluster,
  uid: string,
  { key, from }: { readonly key: string; readonly from: string },
): Promise<void> {
  await retryOnConflict(store, { kind: "claim", key, doing: "it was taken back" }, async (seen) => {
    if (seen?.uid !== uid || seen.record.nonce !== "") return true;
    if ((await store.get("claim", from)) === undefined) return true;
    return (await store.remove("claim", seen)).kind === "removed" ? true : "conflict";
  });
}

async function reservedFor({ store }: Cluster, key: string, { clock }: Io): Promise<Moved> {
  for (const until = clock.monotonic() + TIMEOUT_MS; ; await clock.sleep(LOOK_MS)) {
    const claim = (await store.get("claim", key))?.record;
    if (claim === undefined) return refuse("CLAIM_MISSING", `somebody has deleted claim ${key}`);
    if (claim.nonce !== "") return { kind: "moved", addresses: claim.addresses };
    if (clock.monotonic() < until) continue;
    const why = claim.status.message ?? "is Berth's webhook running?";
    const words = `the old claim is deleted, and claim ${key} has no addresses after ${TIMEOUT_MS / 1000} s: ${why}; it gets them when it can: kubectl get ipclaim -n ${claim.namespace}`;
    throw new BerthError("NOT_READY", words, { details: { claim: key } });
  }
}
