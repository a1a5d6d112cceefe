// SPDX-License-Identifier: Apache-2.0
import { ASSIGNED_ADDRESSES, ASSIGNED_CLAIM, requestKeysIn } from "../../allocator/manifest/annotations.ts";
import { Fields, type KubeObject, workloadState } from "../../allocator/manifest/kubernetes-object.ts";
import { withoutUnread } from "../apply/submit.ts";
import type { AttachmentUse } from "../backend/attachment-report.ts";
import type { Backend } from "../backend/backend.ts";
import { ageOf } from "../terminal/output.ts";
import { listing, type Query } from "./listing.ts";

interface PodRow {
  readonly object: KubeObject;
  readonly addresses: readonly string[];
}

export const pods = listing<PodRow>({
  names: ["pods", "pod", "po"],
  noun: "pod",
  scope: "namespace",
  async load(backend, query) {
    const pods = await objectsOf(backend, "Pod", query);
    const shown = ({ metadata }: KubeObject) => metadata.name === query.name || concernsBerth(metadata);
    if (backend.place === "cluster")
      return pods.filter(shown).map((object) => ({ object, addresses: addressesIn(object) }));
    const uses = await backend.uses([]);
    return pods.map((object) => ({ object, addresses: addressesOnHost(object, uses) }));
  },
  keyOf: ({ object }) => object.metadata,
  manifest: ({ object }) => withoutUnread(object.json.value),
  columns: ({ now }) => [
    { title: "NAMESPACE", cell: ({ object }) => object.metadata.namespace },
    { title: "NAME", cell: ({ object }) => object.metadata.name },
    { title: "ADDRESSES", cell: ({ addresses }) => addresses.join(", ") },
    { title: "CLAIM", cell: ({ object }) => object.metadata.annotations[ASSIGNED_CLAIM] ?? "" },
    {
      title: "OWNER",
      cell: ({ object: { metadata } }) =>
        metadata.owner === undefined ? "" : `${metadata.owner.kind}/${metadata.owner.name}`,
    },
    { title: "AGE", cell: ({ object }) => ageOfObject(object, now) },
  ],
});

/** Those of its claim; of a pod that has none what it reports to be up with, from wherever that is. */
function addressesIn({ metadata, json }: KubeObject): readonly string[] {
  const assigned = metadata.annotations[ASSIGNED_ADDRESSES];
  if (assigned !== undefined) return assigned.split(",");
  const reported = json.at("status").list("podIPs");
  return reported.map((one) => new Fields(one).text("ip")).filter((ip) => ip !== "");
}

/** The same on one host, where pods report nothing and the journal knows what their sandboxes have. */
function addressesOnHost(pod: KubeObject, uses: readonly AttachmentUse[]): readonly string[] {
  const assigned = addressesIn(pod);
  if (assigned.length > 0) return assigned;
  const { namespace, name } = pod.metadata;
  const own = uses.filter((use) => use.pod?.namespace === namespace && use.pod.name === name);
  return own.flatMap(({ result }) => result.addresses.map(({ address }) => address));
}

const WORKLOADS = ["StatefulSet", "Deployment", "CloneSet"];

interface Row {
  readonly object: KubeObject;
  /** How many claims its identities have. */
  readonly claims: number;
}

export const workloads = listing<Row>({
  names: ["workloads", "workload"],
  noun: "workload",
  scope: "namespace",
  async load(backend, query) {
    const counts = new Map<string, number>(); // kind/namespace/name of the owner -> claims
    for (const { record } of await backend.claims(query.namespace)) {
      const owner = `${record.identity.kind}/${record.namespace}/${record.identity.name}`;
      counts.set(owner, (counts.get(owner) ?? 0) + 1);
    }
    const objects: KubeObject[] = [];
    for (const kind of WORKLOADS) objects.push(...(await objectsOf(backend, kind, query)));
    const rows = objects.map((object) => {
      const { namespace, name } = object.metadata;
      return { object, claims: counts.get(`${object.kind}/${namespace}/${name}`) ?? 0 };
    });
    return backend.place === "data" ? rows : rows.filter((row) => isShown(row, query));
  },
  keyOf: ({ object }) => object.metadata,
  manifest: ({ object }) => withoutUnread(object.json.value),
  columns: ({ now }) => [
    { title: "NAMESPACE", cell: ({ object }) => object.metadata.namespace },
    { title: "KIND", cell: ({ object }) => object.kind },
    { title: "NAME", cell: ({ object }) => object.metadata.name },
    { title: "REPLICAS", cell: ({ object }) => String(workloadState(object).replicas) },
    { title: "CLAIMS", cell: ({ claims }) => String(claims) },
    { title: "REQUEST", cell: ({ object }) => requestOf(object) },
    { title: "AGE", cell: ({ object }) => ageOfObject(object, now) },
  ],
});

/** The one that is asked for by name and namespace, or all that may be meant. */
async function objectsOf(
  { world }: Backend,
  kind: string,
  { namespace, name }: Query,
): Promise<readonly KubeObject[]> {
  if (namespace === undefined || name === undefined) return await world.objects(kind, namespace);
  const object = await world.object(kind, namespace, name);
  return object === undefined ? [] : [object];
}

/** A cluster is full of objects that Berth has no say about: they are shown if they are named. */
function isShown({ object, claims }: Row, { name }: Query): boolean {
  const { metadata, spec } = object;
  return claims > 0 || metadata.name === name || concernsBerth(annotated(spec.at("template")));
}

function annotated(template: Fields): Pick<KubeObject["metadata"], "annotations"> {
  return { annotations: template.at("metadata").texts("annotations") };
}

/** It asks for something, or has a claim. */
function concernsBerth({ annotations }: Pick<KubeObject["metadata"], "annotations">): boolean {
  return annotations[ASSIGNED_CLAIM] !== undefined || requestKeysIn(annotations).length > 0;
}

/** Of a list of a thousand addresses a table has no room; `-o yaml` has all of it. */
const SHOWN_OF_VALUE = 60;

/** The annotations of the template that ask for something, as they were written. */
function requestOf({ spec }: KubeObject): string {
  const annotations = spec.at("template").at("metadata").texts("annotations");
  return requestKeysIn(annotations)
    .map((key) => `${key}=${shortened(annotations[key] ?? "")}`)
    .join(" ");
}

function shortened(value: string): string {
  return value.length <= SHOWN_OF_VALUE ? value : `${value.slice(0, SHOWN_OF_VALUE)}...`;
}

function ageOfObject({ json }: KubeObject, now: number): string {
  const created = Date.parse(json.at("metadata").text("creationTimestamp"));
  return Number.isNaN(created) ? "" : ageOf(created, now);
}
