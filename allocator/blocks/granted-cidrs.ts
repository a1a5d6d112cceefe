// SPDX-License-Identifier: Apache-2.0

import type { Clock } from "../base/ports.ts";
import type { RecordCache } from "../cache/cache.ts";
import type { Stored } from "../store/store.ts";
import { isHeld } from "./node-cidr-plan.ts";
import { RecentGrants } from "./recent-grants.ts";

interface Deps {
  readonly view: Pick<RecordCache, "blocks" | "block">;
  readonly clock: Pick<Clock, "monotonic">;
}

/** Records of CIDRs of Nodes: those that the cache shows, and those that were granted here and it does not show, or not granted. */
export class GrantedCidrs extends RecentGrants {
  readonly #view: Deps["view"];

  constructor({ view, clock }: Deps) {
    super(clock, (cidr) => view.block(cidr)?.record.granted === true);
    this.#view = view;
  }

  all(): readonly Stored<"block">[] {
    return this.beside([...this.#view.blocks()].filter(({ record }) => record.use === "PodCIDR"));
  }

  override keep(block: Stored<"block">): void {
    if (isHeld(block.record, "PodCIDR")) super.keep(block);
  }
}
