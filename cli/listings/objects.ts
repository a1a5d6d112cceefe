// SPDX-License-Identifier: Apache-2.0
import { ASSIGNED_ADDRESSES, ASSIGNED_CLAIM, DIALECTS } from "../../allocator/dialects.ts";
import { type KubeObject, workloadFacts } from "../../allocator/kube-object.ts";
import { allOf } from "../ledger.ts";
import { listing } from "../listing.ts";
import { ageOf } from "../output.ts";

export const pods = listing<KubeObject>({
  names: ["pods", "pod", "po"],
  noun: "pod",
  scope: "namespace",
  load: ({ shelf }) => shelf.objects("Pod"),
  keyOf: ({ metadata }) => metadata,
  manifest: ({ json }) => json.value,
  columns: ({ now }) => [
    { title: "NAMESPACE", cell: ({ metadata }) => metadata.namespace },
    { title: "NAME", cell: ({ metadata }) => metadata.name },
    {
      title: "ADDRESSES",
      cell: ({ metadata }) => metadata.annotations[ASSIGNED_ADDRESSES]?.replaceAll(",", ", ") ?? "",
    },
    { title: "CLAIM", cell: ({ metadata }) => metadata.annotations[ASSIGNED_CLAIM] ?? "" },
    {
      title: "OWNER",
      cell: ({ metadata: { owner } }) => (owner === undefined ? "" : `${owner.kind}/${owner.name}`),
    },
    { title: "AGE", cell: (object) => ageOfObject(object, now) },
  ],
});

interface Row {
  readonly object: KubeObject;
  /** How many claims its identities have. */
  readonly claims: number;
}

export const workloads = listing<Row>({
  names: ["workloads", "workload"],
  noun: "workload",
  scope: "namespace",
  async load({ shelf, store }) {
    const counts = new Map<string, number>(); // kind/namespace/name of the owner -> claims
    for (const { record } of await allOf(store, "claim")) {
      const owner = `${record.identity.kind}/${record.namespace}/${record.identity.name}`;
      counts.set(owner, (counts.get(owner) ?? 0) + 1);
    }
    const objects = [...(await shelf.objects("StatefulSet")), ...(await shelf.objects("Deployment"))];
    return objects.map((object) => {
      const { namespace, name } = object.metadata;
      return { object, claims: counts.get(`${object.kind}/${namespace}/${name}`) ?? 0 };
    });
  },
  keyOf: ({ object }) => object.metadata,
  manifest: ({ object }) => object.json.value,
  columns: ({ now }) => [
    { title: "NAMESPACE", cell: ({ object }) => object.metadata.namespace },
    { title: "KIND", cell: ({ object }) => object.kind },
    { title: "NAME", cell: ({ object }) => object.metadata.name },
    { title: "REPLICAS", cell: ({ object }) => String(workloadFacts(object).replicas) },
    { title: "CLAIMS", cell: ({ claims }) => String(claims) },
    { title: "REQUEST", cell: ({ object }) => requestOf(object) },
    { title: "AGE", cell: ({ object }) => ageOfObject(object, now) },
  ],
});

/** The annotations of the template that ask for something, as they were written. */
function requestOf({ spec }: KubeObject): string {
  const annotations = spec.at("template").at("metadata").texts("annotations");
  return DIALECTS.flatMap(({ key }) =>
    annotations[key] === undefined ? [] : `${key}=${annotations[key]}`,
  ).join(" ");
}

function ageOfObject({ json }: KubeObject, now: number): string {
  const created = Date.parse(json.at("metadata").text("creationTimestamp"));
  return Number.isNaN(created) ? "" : ageOf(created, now);
}
