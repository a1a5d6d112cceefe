// SPDX-License-Identifier: Apache-2.0
// `berthctl explain` of one thing: an address, a pod or a claim.

import { type Refusal, refuse } from "../../allocator/base/errors.ts";
import type { Address } from "../../allocator/ip/address.ts";
import { macOfAddress } from "../../allocator/ip/mac.ts";
import { claimKey } from "../../allocator/model/claim.ts";
import { notInPools } from "../../allocator/planning/outside-pools.ts";
import { reportError } from "../apply/report.ts";
import { type Backend, namespaceFor } from "../backend/backend.ts";
import { lookUp } from "../explain/address-lookup.ts";
import type { AddressReport } from "../explain/address-report.ts";
import { describeAddress, unseenWords } from "../explain/address-words.ts";
import { missingPod } from "../explain/missing-pod.ts";
import { factsOfClaim, factsOfPod } from "../explain/pod-facts.ts";
import { explainClaim, explainPod } from "../explain/render.ts";
import type { CommandContext, ExitCode } from "../terminal/command.ts";
import { heldElsewhere, noClaim } from "./claim-to-release.ts";

/**
 * What is known of the address, then why its claim stands as it does. 0 says that it was told, and not that the address is free: who
 * looks for a free one reads `state` of `who -o json`. 2: this user may not know.
 */
export async function explainAddress(
  backend: Backend,
  { address, given }: { readonly address: Address; readonly given: string | undefined },
  context: CommandContext,
): Promise<ExitCode> {
  const own = namespaceFor(backend, given);
  const found = await lookUp(backend, address, own);
  const { view, report } = found;
  if (report.state === "outside" && report.sandboxes.length === 0) {
    reportError(context.io, notInPools(view, address).message);
    return 1;
  }
  if (report.state === "unseen" && report.pod === undefined) {
    reportError(context.io, unseenWords(found, own));
    return 2;
  }
  const holder = report.state === "held" ? view.claim(report.claim ?? "")?.record : undefined;
  // the claim of another namespace may be one that this user may not read
  const key = report.state === "held" ? (holder ?? view.reservation(address)?.record.claim) : undefined;
  const elsewhere = key === undefined ? usedElsewhere(report, given) : heldElsewhere(address, key, given);
  if (elsewhere !== undefined) {
    reportError(context.io, elsewhere.message);
    return 1;
  }
  if (holder === undefined) {
    context.io.stdout.write(describeAddress(report));
    return 0;
  }
  const mac = macOfAddress(address);
  context.io.stdout.write(`${mac === undefined ? address : `MAC address ${mac}`} is held\n`);
  const { namespace, name } = holder;
  return await explainOne(backend, { kind: "IPClaim", namespace, name }, context);
}

/** Of an address without a claim: pods that have it, none of which is in the namespace that was named. */
function usedElsewhere(
  { address, sandboxes }: AddressReport,
  given: string | undefined,
): Refusal | undefined {
  const pods = sandboxes.map(({ pod }) => pod).filter((pod) => pod !== "");
  const isElsewhere = pods.length > 0 && !pods.some((pod) => pod.startsWith(`${given}/`));
  if (given === undefined || !isElsewhere) return undefined;
  const words = `address ${address} is in a sandbox of pod ${pods.join(", ")}, which is not in namespace ${given}; leave -n out if you mean that pod`;
  return refuse("CLAIM_MISSING", words, { address });
}

export async function explainOne(
  backend: Backend,
  { kind, ...key }: { kind: "Pod" | "IPClaim"; namespace: string; name: string },
  { io }: CommandContext,
): Promise<ExitCode> {
  const gather = kind === "Pod" ? factsOfPod : factsOfClaim;
  const facts = await gather(backend, key, io.clock.now());
  const { pod, claim } = facts ?? {};
  if (facts !== undefined && kind === "Pod" && pod !== undefined)
    return printDiagnosis(io, explainPod(pod, facts));
  if (facts !== undefined && claim !== undefined)
    return printDiagnosis(io, explainClaim(claim.record, facts));
  reportError(io, kind === "Pod" ? await missingPod(backend, key) : noClaim(claimKey(key)).message);
  return 1;
}

function printDiagnosis(
  { stdout }: CommandContext["io"],
  { text, stuck }: { text: string; stuck: boolean },
): ExitCode {
  stdout.write(text);
  return stuck ? 1 : 0;
}
