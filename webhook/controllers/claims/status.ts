// SPDX-License-Identifier: Apache-2.0
import { isDeepStrictEqual } from "node:util";
import { isRefusal, type Refusal } from "../../../allocator/base/errors.ts";
import type { Address } from "../../../allocator/ip/address.ts";
import { Fields } from "../../../allocator/manifest/kubernetes-object.ts";
import { type Claim, claimKey } from "../../../allocator/model/claim.ts";
import type { KubeItem } from "../../../kube/api/resource.ts";
import type { EventInput } from "../../../kube/controller/event-recorder.ts";
import {
  type Condition,
  type ConditionInput,
  conditionsOf,
  generationOf,
  mergeConditions,
  reasonOf,
} from "../conditions.ts";

/** What has become of a claim that a person made. */
export type ClaimVerdict = { readonly kind: "reserved"; readonly addresses: readonly Address[] } | Refusal;

/** What of a claim's status is the controller's to write. */
export interface ClaimReport {
  readonly message: string | null;
  readonly conditions: readonly Condition[];
}

/** The status that the claim should have; undefined if it has it. `isKeptOut`: a pod that does without the claim blocks it. */
export function reportOn(
  item: KubeItem,
  verdict: ClaimVerdict,
  now: number,
  isKeptOut = false,
): ClaimReport | undefined {
  const status = new Fields(item).at("status");
  const before: ClaimReport = {
    message: status.text("message") === "" ? null : status.text("message"),
    conditions: conditionsOf(item),
  };
  const next: ClaimReport = {
    message: isRefusal(verdict) ? verdict.message : null,
    conditions: mergeConditions(
      before.conditions,
      [readiness(verdict), ...bindability(item, before.conditions, isKeptOut)],
      { generation: generationOf(item), now },
    ),
  };
  return isDeepStrictEqual(next, before) ? undefined : next;
}

/** The claim that has what this one takes over, and lets it go when it is deleted; undefined: it does not wait for that. */
export function awaited(
  { namespace, takesOver }: Pick<Claim, "namespace" | "takesOver">,
  verdict: ClaimVerdict,
): string | undefined {
  if (!isRefusal(verdict) || verdict.code !== "ADDRESS_TAKEN" || takesOver === undefined) return undefined;
  return verdict.details["holder"] === claimKey({ namespace, name: takesOver }) ? takesOver : undefined;
}

/** What of the report is new, as events tell it. A claim that waits for another one, as it was asked to, is no failure. */
export function newsIn(
  item: KubeItem,
  { conditions }: ClaimReport,
  waitsFor: string | undefined,
): readonly Pick<EventInput, "type" | "reason" | "action" | "note">[] {
  const said = conditionsOf(item);
  return conditions.flatMap(({ type, status, reason, message }) => {
    const before = said.find((one) => one.type === type);
    if (reason === before?.reason && message === before.message) return [];
    const action = type === "Ready" ? "Reserving" : "Binding";
    if (type === "Ready" && status === "False" && waitsFor !== undefined) {
      const note = `it has its addresses when claim ${waitsFor}, from which it takes them over, is deleted`;
      return [{ type: "Normal", reason: "Waiting", action, note }];
    }
    return [{ type: status === "True" ? "Normal" : "Warning", reason, action, note: message }];
  });
}

/** The same refusal in other words, for the free neighbours that it names come and go. */
export function onlyMessageChanged(item: KubeItem, { conditions }: ClaimReport): boolean {
  const [before, next] = [readyOf(conditionsOf(item)), readyOf(conditions)];
  return (
    next?.status === "False" &&
    next.status === before?.status &&
    next.reason === before.reason &&
    next.observedGeneration === before.observedGeneration
  );
}

function readyOf(conditions: readonly Condition[]): Condition | undefined {
  return conditions.find(({ type }) => type === "Ready");
}

function readiness(verdict: ClaimVerdict): ConditionInput {
  if (isRefusal(verdict)) {
    return { type: "Ready", status: "False", reason: reasonOf(verdict.code), message: verdict.message };
  }
  return { type: "Ready", status: "True", reason: "Reserved", message: wordsFor(verdict.addresses) };
}

/** Said once there was something to say. */
function bindability(
  { metadata: { name } }: KubeItem,
  before: readonly Condition[],
  isKeptOut: boolean,
): readonly ConditionInput[] {
  const type = "Bindable";
  if (isKeptOut) {
    const message = `pod ${name} was given no claim when it was created, and is up with another address, which it keeps; the next pod of the name has this claim: delete the pod and create it again`;
    return [{ type, status: "False", reason: "PodKeepsAddress", message }];
  }
  if (!before.some((condition) => condition.type === type)) return [];
  return [{ type, status: "True", reason: "Free", message: `the next pod ${name} has this claim` }];
}

function wordsFor(addresses: readonly Address[]): string {
  return `${addresses.join(" and ")} ${addresses.length === 1 ? "is" : "are"} reserved`;
}
