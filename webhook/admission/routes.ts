// SPDX-License-Identifier: Apache-2.0

import { denied, type Handler, type Route, refusalOf } from "../review/admission-review.ts";
import type { AdmissionContext } from "./admission-context.ts";
import { retryWhenFresh } from "./cache-wait.ts";
import { disclosed } from "./disclosure.ts";
import { mutatePods } from "./mutate-pod.ts";
import { mutatePools } from "./mutate-pool.ts";
import { validateClaims } from "./validate-claim.ts";
import { validateNamespaces } from "./validate-namespace.ts";
import { validatePods } from "./validate-pod.ts";
import { validatePools } from "./validate-pool.ts";
import { validateWorkloads } from "./validate-workload.ts";

/** Which decision answers which route. */
export function createHandlers(admission: AdmissionContext): Readonly<Record<Route, Handler>> {
  return {
    "/mutate/pods": disclosing(admission, retryWhenFresh(admission, mutatePods(admission))),
    "/validate/pods": disclosing(admission, validatePods(admission)),
    "/validate/workloads": disclosing(admission, retryWhenFresh(admission, validateWorkloads(admission))),
    "/mutate/pools": mutatePools(),
    "/validate/pools": disclosing(admission, validatePools(admission)),
    "/validate/claims": disclosing(admission, retryWhenFresh(admission, validateClaims(admission))),
    "/validate/namespaces": disclosing(admission, validateNamespaces(admission)),
  };
}

/** Refusals in the words that whoever asks may read. */
function disclosing({ readAccess: access, context }: AdmissionContext, handler: Handler): Handler {
  return async (request, signal) => {
    const response = await handler(request, signal);
    const refusal = refusalOf(response);
    if (refusal === undefined) return response;
    const { userInfo: user, namespace } = request;
    const shown = await disclosed({ view: context.view, access }, { user, namespace }, refusal);
    return shown === refusal ? response : denied(request.uid, shown);
  };
}
