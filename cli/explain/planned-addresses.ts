// SPDX-License-Identifier: Apache-2.0
import { isRefusal, type Refusal, refuse } from "../../allocator/base/errors.ts";
import type { RecordCache } from "../../allocator/cache/cache.ts";
import { type DryRun, type DryRunResult, dryRun } from "../../allocator/demand/allocation-dry-run.ts";
import type { Address } from "../../allocator/ip/address.ts";
import type { AllocationRequest } from "../../allocator/lifecycle/allocation-request.ts";
import { claimKey } from "../../allocator/model/claim.ts";
import { quoted } from "../../allocator/planning/refusal-messages.ts";

/** What those before in a file would get is taken for those that come after them; `view` is the dry run's own. */
export class PlannedAddresses {
  readonly #context: DryRun & { readonly view: RecordCache };
  readonly #planned = new Map<Address, string>(); // address -> claim that would get it

  constructor(context: DryRun & { readonly view: RecordCache }) {
    this.#context = context;
  }

  /** `objection` is why the pod would be refused with what it would get. */
  async predict(
    allocation: AllocationRequest,
    objection: (would: DryRunResult) => Refusal | undefined = () => undefined,
  ): Promise<DryRunResult | Refusal> {
    const key = claimKey(allocation.key);
    const would = await dryRun(this.#context, allocation);
    if (isRefusal(would)) return would;
    const refusal = objection(would) ?? this.#disputed(key, would);
    if (refusal !== undefined) return refusal;
    for (const { address, pool } of would.addresses) {
      this.#planned.set(address, key);
      if (this.#context.view.reservation(address) !== undefined) continue;
      const record = { address, pool, claim: allocation.key, nonce: "planned" };
      const stored = { key: address, record, uid: "", revision: "", createdAt: this.#context.clock.now() };
      this.#context.view.apply("reservation", { type: "put", stored });
    }
    return would;
  }

  /** The store knows nothing of what is only planned. */
  #disputed(key: string, would: DryRunResult): Refusal | undefined {
    for (const { address, pool } of would.addresses) {
      const other = this.#planned.get(address);
      if (other === undefined || other === key) continue;
      return refuse(
        "ADDRESS_TAKEN",
        `address ${address} in pool ${quoted(pool)} is asked for twice, by ${other} and by ${key}; give one of them another`,
        { address, pool },
      );
    }
    return undefined;
  }
}
