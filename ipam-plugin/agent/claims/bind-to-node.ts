// SPDX-License-Identifier: Apache-2.0
import { isRefusal, type Refusal } from "../../../allocator/base/errors.ts";
import type { Context } from "../../../allocator/cache/context.ts";
import { settlePod } from "../../../allocator/demand/admitted-pod.ts";
import { bind } from "../../../allocator/lifecycle/bind.ts";
import { askEvidence } from "../../../allocator/lifecycle/binding-evidence.ts";
import type { Claim } from "../../../allocator/model/claim.ts";
import type { ClusterState } from "../../../allocator/model/cluster-state.ts";
import type { Stored } from "../../../allocator/store/store.ts";
import { requestMismatch, servesBound, throwIfCancelled } from "./claim-result.ts";
import type { AttachRequest, ClaimMatch } from "./claim-source.ts";
import { attachmentOf } from "./sandbox-status.ts";

interface BindDeps {
  readonly context: Context;
  readonly inventory: ClusterState;
  /** This node's name. */
  readonly node: string;
  /** It is one of the hosts that share an etcd. */
  readonly onHosts?: boolean;
}

/** A claim that was found, and as it was then, if that is known: it saves a read where the claim has not changed since. */
type FoundClaim = Pick<ClaimMatch, "claim" | "token" | "assigned"> & { readonly seen?: Stored<"claim"> };

/** Binds the claim that was found to this node, for the pod that asks. */
export async function bindToNode(
  deps: BindDeps,
  { claim, token, assigned, seen: found }: FoundClaim,
  request: AttachRequest,
  signal: AbortSignal,
): Promise<Stored<"claim"> | Refusal> {
  const { context, inventory, node, onHosts = false } = deps;
  const { name, uid } = request.pod;
  const { interface: attachTo, containerID } = request.attachment;
  const said = assigned === undefined ? {} : { assigned };
  const seen = request.seenAt === undefined ? {} : { seenAt: request.seenAt };
  const attachedTo = (bound: Claim) =>
    servesBound(bound, request) && requestMismatch(bound, request) === undefined
      ? attachmentOf(bound, request, { ...context, node, news: "attached" })
      : undefined;
  const target = { name, uid, node, token, interface: attachTo, containerID, attachedTo, ...said, ...seen };
  const tryBind = (from: string | Stored<"claim">) =>
    bind(context, from, target, async (bound) => {
      throwIfCancelled(signal);
      return { ...(await askEvidence(inventory, bound, context.clock.now())), onHosts };
    });
  const bound = await tryBind(found ?? claim);
  if (!isRefusal(bound) || bound.code !== "CLAIM_CHANGED") return bound;
  return (await settle(deps, request, signal)) ?? (await tryBind(claim));
}

/** Admission breaks off when a host goes down: what it was to write into the claim is written now. */
export async function settle(
  { context, inventory }: BindDeps,
  { pod: { namespace, name, uid } }: AttachRequest,
  signal: AbortSignal,
): Promise<Refusal | undefined> {
  const pod = await inventory.pod(namespace, name);
  throwIfCancelled(signal);
  if (pod === undefined || (uid !== "" && pod.uid !== uid)) return undefined;
  return await settlePod(context, inventory, { ...pod, generateName: "" });
}
