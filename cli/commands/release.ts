// SPDX-License-Identifier: Apache-2.0
import { parseAddress } from "../../allocator/address.ts";
import { isAtRest } from "../../allocator/bind.ts";
import { type Claim, claimKey } from "../../allocator/claim.ts";
import { type Context, MAX_ROUNDS } from "../../allocator/context.ts";
import { ASSIGNED_CLAIM } from "../../allocator/dialects.ts";
import { BerthError, isRefusal, type Refusal, refuse } from "../../allocator/errors.ts";
import { KeyedMutex } from "../../allocator/mutex.ts";
import { silent } from "../../allocator/ports.ts";
import { outside, q } from "../../allocator/refusals.ts";
import { release as giveBack } from "../../allocator/release.ts";
import type { Stored } from "../../allocator/store/store.ts";
import type { View } from "../../allocator/view.ts";
import type { Command, Io } from "../command.ts";
import { DATA } from "../flags.ts";
import { type Ledger, mirrorOf, withLedger } from "../ledger.ts";
import { timeOf } from "../output.ts";
import { reportError, reportWarning } from "../report.ts";
import { claimKeyOf } from "../subject.ts";

/** `berthctl release` */
export const release: Command = {
  name: "release",
  summary: "give the addresses of a claim back",
  usage: ["release NAMESPACE/NAME | ADDRESS [--force] [--data DIR]"],
  flags: {
    force: {
      type: "boolean",
      about: "although its sandbox may be alive; two pods with one address are then possible",
    },
    data: DATA,
  },
  examples: ["berthctl release shop/mysql-0", "berthctl release 10.20.0.51"],
  async run(args, scene) {
    const [operand = ""] = args.expect("NAMESPACE/NAME or ADDRESS");
    const done = await withLedger(scene, "write", async (ledger) => {
      const { clock, random } = scene.io;
      const view = await mirrorOf(ledger.store);
      const context = { store: ledger.store, view, clock, random, log: silent, serial: new KeyedMutex() };
      return await releaseOne(context, ledger, operand, { force: args.has("force") });
    });
    if (isRefusal(done)) {
      reportError(scene.io, done.message);
      return 1;
    }
    tell(scene.io, done);
    return 0;
  },
};

interface Released {
  readonly kind: "released";
  readonly claim: Claim;
  /** When others may have each address: address -> milliseconds since 1970. */
  readonly free: ReadonlyMap<string, number>;
  /** Pods that were admitted with the claim and are not deleted. */
  readonly orphans: readonly string[];
}

async function releaseOne(
  context: Context,
  ledger: Ledger,
  operand: string,
  { force }: { force: boolean },
): Promise<Released | Refusal> {
  const key = keyFor(context.view, operand, context.clock.now());
  if (isRefusal(key)) return key;
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const seen = await context.store.get("claim", key);
    if (seen === undefined) return noClaim(key);
    const refusal = force ? undefined : busy(seen, ledger);
    if (refusal !== undefined) return refusal;
    if ((await giveBack(context, seen)) === "released") return await receipt(context, ledger, seen.record);
  }
  throw new BerthError("REVISION_CONFLICT", `claim ${key} kept changing while it was released; try again`, {
    details: { claim: key },
  });
}

/** The claim that is meant; for an address the one that holds it. */
function keyFor(view: View, operand: string, now: number): string | Refusal {
  const address = parseAddress(operand);
  if (address === undefined) {
    const key = claimKeyOf(operand);
    return isRefusal(key) ? key : claimKey(key);
  }
  const reservation = view.reservation(address)?.record;
  if (reservation === undefined) {
    const pool = view.poolOf(address);
    if (pool === undefined) return outside(view, address);
    return refuse("CLAIM_MISSING", `address ${address} in pool ${q(pool.name)} is held by nobody`, {
      address,
    });
  }
  const key = claimKey(reservation.claim);
  if (reservation.releasedAt === undefined) return key;
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

/** The journal is asked too: it knows of sandboxes before their claim's status does. */
function busy({ key, record }: Stored<"claim">, { attachments }: Ledger): Refusal | undefined {
  const sandbox = attachments().find(({ claim }) => claim === key);
  if (sandbox === undefined && isAtRest(record)) return undefined;
  const pod = record.binding?.podName || sandbox?.pod?.name || "unknown";
  const node = record.binding?.node || "this one";
  return refuse(
    "CLAIM_BUSY",
    `claim ${key} (${record.addresses.join(", ")}) is lent to pod ${pod} on node ${node}, whose sandbox may be alive; ` +
      "delete the pod first, or use --force if you know that its sandbox is gone",
    { claim: key, pod },
  );
}

async function receipt(context: Context, { shelf }: Ledger, claim: Claim): Promise<Released> {
  const free = new Map<string, number>();
  for (const address of claim.addresses) {
    const reservation = await context.store.get("reservation", address);
    const { releasedAt = context.clock.now(), pool = "" } = reservation?.record ?? {};
    free.set(address, releasedAt + (context.view.pool(pool)?.cooldownMs ?? 0));
  }
  const pods = (await shelf.objects("Pod")).map(({ metadata }) => metadata);
  const orphans = pods
    .filter(
      ({ namespace, annotations }) =>
        namespace === claim.namespace && annotations[ASSIGNED_CLAIM] === claim.name,
    )
    .map(({ name }) => name);
  return { kind: "released", claim, free, orphans };
}

function tell(io: Io, { claim, free, orphans }: Released): void {
  const { stdout, clock } = io;
  stdout.write(`ipclaim/${claimKey(claim)} released\n`);
  for (const [address, at] of free) {
    const seconds = Math.max(0, Math.ceil((at - clock.now()) / 1000));
    stdout.write(`  ${address} is free for others in ${seconds} s, at ${timeOf(at)}\n`);
  }
  for (const pod of orphans) {
    reportWarning(
      io,
      `pod ${claim.namespace}/${pod} was admitted with this claim and cannot start without it; create it anew`,
    );
  }
}
