// SPDX-License-Identifier: Apache-2.0
import { isDeepStrictEqual } from "node:util";
import { Fields } from "../../allocator/manifest/kubernetes-object.ts";
import type { ItemMeta, KubeItem } from "../../kube/api/resource.ts";

/** meta/v1 Condition. */
export interface Condition {
  readonly type: string;
  readonly status: "True" | "False" | "Unknown";
  readonly reason: string;
  readonly message: string;
  readonly observedGeneration?: number;
  /** RFC 3339, in seconds: since when the status has been what it is. */
  readonly lastTransitionTime: string;
}

/** What is to be said, before it is known what was said last. */
export type ConditionInput = Pick<Condition, "type" | "status" | "reason" | "message">;

/** The API server's limit of a message. */
const LONGEST_MESSAGE = 32_768;

/** `metadata.generation`: grows with every change of the spec, and with no change of the status. */
export function generationOf(item: KubeItem): number {
  return new Fields(item).at("metadata").count("generation", 0);
}

/** The object without what is long and never looked at, for keeping. */
export function withoutManagedFields(item: KubeItem): KubeItem {
  const { managedFields: _, ...metadata } = item.metadata as ItemMeta & { readonly managedFields?: unknown };
  return { ...item, metadata };
}

export function conditionsOf(item: KubeItem): readonly Condition[] {
  return new Fields(item).at("status").list("conditions") as readonly Condition[]; // the schema has its form
}

/** The conditions as they should be: those that are said, and others' as they are. Equal to `before` when nothing is new. */
export function mergeConditions(
  before: readonly Condition[],
  said: readonly ConditionInput[],
  at: { readonly generation: number; readonly now: number },
): readonly Condition[] {
  const next = said.map(({ type, status, reason, message }) => {
    const last = before.find((condition) => condition.type === type);
    const same = last?.status === status;
    return {
      ...{ type, status, reason, message: message.slice(0, LONGEST_MESSAGE) },
      observedGeneration: at.generation,
      lastTransitionTime: same ? last.lastTransitionTime : timeOf(at.now),
    };
  });
  const others = before.filter(({ type }) => !said.some((condition) => condition.type === type));
  const merged = [...next, ...others];
  const unchanged =
    merged.length === before.length &&
    merged.every((condition) => before.some((old) => isDeepStrictEqual({ ...old }, condition)));
  return unchanged ? before : merged;
}

/** metav1.Time has no fractions. */
function timeOf(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`;
}

/** A code of allocator/base/errors.ts as the reason of a condition or event: ADDRESS_TAKEN, AddressTaken. */
export function reasonOf(code: string): string {
  return code
    .toLowerCase()
    .split("_")
    .map((word) => `${word.slice(0, 1).toUpperCase()}${word.slice(1)}`)
    .join("");
}
