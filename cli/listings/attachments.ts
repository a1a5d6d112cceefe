// SPDX-License-Identifier: Apache-2.0
import { listing } from "../listing.ts";
import { attachmentManifest } from "../manifest.ts";
import { ageOf, type Column } from "../output.ts";
import type { Use } from "../use.ts";

export const attachments = listing<Use>({
  names: ["attachments", "attachment"],
  noun: "attachment of container",
  scope: "namespace in a cluster", // on a host, those of a runtime that names no pod must not be hidden
  async load(registry, { namespace }) {
    if (registry.place === "data") return registry.uses([]);
    return registry.uses((await registry.claims(namespace)).map(({ record }) => record));
  },
  keyOf: (use) => ({ namespace: namespaceOf(use), name: use.containerID }),
  manifest: (use, { node }) => attachmentManifest(use, use.node ?? node),
  columns: ({ now, node, place }) => (place === "data" ? ofHost(now, node) : ofCluster(now)),
});

/** Addresses that no claim has are known by the pod alone, where the runtime names it. */
function namespaceOf({ pod, claim }: Use): string {
  return pod?.namespace ?? claim?.split("/")[0] ?? "";
}

const POD: readonly Column<Use>[] = [
  { title: "NAMESPACE", cell: namespaceOf },
  { title: "POD", cell: ({ pod }) => pod?.name ?? "" },
  { title: "ADDRESSES", cell: ({ result }) => result.addresses.map(({ address }) => address).join(", ") },
  { title: "CLAIM", cell: ({ claim }) => claim ?? "" },
];

const SANDBOX: readonly Column<Use>[] = [
  { title: "CONTAINER", cell: ({ containerID }) => containerID.slice(0, 12) },
  { title: "INTERFACE", cell: (use) => use.interface },
];

function ofHost(now: number, node: string): readonly Column<Use>[] {
  return [
    ...POD,
    { title: "NETWORK", cell: ({ scope }) => scope.network },
    ...SANDBOX,
    { title: "NODE", wide: true, cell: () => node },
    { title: "SOURCE", wide: true, cell: ({ source }) => source },
    { title: "NETNS", wide: true, cell: ({ netns }) => netns },
    { title: "AGE", cell: ({ attachedAt }) => ageOf(attachedAt, now) },
  ];
}

/** What the nodes' agents report to the claims. */
function ofCluster(now: number): readonly Column<Use>[] {
  return [
    ...POD,
    { title: "NODE", cell: ({ node }) => node ?? "" },
    ...SANDBOX,
    { title: "POD UID", wide: true, cell: ({ pod }) => pod?.uid ?? "" },
    { title: "AGE", cell: ({ attachedAt }) => ageOf(attachedAt, now) },
  ];
}
