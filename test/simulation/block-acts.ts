// SPDX-License-Identifier: Apache-2.0
import type { Act } from "./act.ts";
import { NODES } from "./cast.ts";
import { over } from "./over-act.ts";
import { pick } from "./pod-kinds.ts";

/** One of so many has to do with a pool that stands over the one with blocks. */
const OVER_EVERY = 4;

/**
 * A controller hands a block out, goes on with one whose grant broke off, asks for a single address and gives that to another
 * node, or takes one back that its node's agent gave up. Of a
 * block that is granted every address counts as used, until it is taken back.
 */
export const block: Act = (world, { a, b }) => {
  if (b % OVER_EVERY === OVER_EVERY - 1) return over(world, { a, b: b >> 3 });
  const webhook = world.webhook(a);
  if (webhook?.process.alive !== true || !webhook.cache.ready) return "idle";
  const blocks = world.records.list("block");
  if (blocks.length === 0 || b % 2 === 0) {
    void webhook.grant(pick(NODES, b >> 1));
    return "done";
  }
  const one = pick(blocks, a >> 2);
  if (!world.hasSingles && one.record.within === undefined && one.record.granted === true && b % 5 < 3) {
    // of a block that others need addresses of
    void (b % 5 === 0 ? webhook.askForAddress(one) : webhook.grantSingle(one, pick(NODES, b >> 3), a >> 4));
    return "done";
  }
  // whether anybody uses it is for its agent to say
  void (b % 3 === 0 && one.record.granted !== true ? webhook.finish(one) : webhook.takeBack(one));
  return "done";
};
