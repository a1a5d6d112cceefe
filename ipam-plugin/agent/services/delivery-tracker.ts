// SPDX-License-Identifier: Apache-2.0
import type { Attachment } from "../journal/attachment.ts";
import type { Outcome } from "../rpc/connection.ts";

interface Account {
  outstanding: number;
  delivered: boolean;
}

/**
 * Which answers about an attachment reached the runtime. No DEL follows an ADD whose answer was lost (checklist of
 * the main plugins: they give up before), so the agent takes it back itself, but only if no other answer got through.
 */
export class DeliveryTracker {
  readonly #accounts = new WeakMap<Attachment, Account>(); // attachment -> its answers since this process began

  /** A new attachment, about to be answered. */
  open(attachment: Attachment): void {
    this.#accounts.set(attachment, { outstanding: 1, delivered: false });
  }

  /** The same answer once more, from `renewed` on. One of an earlier process counts as delivered: nobody can know. */
  repeat(attachment: Attachment, renewed: Attachment): void {
    const account = this.#accounts.get(attachment) ?? { outstanding: 0, delivered: true };
    account.outstanding += 1;
    this.#accounts.set(renewed, account);
  }

  /**
   * Whether what was answered first, and is `now` in the journal, is still to be taken back: the runtime got no answer about it, and
   * none is on its way. It may have been asked for once more since the last one was lost.
   */
  isLost(first: Attachment, now: Attachment): boolean {
    const account = this.#accounts.get(first);
    if (account === undefined || account !== this.#accounts.get(now)) return false;
    return account.outstanding === 0 && !account.delivered;
  }

  /** True when that was the last answer to be settled and the runtime got none of them. */
  settle(attachment: Attachment, outcome: Outcome): boolean {
    const account = this.#accounts.get(attachment);
    if (account === undefined) return false;
    account.outstanding -= 1;
    account.delivered ||= outcome === "delivered";
    return account.outstanding === 0 && !account.delivered;
  }
}
