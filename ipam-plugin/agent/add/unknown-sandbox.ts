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
  const told = await claimSource.lastSandbox(claim);
  if (told?.netns === undefined || told.bootID !== bootId || attachments.knows(told)) return undefined;
  return (await host.look(told.netns)) === "gone" ? undefined : told;
}
