// SPDX-License-Identifier: Apache-2.0

import type { Claim } from "../../allocator/model/claim.ts";
import {
  attachmentOf,
  bindingTo,
  claimRecord,
  NOW,
  reservationsOf,
  storedAs,
} from "../../test/support/fixtures.ts";
import type { PodFacts } from "../explain/pod-facts.ts";

/** Bound to the first pod of its name, on node-a. */
export const bound = claimRecord({
  binding: bindingTo("mysql-0", "node-a"),
  status: { attachment: attachmentOf("mysql-0") },
});

/** Of a claim in a cluster with nothing else in it. */
export function facts(record: Claim | undefined, over: Partial<PodFacts> = {}): PodFacts {
  const reservations = record === undefined ? [] : reservationsOf(record);
  return {
    place: "cluster",
    now: NOW,
    key: "shop/mysql-0",
    claim: record && storedAs("claim", record),
    addresses: reservations.map((each) => ({
      address: each.address,
      reservation: storedAs("reservation", each),
      pool: undefined,
    })),
    pod: undefined,
    space: { name: "shop", labels: {}, annotations: {} },
    holder: undefined,
    node: undefined,
    fenced: false,
    verdict: { kind: "keep" },
    ...over,
  };
}
