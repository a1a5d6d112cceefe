// SPDX-License-Identifier: Apache-2.0

import type { Pool } from "../../../allocator/pool/pool.ts";
import type { ObservedNode } from "../../cluster-state/informers.ts";
import type { CiliumMode, CiliumNode } from "./cilium-node.ts";
import { cidrsOf } from "./situation.ts";
import { type TakeOverDeps, takeOverFor } from "./take-over.ts";

interface Deps extends TakeOverDeps {
  readonly mode: CiliumMode;
}

/** Nodes all of whose CIDRs have records: they are looked at again when their objects or the pools have changed. */
export class ExaminedNodes {
  readonly #deps: Deps;
  readonly #examined = new Map<string, string>(); // node -> version of its object whose CIDRs have records
  #examinedFor = ""; // the pools that they were examined for

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** A pool that is new, or has another range, may have what a node has long since. */
  noticePools(pools: readonly Pool[]): void {
    const now = JSON.stringify(pools.map(({ name, spec }) => [name, spec.ranges]));
    if (now !== this.#examinedFor) this.#examined.clear();
    this.#examinedFor = now;
  }

  forget(node: string): void {
    this.#examined.delete(node);
  }

  async takeOver(pools: readonly Pool[], object: ObservedNode, node: CiliumNode): Promise<readonly string[]> {
    if (this.#examined.get(node.name) === node.resourceVersion) return [];
    const wrong = await takeOverFor(this.#deps, pools, object, cidrsOf(this.#deps.mode, node));
    if (wrong.length === 0) this.#examined.set(node.name, node.resourceVersion);
    return wrong;
  }
}
