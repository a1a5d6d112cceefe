// SPDX-License-Identifier: Apache-2.0
// Blocks of a pool that nodes are granted.
import { parsed, poolRecord } from "../../../test/support/fixtures.ts";
import type { World } from "../../../test/support/world.ts";
import { IntervalSet } from "../../ip/interval-set.ts";
import type { PoolRecord } from "../../pool/pool.ts";
import type { Stored } from "../../store/store.ts";
import type { BlockRequest } from "../grant.ts";
import { grantBlock } from "./grant-block.ts";

export const WEB = poolRecord("web", "10.0.0.0/28", { blockSize: { ipv4: 30 } });

export function of(node: string, over: Partial<BlockRequest> = {}): BlockRequest {
  return { family: "IPv4", node, nodeUID: `uid-of-${node}`, ...over };
}

export async function grantTo(
  world: World,
  node: string,
  { pool = WEB, ...over }: Partial<BlockRequest> & { readonly pool?: PoolRecord } = {},
): Promise<Stored<"block"> | undefined> {
  const got = await grantBlock(world.context, parsed(pool), of(node, over), new IntervalSet());
  await world.settle();
  return got;
}
