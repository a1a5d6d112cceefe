// SPDX-License-Identifier: Apache-2.0
import { BerthError } from "../base/errors.ts";

/** Throws STORE_UNAVAILABLE once the store is being closed. */
export function mustBeOpen(closing: AbortController): void {
  if (closing.signal.aborted) throw new BerthError("STORE_UNAVAILABLE", "the store is closed");
}
