// SPDX-License-Identifier: Apache-2.0
import type { Refusal } from "../../allocator/base/errors.ts";
import type { DryRunResult } from "../../allocator/demand/allocation-dry-run.ts";
import type { Request } from "../../allocator/model/address-request.ts";

/**
 * What one identity would get, or why nothing. `nothing`: it asks for nothing, and no claim waits for it. `later`: its pod runs with other
 * addresses, and the next one gets these; a workload is let through so.
 */
export interface DryRunner {
  /** pod/shop/mysql-0, or a slot of a Deployment's set. */
  readonly subject: string;
  readonly outcome:
    | DryRunResult
    | Refusal
    | { readonly kind: "nothing"; readonly why: string }
    | { readonly kind: "later"; readonly why: string };
  /** What the addresses were chosen by. */
  readonly request: Request;
  /** Of an ordinal whose claim has other addresses until its next pod. */
  readonly kept?: string;
}
