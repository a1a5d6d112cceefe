// SPDX-License-Identifier: Apache-2.0
import type { ClaimAttachment } from "../../../allocator/model/claim.ts";
import type { AgentServices } from "../services/services.ts";

/**
 * The sandbox that is up on this node by the word of its claim, and that the journal knows nothing of: another journal
 * has served in this boot. It uses the claim until its network namespace is seen to be gone; undefined: there is none.
 */
export async function unknownSandbox(
  claim: string,
  {
    attachments,
    claimSource,
    host,
    bootId,
  }: Pick<AgentServices, "attachments" | "claimSource" | "host" | "bootId">,
): Promise<ClaimAttachment | undefined> {
  const last = await claimSource.lastSandbox(claim);
  if (last?.netns === undefined || last.bootID !== bootId || attachments.knows(last)) return undefined;
  return (await host.look(last.netns)) === "gone" ? undefined : last;
}
