// SPDX-License-Identifier: Apache-2.0
// The words for a pod that cannot have its claim now.

import { type Refusal, refuse } from "../base/errors.ts";
import { refuseAddress } from "../ip/mac.ts";
import { type Binding, type Claim, claimKey } from "../model/claim.ts";
import { formatHolding } from "../model/interfaces.ts";

export function heldForAnother(claim: Claim, { podName }: Binding): Refusal {
  const words = `${described(claim)} is held for another pod of its set; it is free again when that pod is gone`;
  return refuseAddress("CLAIM_BUSY", words, { claim: claimKey(claim), pod: podName });
}

/** Its slot was given to the next pod meanwhile. */
export function keptForAnother(claim: Claim, name: string): Refusal {
  const key = claimKey(claim);
  const words = `${described(claim)}, with which pod ${name} was admitted, is pod ${claim.binding?.podName}'s by now; delete the pod and create it again`;
  return refuseAddress("CLAIM_BUSY", words, { claim: key, pod: name });
}

export function boundElsewhere(claim: Claim, { podName, node }: Binding): Refusal {
  const words = `${described(claim)} is bound to pod ${podName} on node ${node}, which is still there; it moves when that pod is gone`;
  return refuseAddress("CLAIM_BUSY", words, { claim: claimKey(claim), pod: podName, node });
}

/** Of a pod that is gone: until it is known that its sandbox is too, that may use the addresses. */
export function sandboxNotEnded(claim: Claim, { podName, node }: Binding, onHosts: boolean): Refusal {
  const who = onHosts
    ? `${podName} on host ${node}, whose sandbox was not seen to end; it moves when that host's agent reports, or when a person says that the host is gone for good: berthctl fence ${node}`
    : `pod ${podName} on node ${node}, whose sandbox was not seen to end; it moves when that node's agent reports, the node is deleted, or it is tainted out-of-service or annotated berth.dev/fenced=true`;
  const words = `${described(claim)} is still bound to ${who}`;
  return refuseAddress("CLAIM_BUSY", words, { claim: claimKey(claim), pod: podName, node });
}

/** Another pod of the name was admitted since, with another request: this one must not start with its addresses. */
export function addressesChanged(claim: Claim, pod: string, assigned: readonly string[]): Refusal {
  const key = claimKey(claim);
  return refuse(
    "CLAIM_CHANGED",
    `claim ${key} holds ${formatHolding(claim).join(", ")} now, and pod ${pod} was admitted with ${assigned.join(", ")}; delete the pod and create it again`,
    { claim: key, pod, address: assigned.join(",") },
  );
}

export function claimMissing(key: string): Refusal {
  return refuse(
    "CLAIM_MISSING",
    `there is no claim ${key} with addresses; create the pod anew so that they are reserved`,
    {
      claim: key,
    },
  );
}

/** Whoever waits asked for an address, and need not know what its claim is called. */
function described(claim: Claim): string {
  return `claim ${claimKey(claim)} (${formatHolding(claim).join(", ")})`;
}
