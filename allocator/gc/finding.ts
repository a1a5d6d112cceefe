// SPDX-License-Identifier: Apache-2.0

/**
 * `defect`: an invariant is broken and a person must look. `pending`: the trace of an act that is under way or broke
 * off; the garbage collector repairs it within 120 s.
 */
export interface Finding {
  readonly severity: "defect" | "pending";
  readonly kind:
    | "double-claim" // two claims list one address
    | "double-use" // two live sandboxes use one address
    | "unreserved" // a claim lists an address that is not reserved for it
    | "orphan" // a reservation that no claim relies on
    | "outside" // a reservation that no pool contains, or that its pool excludes
    | "misfiled" // a reservation filed under another pool than the one that contains it
    | "block-overlap" // two blocks share addresses
    | "stray-block" // a block of a pool that is not there, has blocks of another size, or does not give all of it
    | "outside-block" // a sandbox has an address of a pool with blocks, and no block of its node has it
    | "in-block" // a claim lists an address that a node may give from its block
    | "ungranted-block" // a block that its node cannot use yet
    | "two-of-a-family" // a claim with two addresses of one family
    | "unclaimed-use" // a live sandbox with addresses of a claim that is gone or has others
    | "half-released" // a claim on its way out
    | "unreserved-request" // a claim made by hand that has no addresses yet
    | "pool-overlap" // two pools that have addresses in common, or one the other's gateway (cli/explain/consistency-check.ts)
    // not of the records alone:
    | "unread" // a record that cannot be read
    | "journal-refused" // a stack would not start on the folder: another journal has served since the host booted
    | "unneeded" // a claim that no living pod, workload, person or retention needs (cli/explain/unneeded-claims.ts)
    | "missing" // an ordinal that its StatefulSet wants and that has no claim (cli/explain/ordinals-without-claim.ts)
    | "of-another" // the same, and the claim of its name is another identity's, or made by hand with other addresses
    | "in-use" // addresses of a pool that others have, and not from Berth (cli/explain/occupied-addresses.ts)
    | "asks-in-vain" // a pod that asks where Berth does not look (cli/explain/pod-survey.ts)
    | "shared-cidr" // two nodes have CIDRs that share addresses (cli/explain/shared-node-cidrs.ts)
    | "not-installed" // no webhook configuration or agents of Berth's (cli/explain/installation.ts)
    | "not-ready" // a webhook that nobody serves, or nodes without a ready agent (cli/explain/installation.ts)
    | "fenced-ready" // a node that is fenced and well (cli/explain/installation.ts)
    | "no-node" // a pool that no node is of, while claims of pods have addresses of it (cli/explain/pools-for-nobody.ts)
    | "closed" // a pool that is not open to a namespace whose claims have addresses of it (the same)
    | "two-holders" // as in-use, and a claim has the address too
    | "without-claim" // a pod that was admitted with a claim that is gone (cli/explain/pods-without-claim.ts)
    | "unreviewed" // a pod that asks and that no review saw (cli/explain/unreviewed-pods.ts)
    | "changed-request"; // a pod that asks for other addresses than its review assigned (cli/explain/changed-requests.ts)
  readonly subject: string;
  readonly message: string;
}

export function defect(kind: Finding["kind"], subject: string, message: string): Finding {
  return { severity: "defect", kind, subject, message };
}

export function pending(kind: Finding["kind"], subject: string, message: string): Finding {
  return { severity: "pending", kind, subject, message };
}
