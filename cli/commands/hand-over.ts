// SPDX-License-Identifier: Apache-2.0
// `berthctl release --to`: a claim's addresses go to a new claim of its namespace, and are never free in between.

import { BerthError, isRefusal, type Refusal, refuse } from "../../allocator/base/errors.ts";
import { KeyedMutex } from "../../allocator/base/keyed-mutex.ts";
import { noopLogger } from "../../allocator/base/ports.ts";
import type { Context } from "../../allocator/cache/context.ts";
import { dryRun } from "../../allocator/demand/allocation-dry-run.ts";
import { requestFromSpec } from "../../allocator/demand/build-request.ts";
import { parseAddress } from "../../allocator/ip/address.ts";
import type { AllocationRequest } from "../../allocator/lifecycle/allocation-request.ts";
import { startCooldownIfDropped } from "../../allocator/lifecycle/release.ts";
import { reserve } from "../../allocator/lifecycle/reserve.ts";
import { readClaimRequest } from "../../allocator/manifest/claim-spec.ts";
import { readObject } from "../../allocator/manifest/kubernetes-object.ts";
import { type Claim, claimKey } from "../../allocator/model/claim.ts";
import { namespaceOf } from "../../allocator/model/cluster-state.ts";
import { interfacesOf, placesOf } from "../../allocator/model/interfaces.ts";
import { MAX_ATTEMPTS } from "../../allocator/store/retry-on-conflict.ts";
import { apiVersionOf } from "../../kube/api/resource.ts";
import { IP_CLAIM } from "../apply/kinds.ts";
import { claimKeyOf, type Subject, subjectOf, titleOf } from "../apply/object-ref.ts";
import { reportError } from "../apply/report.ts";
import { type Backend, partialCache } from "../backend/backend.ts";
import { loadCache } from "../backend/embedded-backend.ts";
import { withBackend } from "../backend/open-backend.ts";
import type { CommandContext, ExitCode } from "../terminal/command.ts";
import { usageError } from "../terminal/flags.ts";
import { printable } from "../terminal/output.ts";
import { busy, claimMeant, noClaim, podsWithout, warnOfPods } from "./claim-to-release.ts";
import { type Moved, successorConflict, type Transfer } from "./transfer.ts";

/** What is to be handed over, to whom. */
interface HandOver {
  /** NAMESPACE/NAME, or an address. */
  readonly operand: string;
  readonly to: string;
  readonly namespace: string | undefined;
  readonly force: boolean;
  readonly dryRun: boolean;
}

type Move = (context: Context, transfer: Transfer) => Promise<Moved>;

export async function handOver(commandContext: CommandContext, wanted: HandOver): Promise<ExitCode> {
  if (commandContext.cluster === undefined) {
    const move = wanted.dryRun ? tryHere : moveHere;
    return await withBackend(commandContext, wanted.dryRun ? "read" : "write", (backend) =>
      untilMoved(commandContext, backend, wanted, (context, transfer) => move(backend, context, transfer)),
    );
  }
  // What authenticates takes longer to load than the rest of berthctl takes to run.
  const { withCluster } = await import("../backend/cluster-backend.ts");
  const { moveInCluster, tryInCluster } = await import("./cluster-hand-over.ts");
  const move = wanted.dryRun ? tryInCluster : moveInCluster;
  return await withCluster(commandContext.io, commandContext.cluster, (cluster) =>
    untilMoved(commandContext, cluster, wanted, (context, transfer) =>
      move(cluster, context, transfer, commandContext.io),
    ),
  );
}

async function untilMoved(
  { io }: CommandContext,
  backend: Backend,
  wanted: HandOver,
  move: Move,
): Promise<ExitCode> {
  for (let round = 0; round < MAX_ATTEMPTS; round++) {
    const context = await contextFor(io, backend, wanted);
    const transfer = await transferFor(context, backend, wanted);
    const moved = isRefusal(transfer) ? transfer : await move(context, transfer);
    if (moved === "changed") continue;
    if (isRefusal(transfer) || isRefusal(moved)) {
      reportError(io, isRefusal(moved) ? moved.message : "");
      return 1;
    }
    const { key, record } = transfer.seen;
    const holdings = printable(moved.addresses.join(", "));
    const dry = wanted.dryRun ? " (dry run)" : "";
    const successor = `${titleOf(transfer.subject)} created${dry}   ${holdings}`;
    io.stdout.write(`ipclaim/${key} released${dry}\n${successor}\n`);
    warnOfPods(io, record, await podsWithout(record, backend), claimKey(transfer.subject));
    return 0;
  }
  throw new BerthError(
    "REVISION_CONFLICT",
    `${wanted.operand} kept changing while it was released; try again`,
  );
}

async function contextFor(
  { clock, random }: CommandContext["io"],
  { store }: Backend,
  { operand }: HandOver,
): Promise<Context> {
  const address = parseAddress(operand);
  const view = await partialCache(store, address === undefined ? [] : [address]);
  return { store, view, clock, random, log: noopLogger, serial: new KeyedMutex() };
}

async function transferFor(
  { store, view, clock }: Context,
  backend: Backend,
  { operand, to, namespace, force }: HandOver,
): Promise<Transfer | Refusal> {
  const key = claimMeant({ operand, given: namespace, usual: backend.namespace }, view, clock.now());
  if (isRefusal(key)) return key;
  const seen = await store.get("claim", claimKey(key));
  if (seen === undefined) return noClaim(claimKey(key));
  const subject = successorOf(seen.record, to);
  if (isRefusal(subject)) return subject;
  return (force ? undefined : await busy(seen, backend)) ?? { seen, subject };
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

/** What would become of it, on a data folder. */
async function tryHere(backend: Backend, context: Context, transfer: Transfer): Promise<Moved> {
  const { seen, subject } = transfer;
  const allocation = await allocationFor(backend, context, subject);
  if (isRefusal(allocation)) return allocation;
  const would = await dryRun({ ...context, view: await loadCache(context.store) }, allocation.request);
  if (isRefusal(would)) return would;
  const there = await context.store.get("claim", claimKey(subject));
  const conflict = there && successorConflict(there, transfer);
  return conflict ?? { kind: "moved", addresses: seen.record.addresses };
}

/**
 * On a data folder: the new claim, then the end of the old one, then the addresses by compare-and-set on their
 * reservations. Whoever looks in between finds them reserved.
 */
async function moveHere(backend: Backend, context: Context, transfer: Transfer): Promise<Moved> {
  const { store } = context;
  const { seen, subject } = transfer;
  const allocation = await allocationFor(backend, context, subject);
  if (isRefusal(allocation)) return allocation;
  const would = await dryRun({ ...context, view: await loadCache(store) }, allocation.request);
  if (isRefusal(would)) return would;
  const created = await store.create("claim", allocation.claim);
  const conflict = created.kind === "exists" ? successorConflict(created.stored, transfer) : undefined;
  if (conflict !== undefined) return conflict;
  if ((await store.remove("claim", seen)).kind === "conflict") {
    await store.remove("claim", created.stored);
    return "changed";
  }
  const now = { ...context, view: await loadCache(store) };
  const got = await reserve(now, { ...allocation.request, userRequested: true }, "pod");
  if (!isRefusal(got)) return { kind: "moved", addresses: got.claim.record.addresses };
  await store.remove("claim", created.stored);
  for (const address of seen.record.addresses)
    await startCooldownIfDropped(context, address, seen.record.nonce);
  return got;
}

/** The old claim is unused or its user is overruled: what it leaves need not cool first. */
async function allocationFor(
  { world }: Backend,
  { clock, random }: Context,
  { json }: Subject,
): Promise<{ readonly claim: Claim; readonly request: AllocationRequest } | Refusal> {
  const object = readObject(json);
  const claim = isRefusal(object) ? object : readClaimRequest(object);
  if (isRefusal(claim)) return claim;
  const namespace = await namespaceOf(world, claim.namespace);
  const request = requestFromSpec(claim, namespace, { token: random.token(), now: clock.now() });
  const takesOver = { name: claim.takesOver ?? "", wasUnused: true };
  return { claim, request: { ...request, takesOver } };
}
