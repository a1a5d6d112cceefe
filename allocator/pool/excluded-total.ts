// SPDX-License-Identifier: Apache-2.0
import type { Refusal } from "../base/errors.ts";
import { invalidPool } from "../base/validation.ts";

type Spec = Readonly<Record<string, unknown>>;

/** Each is read several times in one review. */
const MOST = 4096;

/** Of a spec that nobody has read yet: more entries of `exclude`, in all ranges together, than a review has time for. A pool keeps what it has. */
export function excludesTooMuch(spec: Spec, before?: Spec): Refusal | undefined {
  const count = excludedIn(spec);
  if (count <= MOST || (before !== undefined && count <= excludedIn(before))) return undefined;
  const words = `exclude ${count} entries together; at most ${MOST} are allowed in all ranges: write neighbours as one (a-b or a CIDR), or make several pools`;
  return invalidPool("spec.ranges", words);
}

function excludedIn({ ranges }: Spec): number {
  if (!Array.isArray(ranges)) return 0;
  return ranges.reduce<number>((sum, range: unknown) => {
    const exclude: unknown = (range as { readonly exclude?: unknown } | null)?.exclude;
    return sum + (Array.isArray(exclude) ? exclude.length : 0);
  }, 0);
}
