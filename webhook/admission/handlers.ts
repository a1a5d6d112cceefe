// SPDX-License-Identifier: Apache-2.0
import type { Route } from "../app.ts";
import { caughtUp } from "./catch-up.ts";
import { validateClaims } from "./claim.ts";
import type { Desk } from "./desk.ts";
import { validateNamespaces } from "./namespace.ts";
import { mutatePods, validatePods } from "./pod.ts";
import { validatePools } from "./pool.ts";
import type { Handler } from "./review.ts";
import { validateWorkloads } from "./workload.ts";

/** Which decision answers which route. */
export function createHandlers(desk: Desk): Readonly<Record<Route, Handler>> {
  return {
    "/mutate/pods": caughtUp(desk, mutatePods(desk)),
    "/validate/pods": validatePods(desk),
    "/validate/workloads": caughtUp(desk, validateWorkloads(desk)),
    "/validate/pools": validatePools(desk),
    "/validate/claims": caughtUp(desk, validateClaims(desk)),
    "/validate/namespaces": validateNamespaces(desk),
  };
}
