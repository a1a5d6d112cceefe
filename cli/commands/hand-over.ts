// SPDX-License-Identifier: Apache-2.0
// `berthctl release --to`: a claim's addresses go to a new claim of its namespace, and are never free in between.

import { BerthError, isRefusal, type Refusal, refuse } from "../../allocator/base/errors.ts";
import type { Context } from "../../allocator/cache/context.ts";
import { type Claim, type ClaimKey, claimKey } from "../../allocator/model/claim.ts";
import { interfacesOf, placesOf } from "../../allocator/model/interfaces.ts";
import { MAX_ATTEMPTS } from "../../allocator/store/retry-on-conflict.ts";
import type { Store, Stored } from "../../allocator/store/store.ts";
import { apiVersionOf } from "../../kube/api/resource.ts";
import { IP_CLAIM } from "../apply/kinds.ts";
import { claimKeyOf, type Subject, subjectOf, titleOf } from "../apply/object-ref.ts";
import { reportError, reportWarning } from "../apply/report.ts";
import { AllowedRecords } from "../backend/allowed-records.ts";
import { type Backend, contextOn, partialCache } from "../backend/backend.ts";
import { formerUse } from "../backend/container-words.ts";
import { withBackend } from "../backend/open-backend.ts";
import type { CommandContext, ExitCode } from "../terminal/command.ts";
import { usageError } from "../terminal/flags.ts";
import { printable } from "../terminal/output.ts";
import { addressUnlessName } from "./address-named.ts";
import { type Force, held } from "./claim-in-use.ts";
import { claimMeant, noClaim, podsWithout, warnOfPods } from "./claim-to-release.ts";
import { movesHere, triesHere } from "./hand-over-here.ts";
import { isSuccessor, type Moved, type Mover, type Succession, type Transfer } from "./transfer.ts";

/** What is to be handed over, to whom. */
interface HandOver extends Force {
  /** NAMESPACE/NAME, or an address. */
  readonly operand: string;
  readonly to: string;
  readonly namespace: string | undefined;
  readonly dryRun: boolean;
}

export async function handOver(commandContext: CommandContext, wanted: HandOver): Promise<ExitCode> {
  const { io, cluster } = commandContext;
  if (cluster === undefined) {
    return await withBackend(commandContext, wanted.dryRun ? "read" : "write", (backend) =>
      untilMoved(io, backend, wanted, wanted.dryRun ? triesHere(backend) : movesHere(backend)),
    );
  }
  // What authenticates takes longer to load than the rest of berthctl takes to run.
  const { withCluster } = await import("../backend/cluster-backend.ts");
  const { movesInCluster, triesInCluster } = await import("./cluster-hand-over.ts");
  const mover = wanted.dryRun ? triesInCluster : movesInCluster;
  return await withCluster(io, cluster, (backend) => untilMoved(io, backend, wanted, mover(backend, io)));
}

/** Once the backend is there. */
export async function untilMoved(
  io: CommandContext["io"],
  backend: Backend,
  wanted: HandOver,
  mover: Mover,
): Promise<ExitCode> {
  for (let round = 0; round < MAX_ATTEMPTS; round++) {
    const context = await contextFor(io, backend, wanted);
    const step = await stepFor(context, backend, wanted, io);
    if (isRefusal(step)) return refused(io, step);
    const moved =
      "successor" in step ? await succeeded(context, step, mover) : await mover.move(context, step);
    if (moved === "changed") continue;
    if (isRefusal(moved)) return refused(io, moved);
    await tell(io, backend, { ...moved, step, dryRun: wanted.dryRun });
    return 0;
  }
  throw new BerthError(
    "REVISION_CONFLICT",
    `${wanted.operand} kept changing while it was released; try again`,
  );
}

function refused(io: CommandContext["io"], { message }: Refusal): ExitCode {
  reportError(io, message);
  return 1;
}

async function succeeded(context: Context, step: Succession, mover: Mover): Promise<Moved> {
  const { addresses, nonce } = step.successor.record;
  return nonce === "" ? await mover.finish(context, step) : { kind: "moved", addresses };
}

interface Done {
  readonly addresses: readonly string[];
  readonly step: Transfer | Succession;
  readonly dryRun: boolean;
}

/** Who has the addresses now, and which pods miss them. */
async function tell(
  io: CommandContext["io"],
  backend: Backend,
  { addresses, step, dryRun }: Done,
): Promise<void> {
  const dry = dryRun ? " (dry run)" : "";
  const holdings = printable(addresses.join(", "));
  if ("successor" in step) {
    const { from, successor } = step;
    const words = `takes over from ipclaim/${claimKey(from)}, which is released`;
    io.stdout.write(`ipclaim/${successor.key} ${words}${dry}   ${holdings}\n`);
    const old = { ...successor.record, name: from.name };
    warnOfUse(io, old, backend);
    return warnOfPods(io, old, await podsWithout(old, backend), successor.key);
  }
  const { key, record } = step.seen;
  const successor = `${titleOf(step.subject)} created${dry}   ${holdings}`;
  io.stdout.write(`ipclaim/${key} released${dry}\n${successor}\n`);
  warnOfUse(io, record, backend);
  if (step.forced !== undefined) reportWarning(io, step.forced);
  warnOfPods(io, record, await podsWithout(record, backend), claimKey(step.subject));
}

/** Of a container that no host knows. */
function warnOfUse(io: CommandContext["io"], claim: Claim, { place }: Backend): void {
  const stillUsed = formerUse(claim, place);
  if (stillUsed !== undefined) reportWarning(io, stillUsed);
}

async function contextFor(
  io: CommandContext["io"],
  { store }: Backend,
  { operand }: HandOver,
): Promise<Context> {
  const address = addressUnlessName(operand);
  const view = await (address === undefined
    ? partialCache(new AllowedRecords(store), [])
    : partialCache(store, [address]));
  return contextOn(store, view, io);
}

async function stepFor(
  { store, view, clock }: Context,
  backend: Backend,
  wanted: HandOver,
  io: CommandContext["io"],
): Promise<Transfer | Succession | Refusal> {
  const { operand, to, namespace } = wanted;
  const key = claimMeant({ operand, given: namespace, usual: backend.namespace }, view, clock.now());
  if (isRefusal(key)) return key;
  const seen = await store.get("claim", claimKey(key));
  const taken = await successionTo(store, {
    key,
    seen,
    to,
    isAddress: addressUnlessName(operand) !== undefined,
  });
  if (taken !== undefined) {
    const old = { ...taken.successor, key: claimKey(taken.from) };
    // with its addresses it has been through this, and is another claim in use
    const isFinished = taken.successor.record.nonce !== "";
    const use = isFinished ? undefined : await held(old, backend, wanted, io);
    return isRefusal(use) ? use : taken;
  }
  if (seen === undefined) return noClaim(claimKey(key));
  const subject = successorOf(seen.record, to);
  if (isRefusal(subject)) return subject;
  const use = await held(seen, backend, wanted, io);
  if (isRefusal(use)) return use;
  return { seen, subject, ...(use.forced !== undefined && { forced: use.forced }) };
}

/** What an earlier or another call has left: the old claim is gone, or its address is the new one's by now. */
async function successionTo(
  store: Pick<Store, "get">,
  now: { key: ClaimKey; seen: Stored<"claim"> | undefined; to: string; isAddress: boolean },
): Promise<Succession | undefined> {
  const { key, seen, isAddress } = now;
  const to = claimKeyOf(now.to, key.namespace);
  if (isRefusal(to) || to.namespace !== key.namespace) return undefined;
  if (seen === undefined) {
    const successor = await store.get("claim", claimKey(to));
    return successor && isSuccessor(successor.record, key.name) ? { from: key, successor } : undefined;
  }
  const name = seen.record.takesOver;
  if (!isAddress || to.name !== key.name || name === undefined || seen.record.nonce === "") return undefined;
  return { from: { namespace: key.namespace, name }, successor: seen };
}

/** The new claim as a person would write it. */
function successorOf(claim: Claim, to: string): Subject | Refusal {
  const key = claimKeyOf(to, claim.namespace);
  if (isRefusal(key)) throw usageError(`--to: ${key.message}`);
  const { namespace, name, addresses } = claim;
  if (key.namespace !== namespace) {
    const words = `claim ${claimKey(claim)} can only be handed over within its namespace; to let ${key.namespace} have its addresses, release it, then: berthctl reserve ${to} --address ${addresses.join(",")}`;
    return refuse("REQUEST_INVALID", words, { claim: claimKey(claim) });
  }
  if (key.name === name) throw usageError(`--to ${to} is the claim itself; name a new one`);
  if (addresses.length === 0) {
    return refuse("CLAIM_MISSING", `claim ${claimKey(claim)} has no addresses to hand over`, {
      claim: claimKey(claim),
    });
  }
  const attachTo = claim.interface === undefined ? {} : { interface: claim.interface };
  const interfaces = interfacesOf(placesOf(claim), addresses);
  const request = { addresses, ...(interfaces === undefined ? {} : { interfaces }) };
  const spec = { takesOver: name, ...attachTo, request };
  const metadata = { namespace, name: key.name };
  return subjectOf({
    kind: IP_CLAIM,
    json: { apiVersion: apiVersionOf(IP_CLAIM), kind: IP_CLAIM.kind, metadata, spec },
  });
}
