// SPDX-License-Identifier: Apache-2.0
// A dry run of files that make or change pools: the webhook keeps nothing of a dry run, and does not know them.

import { isRefusal, type RefusalCode } from "../../allocator/base/errors.ts";
import { readObject } from "../../allocator/manifest/kubernetes-object.ts";
import type { Subject } from "../apply/object-ref.ts";
import type { Submitted } from "../apply/submit.ts";
import type { Backend } from "../backend/backend.ts";
import type { DryRunner, PodForecast } from "../explain/dry-run.ts";

/** Refusals that other pools would turn into something else. */
const BY_POOLS: ReadonlySet<string> = new Set<RefusalCode>([
  ...(["ADDRESS_OUTSIDE", "ADDRESS_EXCLUDED", "POOL_UNKNOWN", "POOL_DISABLED", "POOL_FORBIDDEN"] as const),
  ...(["NODE_MISMATCH", "POOL_EXHAUSTED", "FAMILY_UNAVAILABLE", "LIMIT_REACHED"] as const),
]);

/** What would become of the object if the pools that were sent before it were there; undefined: what was answered stands. */
export async function withPoolsOfFiles(
  { forecast, world }: { readonly forecast: PodForecast; readonly world: Backend["world"] },
  { json }: Pick<Subject, "json">,
  answered: Submitted,
): Promise<Submitted | undefined> {
  if (answered.kind !== "refused" || !BY_POOLS.has(answered.code) || !forecast.carriesPools) return undefined;
  const read = readObject(json);
  if (isRefusal(read)) return undefined;
  const { judgeManifest } = await import("../explain/manifest-rules.ts");
  const { refusal } = await judgeManifest(forecast.view, world, read);
  const rows = refusal === undefined ? await forecast.of(read) : [];
  const why = refusal ?? rows.map(({ outcome }) => outcome).find(isRefusal);
  if (why !== undefined) return { ...answered, why: why.message, code: why.code };
  const warnings = rows.flatMap(wordsOf);
  return { kind: "done", verb: "created", object: json, warnings: [...answered.warnings, ...warnings] };
}

function wordsOf({ subject, outcome }: DryRunner): string[] {
  if (isRefusal(outcome) || outcome.kind === "nothing") return [];
  const each = outcome.addresses.map(({ address, pool }) => `${address} from pool ${pool}`);
  return [`${subject} would get ${each.join(" and ")}, with the pools of these files`];
}
