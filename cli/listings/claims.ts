// SPDX-License-Identifier: Apache-2.0

import { shortDuration } from "../../allocator/base/go-duration.ts";
import type { Claim } from "../../allocator/model/claim.ts";
import { SHOWN_OF_ID } from "../../allocator/model/container-claim.ts";
import { shownAs } from "../../allocator/model/interface-macs.ts";
import { formatHolding } from "../../allocator/model/interfaces.ts";
import { phaseOf } from "../../allocator/model/phase.ts";
import type { Stored } from "../../allocator/store/store.ts";
import { claimManifest } from "../apply/manifest.ts";
import type { Backend } from "../backend/backend.ts";
import { containerOf, describeOwner } from "../backend/container-words.ts";
import { describePhase } from "../backend/phase.ts";
import { ageOf } from "../terminal/output.ts";
import { listing } from "./listing.ts";

export const claims = listing<Stored<"claim">>({
  names: ["claims", "claim", "ipclaims", "ipclaim"],
  noun: "claim",
  scope: "namespace",
  async load({ store, claims }, { namespace, name }) {
    if (namespace === undefined || name === undefined) return await claims(namespace);
    const claim = await store.get("claim", `${namespace}/${name}`);
    return claim === undefined ? [] : [claim];
  },
  stream: ({ store }) => store.list("claim"),
  keyOf: ({ record }) => record,
  manifest: claimManifest,
  columns: ({ now, place }) => [
    { title: "NAMESPACE", cell: ({ record }) => record.namespace },
    { title: "NAME", cell: ({ record }) => record.name },
    { title: "ADDRESSES", cell: ({ record }) => formatHolding(record).map(shownAs).join(", ") },
    { title: "IDENTITY", cell: ({ record }) => describeOwner(record, place) },
    { title: "PHASE", cell: ({ record }) => describePhase(record) },
    {
      title: place === "etcd" ? "CONTAINER" : "POD",
      cell: ({ record }) => (isRetained(record) ? "" : holderOf(record, place)),
    },
    // the node it was last on is what whoever drains that looks for
    { title: place === "etcd" ? "HOST" : "NODE", cell: ({ record }) => record.binding?.node ?? "" },
    { title: "WHEN DELETED", wide: true, cell: ({ record }) => record.retention.whenDeleted },
    { title: "WHEN SCALED", wide: true, cell: ({ record }) => record.retention.whenScaled },
    {
      title: "TTL",
      wide: true,
      cell: ({ record: { retention } }) => (retention.ttlMs === null ? "" : shortDuration(retention.ttlMs)),
    },
    {
      title: "SANDBOX",
      wide: true,
      cell: ({ record: { status } }) => {
        const { attachment } = status;
        return attachment === undefined || attachment.detached
          ? ""
          : `${attachment.containerID.slice(0, SHOWN_OF_ID)} ${attachment.interface}`;
      },
    },
    { title: "AGE", cell: ({ createdAt }) => ageOf(createdAt, now) },
  ],
});

/** A pod by its name; a container, whose claim has a name that was made for it, by its short id. */
function holderOf(claim: Claim, place: Backend["place"]): string {
  const podName = claim.binding?.podName ?? "";
  return podName === "" ? "" : (containerOf(claim, place)?.id ?? podName);
}

/** Its pod is gone, and its workload or the ordinal. */
function isRetained(claim: Claim): boolean {
  return phaseOf(claim) === "Retained";
}
