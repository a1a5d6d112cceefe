// SPDX-License-Identifier: Apache-2.0
import { isRefusal, type Refusal } from "../../allocator/base/errors.ts";
import type { DryRunResult } from "../../allocator/demand/allocation-dry-run.ts";
import { poolsNamed, type Request } from "../../allocator/model/address-request.ts";
import { shownAs } from "../../allocator/model/interface-macs.ts";
import { formatAddresses } from "../../allocator/model/interfaces.ts";
import { printable } from "../terminal/output.ts";

/**
 * What one identity would get, or why nothing. `nothing`: it asks for nothing, and no claim waits for it; or no pod can have this entry; or it is the whole of a list whose rollout stands still. `later`: its pod runs with other
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

/** Of a workload that is there like that: admission lets it through, whatever its next pods are told. */
export function letThrough(row: DryRunner): DryRunner {
  if (!isRefusal(row.outcome)) return row;
  const why = `it is there like that and is let through, and what comes next of it is refused: ${row.outcome.message}`;
  return { ...row, outcome: { kind: "nothing", why } };
}

/** Subject, addresses and why, of what a pod would get. */
export function rowOf({ subject, outcome, request, kept }: DryRunner): string[] {
  if (isRefusal(outcome)) return [subject, "refused", printable(outcome.message)];
  if (outcome.kind === "nothing") return [subject, "-", printable(outcome.why)];
  if (outcome.kind === "later") return [subject, "later", printable(outcome.why)];
  if (kept !== undefined) return [subject, outcome.keeps.map(shownAs).join(", "), kept];
  const addresses = outcome.addresses.map(({ address }) => address);
  const shown = formatAddresses(addresses, outcome.interfaces).map(shownAs);
  return [subject, shown.join(", "), whyOf(outcome, request)];
}

/** Whole sentences for one reason; addresses are named when their reasons differ. */
function whyOf({ addresses }: DryRunResult, request: Request): string {
  const reasons = addresses.map((entry) => reasonOf(entry, request));
  const [first = ""] = reasons;
  if (reasons.every((reason) => reason === first)) return first;
  return addresses.map(({ address }, i) => `${shownAs(address)}: ${reasons[i] ?? ""}`).join("; ");
}

function reasonOf({ address, pool, held }: DryRunResult["addresses"][number], request: Request): string {
  if (held) return `pool ${pool}: its claim holds it already`;
  if (request.entries?.flat().includes(address) === true) return `pool ${pool}: asked for by address`;
  if (poolsNamed(request).length > 0) return `pool ${pool}: free, and the request names the pool`;
  return `pool ${pool}: free, in the first pool that is open to it`;
}
