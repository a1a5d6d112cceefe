// SPDX-License-Identifier: Apache-2.0

import { counted } from "../../allocator/base/counted.ts";
import { isDetached } from "../../allocator/lifecycle/bind.ts";
import { type Claim, claimKey } from "../../allocator/model/claim.ts";
import { shownAs } from "../../allocator/model/interface-macs.ts";
import { attachmentManifest } from "../apply/manifest.ts";
import type { AttachmentUse } from "../backend/attachment-report.ts";
import { ageOf, type Column } from "../terminal/output.ts";
import { listing } from "./listing.ts";

export const attachments = listing<AttachmentUse>({
  names: ["attachments", "attachment"],
  noun: "attachment of container",
  scope: "namespace in a cluster", // on a host, those of a runtime that names no pod must not be hidden
  async load(backend, { namespace }) {
    if (backend.place === "data") return await backend.uses([]);
    const claims = (await backend.claims(namespace)).map(({ record }) => record);
    const things = await backend.uses(claims);
    return { things, remark: unreportedIn(claims, things) };
  },
  keyOf: (use) => ({ namespace: namespaceOf(use), name: use.containerID || (use.pod?.name ?? "") }),
  manifest: (use, { node }) => attachmentManifest(use, use.node ?? node),
  columns: ({ now, node, place }) => {
    if (place === "etcd") return ofHosts(now);
    return place === "data" ? ofHost(now, node) : ofCluster(now);
  },
});

/** What nobody tells of is not known, and not gone. */
function unreportedIn(claims: readonly Claim[], uses: readonly AttachmentUse[]): string {
  const reported = new Set(uses.map(({ claim }) => claim));
  const silent = claims.filter((claim) => !isDetached(claim) && !reported.has(claimKey(claim)));
  const [first] = silent.map(claimKey).toSorted();
  if (first === undefined) return "";
  const more = silent.length === 1 ? "" : ` and ${counted(silent.length - 1, "other claim")}`;
  return `of ${first}${more} no sandbox is reported, nor that one has ended: berthctl explain claim/${first}`;
}

/** Addresses that no claim has are known by the pod alone, where the runtime names it. */
function namespaceOf({ pod, claim }: AttachmentUse): string {
  return pod?.namespace ?? claim?.split("/")[0] ?? "";
}

const ADDRESSES: Column<AttachmentUse> = {
  title: "ADDRESSES",
  cell: ({ result }) => result.addresses.map(({ address }) => shownAs(address)).join(", "),
};
const CLAIM: Column<AttachmentUse> = { title: "CLAIM", cell: ({ claim }) => claim ?? "" };

const POD: readonly Column<AttachmentUse>[] = [
  { title: "NAMESPACE", cell: namespaceOf },
  { title: "POD", cell: ({ pod }) => pod?.name ?? "" },
  ADDRESSES,
  CLAIM,
];

const CONTAINER: Column<AttachmentUse> = {
  title: "CONTAINER",
  cell: ({ containerID }) => containerID.slice(0, 12),
};
const INTERFACE: Column<AttachmentUse> = { title: "INTERFACE", cell: (use) => use.interface };

function ofHost(now: number, node: string): readonly Column<AttachmentUse>[] {
  return [
    ...POD,
    { title: "NETWORK", cell: ({ scope }) => scope.network },
    CONTAINER,
    INTERFACE,
    { title: "NODE", wide: true, cell: () => node },
    { title: "SOURCE", wide: true, cell: ({ source }) => source },
    { title: "NETNS", wide: true, cell: ({ netns }) => netns },
    { title: "AGE", cell: ({ attachedAt }) => ageOf(attachedAt, now) },
  ];
}

/** Of hosts that share an etcd: they have containers, whose claims are called after them. */
function ofHosts(now: number): readonly Column<AttachmentUse>[] {
  return [
    ADDRESSES,
    CLAIM,
    { title: "HOST", cell: ({ node }) => node ?? "" },
    CONTAINER,
    INTERFACE,
    { title: "AGE", cell: ({ attachedAt }) => ageOf(attachedAt, now) },
  ];
}

/** What kubelets tell of pods, and agents of their containers where nobody else does. */
function ofCluster(now: number): readonly Column<AttachmentUse>[] {
  return [
    ...POD,
    { title: "NODE", cell: ({ node }) => node ?? "" },
    INTERFACE,
    { ...CONTAINER, wide: true },
    { title: "POD UID", wide: true, cell: ({ pod }) => pod?.uid ?? "" },
    { title: "AGE", cell: ({ attachedAt }) => ageOf(attachedAt, now) },
  ];
}
