// SPDX-License-Identifier: Apache-2.0
import { isDeepStrictEqual } from "node:util";
import { isRefusal, type Refusal } from "../../../allocator/base/errors.ts";
import type { Address } from "../../../allocator/ip/address.ts";
import { Fields } from "../../../allocator/manifest/kubernetes-object.ts";
import type { KubeItem } from "../../../kube/api/resource.ts";
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
