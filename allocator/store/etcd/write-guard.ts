// SPDX-License-Identifier: Apache-2.0
import { BerthError } from "../../base/errors.ts";
import type { Claim } from "../../model/claim.ts";
import type { EtcdClient, WriteAnswer } from "./client.ts";
import type { Condition } from "./messages.ts";

/**
 * What has to be so in the moment in which an address is given: etcd compares it in the same transaction. A look before, however
 * short, would leave a moment in which a host that was fenced gives addresses that are others' already.
 */
export interface WriteGuard {
  /** Whose revision says so. */
  readonly key: string;
  /** Whether a claim that is written so gives its addresses to a container of this host. Reservations are only created to be given. */
  covers(claim: Claim): boolean;
  /** At which it says so; `failed`: one at which it was not. Throws BerthError in words where it is not so any more. */
  revision(failed?: number): Promise<number>;
}

export type Writer = Pick<EtcdClient, "change" | "createAll">;

/** The key changes every few seconds, while it says the same. */
const ATTEMPTS = 5;

/** Writes only what the guard allows. */
export function guarded(client: Writer, guard: WriteGuard): Writer {
  async function send<T extends { readonly unmet: boolean }>(
    once: (condition: Condition) => Promise<WriteAnswer<T>>,
  ): Promise<WriteAnswer<T>> {
    let failed: number | undefined;
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const modRevision = await guard.revision(failed);
      const answer = await once({ key: guard.key, modRevision });
      if (answer.kind === "lost" || !answer.unmet) return answer;
      failed = modRevision;
    }
    throw new BerthError("STORE_UNAVAILABLE", `${guard.key} in etcd is changed again and again`);
  }
  return {
    change: (change) => send((condition) => client.change(change, condition)),
    createAll: (creations) => send((condition) => client.createAll(creations, condition)),
  };
}
