// SPDX-License-Identifier: Apache-2.0
// What a claim's status says of the sandbox that has it.

import type { Clock } from "../../../allocator/base/ports.ts";
import type { Claim, ClaimAttachment } from "../../../allocator/model/claim.ts";
import { retryOnConflict } from "../../../allocator/store/retry-on-conflict.ts";
import type { Store, Stored } from "../../../allocator/store/store.ts";
import { throwIfCancelled } from "./claim-result.ts";
import type { AttachmentKey, SandboxEnd, SandboxNotice } from "./claim-source.ts";

type SandboxReport = "attached" | "detached";

interface Reporter {
  readonly store: Pick<Store, "get" | "report">;
  readonly clock: Pick<Clock, "now">;
  /** The name of the node that the sandbox is on. */
  readonly node: string;
}

interface ReportedSandbox {
  readonly attachment: Pick<AttachmentKey, "containerID" | "interface">;
  readonly seenAt?: SandboxNotice["seenAt"];
}

/** What is said of the sandbox in the status of a claim that is bound to its pod. */
export function attachmentOf(
  { binding }: Pick<Claim, "binding">,
  { attachment, seenAt }: ReportedSandbox,
  { node, clock, news }: Pick<Reporter, "node" | "clock"> & { readonly news: SandboxReport },
): ClaimAttachment {
  return {
    node,
    containerID: attachment.containerID,
    interface: attachment.interface,
    podUID: binding?.podUID ?? "",
    since: clock.now(),
    detached: news === "detached",
    ...(news === "attached" && seenAt),
  };
}

/** What is told of a sandbox. */
export interface SandboxNews {
  readonly news: SandboxReport;
  /** The claim as it was seen just now, which saves a read. */
  readonly seen?: Stored<"claim">;
  readonly signal?: AbortSignal;
}

/** The claim as it stands once the news is in it, or which sandbox remains; undefined when it is not this pod's any more, or says more already. */
export async function reportSandbox(
  { store, clock, node }: Reporter,
  notice: SandboxEnd,
  { news, signal, ...told }: SandboxNews,
): Promise<Stored<"claim"> | undefined> {
  const { claim: key } = notice;
  const change = { kind: "claim", key, doing: "its status was written", ...told } as const;
  return await retryOnConflict(store, change, async (seen) => {
    if (seen === undefined) return undefined;
    const bearing = classifyReport(seen.record, notice, news, node);
    if (bearing !== "new") return bearing === "known" ? seen : undefined;
    throwIfCancelled(signal);
    const { remaining } = notice;
    const { attachment, seenAt } = remaining ?? notice;
    const by = { node, clock, news: remaining === undefined ? news : ("attached" as const) };
    const next = attachmentOf(seen.record, { attachment, seenAt }, by);
    const result = await store.report(seen, { attachment: next });
    return result.kind === "replaced" ? result.stored : "conflict";
  });
}

/**
 * What a piece of news means for the claim. A late DEL of an older sandbox says nothing about the one that came after
 * it (invariant 8), nor does anything about a pod that the claim is not bound to: pods of one name are told apart by
 * UID, which not every runtime says, and by node.
 */
function classifyReport(
  claim: Claim,
  { pod, attachment }: SandboxNotice,
  news: SandboxReport,
  node: string,
): "new" | "known" | "foreign" {
  const { binding, status } = claim;
  if (claim.releasing === true || binding === undefined || binding.podName !== pod.name) return "foreign";
  if (binding.node !== node) return "foreign";
  if (pod.uid !== "" && binding.podUID !== "" && binding.podUID !== pod.uid) return "foreign";
  const known = status.attachment;
  if (known === undefined || known.podUID !== binding.podUID) return "new";
  const same = known.containerID === attachment.containerID;
  if (news === "attached") return same && !known.detached ? "known" : "new";
  if (!same) return "foreign";
  return known.detached ? "known" : "new";
}
