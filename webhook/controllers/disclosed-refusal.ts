// SPDX-License-Identifier: Apache-2.0
import type { Refusal } from "../../allocator/base/errors.ts";
import type { Context } from "../../allocator/cache/context.ts";
import { withheld } from "../admission/disclosure.ts";
import type { ControllerDeps } from "./controller.ts";

/** The refusal as events and conditions of a namespace tell it: whoever reads the namespace reads them. */
export function disclosedRefusal(
  {
    context,
    refusalsNameAll = true,
  }: Pick<ControllerDeps, "refusalsNameAll"> & { readonly context: Pick<Context, "view"> },
  refusal: Refusal,
  namespace: string,
): Refusal {
  return refusalsNameAll ? refusal : withheld(context.view, refusal, namespace);
}
