// SPDX-License-Identifier: Apache-2.0

import { counted } from "../../../allocator/base/counted.ts";
import { shortDuration } from "../../../allocator/base/go-duration.ts";
import { listed } from "../../../allocator/base/listed.ts";
import type { RecordCache } from "../../../allocator/cache/cache.ts";
import { NODE_GRACE_MS } from "../../../allocator/model/cluster-state.ts";
import type { PoolNote } from "../changed-events.ts";

/** Names in a message. */
const NAMED = 3;

interface Held {
  readonly nodes: Set<string>;
  readonly waiting: string[];
  cooling: number;
}

/**
 * Pool -> what there is to say of blocks whose Node is gone: they come back without a word of anybody, after a while in which nothing would
 * be seen of it. `isThere` of every node that is known.
 */
export function notesOfGoneNodes(
  view: Pick<RecordCache, "blocks" | "pool">,
  isThere: (node: string) => boolean,
): ReadonlyMap<string, PoolNote> {
  const pools = new Map<string, Held>();
  for (const { record } of view.blocks()) {
    const { pool, node, cidr, releasedAt, use } = record;
    if (use !== undefined || isThere(node)) continue;
    const held = pools.get(pool) ?? { nodes: new Set<string>(), waiting: [], cooling: 0 };
    pools.set(pool, held);
    held.nodes.add(node);
    if (releasedAt === undefined) held.waiting.push(cidr);
    else held.cooling++;
  }
  return new Map(
    [...pools].map(([pool, held]) => {
      const cooldown = shortDuration(view.pool(pool)?.cooldownMs ?? 0);
      return [`${pool}/gone`, { pool, note: wordsFor(held, cooldown) }];
    }),
  );
}

function wordsFor({ nodes, waiting, cooling }: Held, cooldown: string): string {
  const names = [...nodes].sort();
  const who = `${names.length === 1 ? "node" : "nodes"} ${some(names)} gone`;
  const free = `after the pool's cooldown (${cooldown})`;
  const parts: string[] = [];
  if (waiting.length > 0)
    parts.push(
      `${counted(waiting.length, "block")} (${some(waiting)}) given back ${shortDuration(NODE_GRACE_MS)} after that, and free ${free}`,
    );
  if (cooling > 0) parts.push(`${counted(cooling, "block")} given back, and free ${free}`);
  return `${who}: ${parts.join("; ")}`;
}

function some(names: readonly string[]): string {
  return listed(names, NAMED);
}
