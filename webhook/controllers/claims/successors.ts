// SPDX-License-Identifier: Apache-2.0

import { type Claim, claimKey } from "../../../allocator/model/claim.ts";

/** Claims made by hand that wait to take over from another claim, by that one. */
export class Successors {
  readonly #from = new Map<string, string>(); // namespace/name of the successor -> of the claim that it waits for

  /** To be told of every claim that is there, and of every change. */
  changed(key: string, now: Claim | undefined): void {
    if (now?.handMade === true && now.nonce === "" && now.takesOver !== undefined) {
      this.#from.set(key, claimKey({ namespace: now.namespace, name: now.takesOver }));
    } else {
      this.#from.delete(key);
    }
  }

  /** Keys of those that wait for the claim. */
  of(key: string): string[] {
    return [...this.#from].filter(([, from]) => from === key).map(([successor]) => successor);
  }
}
