// SPDX-License-Identifier: Apache-2.0
import type { Attachment } from "../../ipam-plugin/agent/attachment.ts";
import { listing } from "../listing.ts";
import { attachmentManifest } from "../manifest.ts";
import { ageOf } from "../output.ts";

export const attachments = listing<Attachment>({
  names: ["attachments", "attachment"],
  noun: "attachment of container",
  scope: "host", // those of a runtime that names no pod must not be hidden
  load: async ({ attachments }) => attachments(),
  keyOf: ({ pod, containerID }) => ({ namespace: pod?.namespace ?? "", name: containerID }),
  manifest: (attachment, { node }) => attachmentManifest(attachment, node),
  columns: ({ now, node }) => [
    { title: "NAMESPACE", cell: ({ pod }) => pod?.namespace ?? "" },
    { title: "POD", cell: ({ pod }) => pod?.name ?? "" },
    { title: "ADDRESSES", cell: ({ result }) => result.addresses.map(({ address }) => address).join(", ") },
    { title: "CLAIM", cell: ({ claim }) => claim ?? "" },
    { title: "NETWORK", cell: ({ scope }) => scope.network },
    { title: "CONTAINER", cell: ({ containerID }) => containerID.slice(0, 12) },
    { title: "INTERFACE", cell: (attachment) => attachment.interface },
    { title: "NODE", wide: true, cell: () => node },
    { title: "SOURCE", wide: true, cell: ({ source }) => source },
    { title: "NETNS", wide: true, cell: ({ netns }) => netns },
    { title: "AGE", cell: ({ attachedAt }) => ageOf(attachedAt, now) },
  ],
});
