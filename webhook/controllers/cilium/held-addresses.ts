// SPDX-License-Identifier: Apache-2.0

import type { CiliumNode } from "./cilium-node.ts";

/** Which addresses other CiliumNodes list or use, of mode crd. Looked up only where something is published: there may be a million. */
export class HeldAddresses {
  readonly #nodes: () => Iterable<readonly [string, CiliumNode]>;
  #holders: Map<string, string> | undefined; // address -> the node that has it; several: ""

  constructor(nodes: () => Iterable<readonly [string, CiliumNode]>) {
    this.#nodes = nodes;
  }

  /** A node other than this one. */
  isOthers(address: string, node: string): boolean {
    this.#holders ??= this.#look();
    const holder = this.#holders.get(address);
    return holder !== undefined && holder !== node;
  }

  #look(): Map<string, string> {
    const holders = new Map<string, string>();
    for (const [name, { pool, used }] of this.#nodes())
      for (const address of [...pool, ...used]) {
        const holder = holders.get(address);
        holders.set(address, holder === undefined || holder === name ? name : "");
      }
    return holders;
  }
}
