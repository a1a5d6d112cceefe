// SPDX-License-Identifier: Apache-2.0
import type { ClaimAttachment } from "../../../allocator/model/claim.ts";
import type { AgentServices } from "../services/services.ts";

/**
 * A sandbox that is up on this node by the word of its claim or of the runtime, and that the journal knows nothing of: another journal
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
  counts: (sandbox: ClaimAttachment) => boolean = () => true,
): Promise<ClaimAttachment | undefined> {
  for (const sandbox of await claimSource.lastSandboxes(claim)) {
    const { netns, bootID } = sandbox;
    if (netns === undefined || bootID !== bootId || attachments.knows(sandbox) || !counts(sandbox)) continue;
    if ((await host.look(netns)) !== "gone") return sandbox;
  }
  return undefined;
}
