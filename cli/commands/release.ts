// SPDX-License-Identifier: Apache-2.0

import { isRefusal, type Refusal } from "../../allocator/base/errors.ts";
import type { Context } from "../../allocator/cache/context.ts";
import type { Address } from "../../allocator/ip/address.ts";
import { type Claim, claimKey } from "../../allocator/model/claim.ts";
import { shownAs } from "../../allocator/model/interface-macs.ts";
import { retryOnConflict } from "../../allocator/store/retry-on-conflict.ts";
import type { Stored } from "../../allocator/store/store.ts";
import { reportError, reportWarning } from "../apply/report.ts";
import { AllowedRecords } from "../backend/allowed-records.ts";
import { type Backend, contextOn, partialCache } from "../backend/backend.ts";
import { formerUse } from "../backend/container-words.ts";
import { withBackend } from "../backend/open-backend.ts";
import type { Command, Io } from "../terminal/command.ts";
import { DRY_RUN, NAMESPACE, refuseTwoNamespaces, TARGET_FLAGS, usageError } from "../terminal/flags.ts";
import { addressUnlessName } from "./address-named.ts";
import { type Force, held, type NotHeld } from "./claim-in-use.ts";
import {
  askedFor,
  claimMeant,
  noClaim,
  type PodsWithoutClaim,
  podsWithout,
  stillWanted,
  unlessDenied,
  warnOfPods,
} from "./claim-to-release.ts";
import { freeFrom, freeWords, SEEN_MS } from "./free-from.ts";
import { handOver } from "./hand-over.ts";

const SUMMARY = "give a claim's addresses back";

/** `berthctl release` */
export const release: Command = {
  name: "release",
  summary: SUMMARY,
  usage: [usageWith("[--force [--even-if-alive]]")],
  asKubectl: { summary: SUMMARY, usage: [usageWith("[--force]")] },
  flags: {
    to: {
      type: "string",
      value: "NAME",
      about:
        "to a new claim of this name and namespace, which has the addresses at once: nobody gets them in between; for a claim that its pod has left",
    },
    force: {
      type: "boolean",
      about:
        "although its sandbox may be alive, or a pod asks for it; two pods with one address are then possible",
    },
    "even-if-alive": {
      type: "boolean",
      about:
        "with --force, where hosts share an etcd: although the host that has it serves; it gives no address from its agent's next start on, until it knows that the container has ended",
    },
    "dry-run": DRY_RUN,
    namespace: NAMESPACE,
    ...TARGET_FLAGS,
  },
  examples: [
    "berthctl release shop/mysql-0",
    "berthctl release shop/mysql-0 --dry-run",
    "berthctl release 10.20.0.51",
    "berthctl release shop/mysql-2 --to standby",
  ],
  async run(args, commandContext) {
    const [operand = ""] = args.expect("NAMESPACE/NAME or ADDRESS");
    const [to, namespace, dryRun] = [args.text("to"), args.text("namespace"), args.has("dry-run")];
    const force = { force: args.has("force"), evenIfAlive: args.has("even-if-alive") };
    if (force.evenIfAlive && !(force.force && commandContext.etcd !== undefined))
      throw usageError("--even-if-alive is for --force where hosts share an etcd");
    refuseTwoNamespaces(operand, namespace);
    if (to !== undefined) return await handOver(commandContext, { operand, to, namespace, ...force, dryRun });
    const address = addressUnlessName(operand);
    const done = await withBackend(commandContext, dryRun ? "read" : "write", async (backend) => {
      const { store } = backend;
      // an address is found by its reservation alone
      const view = await (address === undefined
        ? partialCache(new AllowedRecords(store), [])
        : partialCache(store, [address]));
      const context = contextOn(store, view, commandContext.io);
      const meant = { operand, given: namespace, usual: backend.namespace };
      const key = claimMeant(meant, view, context.clock.now());
      if (isRefusal(key)) return key;
      return await releaseOne(context, backend, claimKey(key), { ...force, dryRun, io: commandContext.io });
    });
    if (isRefusal(done)) {
      reportError(commandContext.io, done.message);
      return 1;
    }
    printReleased(commandContext.io, done, { dryRun });
    return 0;
  },
};

function usageWith(force: string): string {
  return `release [NAMESPACE/]NAME | ADDRESS|MAC [--to NAME] [-n NS] ${force} [--dry-run] [--data DIR | --context NAME]`;
}

interface Released {
  readonly kind: "released";
  readonly claim: Claim;
  /** When others may have each address: address -> milliseconds since 1970; undefined: Berth has yet to see to it. */
  readonly free: ReadonlyMap<Address, number | undefined>;
  /** Pods that were admitted with the claim; undefined when they may not be read. */
  readonly pods: PodsWithoutClaim | undefined;
  /** The workload that wants the claim as ever, in words. */
  readonly wantedBy: string | undefined;
  /** The container that may have the addresses still, in words. */
  readonly stillUsed: string | undefined;
  /** Berth makes the claim again for one of these. */
  readonly isMadeAgain: boolean;
}

async function releaseOne(
  context: Context,
  backend: Backend,
  key: string,
  { dryRun, io, ...force }: Force & { readonly dryRun: boolean; readonly io: Io },
): Promise<Released | Refusal> {
  const change = { kind: "claim", key, doing: "it was released" } as const;
  return await retryOnConflict(context.store, change, async (seen) => {
    if (seen === undefined) return noClaim(key);
    const use = await neededStill(seen, backend, force, io);
    if (isRefusal(use)) return use;
    const told = (released: Released) => ({ ...released, stillUsed: use.forced ?? released.stillUsed });
    if (dryRun) return told(await forecast(context, backend, seen.record));
    const outcome = await unlessDenied(backend, seen, () => backend.giveBack(context, seen));
    if (isRefusal(outcome)) return outcome;
    return outcome === "released" ? told(await releasedNow(context, backend, seen.record)) : "conflict";
  });
}

async function neededStill(
  seen: Stored<"claim">,
  backend: Backend,
  force: Force,
  io: Io,
): Promise<Refusal | NotHeld> {
  const use = await held(seen, backend, force, io);
  if (isRefusal(use) || force.force) return use;
  return (await askedFor(seen.record, backend)) ?? use;
}

async function releasedNow(context: Context, backend: Backend, claim: Claim): Promise<Released> {
  const { clock } = context;
  const released = await releasedClaim(backend, claim, new Map());
  const waits = backend.place === "cluster" && !released.isMadeAgain;
  const until = clock.monotonic() + (waits ? SEEN_MS : 0);
  const free = new Map<Address, number | undefined>(); // address -> milliseconds since 1970
  for (const address of claim.addresses) free.set(address, await freeFrom(context, address, until));
  return { ...released, free };
}

/** What it would be if it were released now. */
async function forecast({ view, clock }: Context, backend: Backend, claim: Claim): Promise<Released> {
  const isKnown = view.pools().length > 0;
  const until = (cooldownMs = 0) => (isKnown ? clock.now() + cooldownMs : undefined);
  const free = new Map(claim.addresses.map((address) => [address, until(view.poolOf(address)?.cooldownMs)]));
  return await releasedClaim(backend, claim, free);
}

async function releasedClaim(backend: Backend, claim: Claim, free: Released["free"]): Promise<Released> {
  const pods = await podsWithout(claim, backend);
  const wantedBy = await stillWanted(claim, backend);
  const isWanted = wantedBy !== undefined && backend.place === "cluster";
  const isMadeAgain = isWanted || (pods?.asking ?? []).length > 0;
  const stillUsed = formerUse(claim, backend.place);
  return { kind: "released", claim, free, pods, wantedBy, stillUsed, isMadeAgain };
}

function printReleased(
  io: Io,
  { claim, free, pods, wantedBy, stillUsed, isMadeAgain }: Released,
  { dryRun }: { readonly dryRun: boolean },
): void {
  const { stdout, clock } = io;
  stdout.write(`ipclaim/${claimKey(claim)} released${dryRun ? " (dry run)" : ""}\n`);
  for (const [address, at] of free) {
    const words = isMadeAgain
      ? `${shownAs(address)} is given back, and asked for again`
      : freeWords(address, at, clock.now());
    stdout.write(`  ${words}\n`);
  }
  if (stillUsed !== undefined) reportWarning(io, stillUsed);
  warnOfPods(io, claim, pods);
  if (wantedBy !== undefined) reportWarning(io, wantedBy);
}
