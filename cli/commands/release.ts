// SPDX-License-Identifier: Apache-2.0

import { BerthError, isRefusal, type Refusal, refuse } from "../../allocator/base/errors.ts";
import { KeyedMutex } from "../../allocator/base/keyed-mutex.ts";
import { noopLogger } from "../../allocator/base/ports.ts";
import type { Context } from "../../allocator/cache/context.ts";
import type { RecordReader } from "../../allocator/cache/reader.ts";
import { type Address, parseAddress } from "../../allocator/ip/address.ts";
import { isDetached } from "../../allocator/lifecycle/bind.ts";
import { ASSIGNED_CLAIM } from "../../allocator/manifest/annotations.ts";
import { type Claim, type ClaimKey, claimKey } from "../../allocator/model/claim.ts";
import type { Reservation } from "../../allocator/model/reservation.ts";
import { addressOutside, isBeside, quoted } from "../../allocator/planning/refusal-messages.ts";
import { MAX_ATTEMPTS } from "../../allocator/store/retry-on-conflict.ts";
import type { Stored } from "../../allocator/store/store.ts";
import { FENCED } from "../../webhook/cluster-state/projections.ts";
import { claimKeyOf } from "../apply/object-ref.ts";
import { reportError, reportWarning } from "../apply/report.ts";
import { parseDenial } from "../backend/admission-denial.ts";
import { type Backend, namespaceFor, type Objects, partialCache } from "../backend/backend.ts";
import { withBackend } from "../backend/open-backend.ts";
import type { Command, Io } from "../terminal/command.ts";
import { NAMESPACE, TARGET_FLAGS, usageError } from "../terminal/flags.ts";
import { timeOf } from "../terminal/output.ts";

/** `berthctl release` */
export const release: Command = {
  name: "release",
  summary: "give a claim's addresses back",
  usage: ["release [NAMESPACE/]NAME | ADDRESS [-n NS] [--force] [--data DIR | --context NAME]"],
  flags: {
    force: {
      type: "boolean",
      about: "although its sandbox may be alive; two pods with one address are then possible",
    },
    namespace: NAMESPACE,
    ...TARGET_FLAGS,
  },
  examples: ["berthctl release shop/mysql-0", "berthctl release 10.20.0.51"],
  async run(args, scene) {
    const [operand = ""] = args.expect("NAMESPACE/NAME or ADDRESS");
    const address = parseAddress(operand);
    const done = await withBackend(scene, "write", async (backend) => {
      const { clock, random } = scene.io;
      const { store } = backend;
      const view = await partialCache(store, address === undefined ? [] : [address]);
      const context = { store, view, clock, random, log: noopLogger, serial: new KeyedMutex() };
      const named = namespaceFor(backend, args.text("namespace"));
      const key = address === undefined ? keyNamed(operand, named) : holderOf(view, address, clock.now());
      if (isRefusal(key)) return key;
      return await releaseOne(context, backend, claimKey(key), { force: args.has("force") });
    });
    if (isRefusal(done)) {
      reportError(scene.io, done.message);
      return 1;
    }
    tell(scene.io, done);
    return 0;
  },
};

function keyNamed(operand: string, namespace: string): ClaimKey {
  const key = claimKeyOf(operand, namespace);
  if (isRefusal(key)) throw usageError(key.message);
  return key;
}

interface Released {
  readonly kind: "released";
  readonly claim: Claim;
  /** When others may have each address: address -> milliseconds since 1970; undefined: Berth has yet to see to it. */
  readonly free: ReadonlyMap<string, number | undefined>;
  /** Pods that were admitted with the claim and are not deleted; undefined when they may not be read. */
  readonly orphans: readonly string[] | undefined;
}

async function releaseOne(
  context: Context,
  backend: Backend,
  key: string,
  { force }: { force: boolean },
): Promise<Released | Refusal> {
  for (let round = 0; round < MAX_ATTEMPTS; round++) {
    const seen = await context.store.get("claim", key);
    if (seen === undefined) return noClaim(key);
    const refusal = force ? undefined : await busy(seen, backend);
    if (refusal !== undefined) return refusal;
    const outcome = await giveBack(context, backend, seen);
    if (isRefusal(outcome)) return outcome;
    if (outcome === "released") return await receipt(context, backend, seen.record);
  }
  throw new BerthError("REVISION_CONFLICT", `claim ${key} kept changing while it was released; try again`, {
    details: { claim: key },
  });
}

/** What admission says to it is a refusal like our own; force does not help against it. */
async function giveBack(
  context: Context,
  backend: Backend,
  seen: Stored<"claim">,
): Promise<"released" | "changed" | Refusal> {
  const { key, record } = seen;
  if (record.releasing === true && backend.place === "cluster") {
    return refuse(
      "CLAIM_RELEASING",
      `claim ${key} is being given back already; see: berthctl explain claim/${key}`,
    );
  }
  try {
    return await backend.giveBack(context, seen);
  } catch (error) {
    const denial = error instanceof BerthError ? parseDenial(error.message) : undefined;
    if (denial === undefined) throw error;
    const node = record.binding?.node ?? "";
    const advice =
      node === "" || isDetached(record)
        ? ""
        : `; if you know that its sandbox is gone, vouch for its node: kubectl annotate node ${node} ${FENCED}=true`;
    return refuse("CLAIM_BUSY", `${denial}${advice}`, { claim: key });
  }
}

/** The claim that holds the address. */
function holderOf(view: RecordReader, address: Address, now: number): ClaimKey | Refusal {
  const reservation = view.reservation(address)?.record;
  if (reservation === undefined) {
    const pool = view.poolOf(address);
    if (pool === undefined) return addressOutside(view, address);
    return refuse("CLAIM_MISSING", `address ${address} in pool ${quoted(pool.name)} is held by nobody`, {
      address,
    });
  }
  const key = claimKey(reservation.claim);
  const claim = view.claim(key)?.record;
  if (claim !== undefined && isBeside(claim, reservation)) {
    const words = `address ${address} is kept beside claim ${key}, which has ${claim.addresses.join(", ")}, for a pod that was admitted; it is free again within 120 s if that does not come`;
    return refuse("CLAIM_MISSING", words, { address });
  }
  if (reservation.releasedAt === undefined) return reservation.claim;
  const until = reservation.releasedAt + (view.pool(reservation.pool)?.cooldownMs ?? 0);
  const when = until <= now ? "is free for others from now on" : `is free for others at ${timeOf(until)}`;
  return refuse("CLAIM_MISSING", `address ${address} was given back by ${key} already and ${when}`, {
    address,
  });
}

function noClaim(key: string): Refusal {
  return refuse("CLAIM_MISSING", `there is no claim ${key}; see what there is with: berthctl get claims -A`, {
    claim: key,
  });
}

/** On a data folder the journal is asked too: it knows of sandboxes before their claim's status does. */
async function busy(
  { key, record }: Stored<"claim">,
  { uses, world }: Backend,
): Promise<Refusal | undefined> {
  const sandbox = uses([record]).find(({ claim }) => claim === key);
  if (sandbox === undefined && isDetached(record)) return undefined;
  const pod = record.binding?.podName || sandbox?.pod?.name || "unknown";
  const node = record.binding?.node || sandbox?.node || "this one";
  if (await world.fenced(node)) return undefined; // invariant 3b
  return refuse(
    "CLAIM_BUSY",
    `claim ${key} (${record.addresses.join(", ")}) is bound to pod ${pod} on node ${node}, whose sandbox may be alive; ` +
      "delete the pod first, or use --force if you know that its sandbox is gone",
    { claim: key, pod },
  );
}

async function receipt(context: Context, { world }: Backend, claim: Claim): Promise<Released> {
  const free = new Map<string, number | undefined>(); // address -> milliseconds since 1970
  for (const address of claim.addresses) {
    const reservation = await context.store.get("reservation", address);
    free.set(
      address,
      reservation === undefined ? context.clock.now() : freeFrom(context, reservation.record),
    );
  }
  return { kind: "released", claim, free, orphans: await podsOf(claim, world) };
}

function freeFrom({ view }: Context, { releasedAt, pool }: Reservation): number | undefined {
  return releasedAt === undefined ? undefined : releasedAt + (view.pool(pool)?.cooldownMs ?? 0);
}

/** The claim is released whether its pods may be read or not. */
async function podsOf({ namespace, name }: Claim, world: Objects): Promise<readonly string[] | undefined> {
  try {
    const pods = (await world.objects("Pod", namespace)).map(({ metadata }) => metadata);
    const own = pods.filter((pod) => pod.namespace === namespace && pod.annotations[ASSIGNED_CLAIM] === name);
    return own.map((pod) => pod.name);
  } catch (error) {
    if (error instanceof BerthError && error.code === "STORE_READ_ONLY") return undefined;
    throw error;
  }
}

function tell(io: Io, { claim, free, orphans }: Released): void {
  const { stdout, clock } = io;
  stdout.write(`ipclaim/${claimKey(claim)} released\n`);
  for (const [address, at] of free) {
    if (at === undefined) {
      stdout.write(`  ${address} is free for others when Berth has seen it, within 120 s\n`);
      continue;
    }
    const seconds = Math.max(0, Math.ceil((at - clock.now()) / 1000));
    stdout.write(`  ${address} is free for others in ${seconds} s, at ${timeOf(at)}\n`);
  }
  if (orphans === undefined) {
    const { namespace } = claim;
    const words = `the pods of namespace ${namespace} may not be read; one that was admitted with this claim cannot start without it`;
    reportWarning(io, words);
  }
  for (const pod of orphans ?? []) {
    reportWarning(
      io,
      `pod ${claim.namespace}/${pod} was admitted with this claim and cannot start without it; create it anew`,
    );
  }
}
