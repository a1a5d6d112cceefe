// SPDX-License-Identifier: Apache-2.0
// A cluster as full as it is asked for: claims of StatefulSets with their reservations, some of them bound to pods.
// One object of each kind is made through the API server; the others are written beside it into etcd in its form, since
// an API server takes ten minutes for what etcd takes in seconds.
import { type Address, fromNumber, parseCidr } from "../../allocator/ip/address.ts";
import { type Claim, DEFAULT_RETENTION } from "../../allocator/model/claim.ts";
import { blockName, reservationName } from "../../allocator/store/codec.ts";
import { IN_USE, specOf, statusPatch } from "../../allocator/store/kubernetes/objects.ts";
import { type Body, Client } from "../../kube/api/client.ts";
import type { Connection } from "../../kube/api/connection.ts";
import {
  BLOCKS,
  CLAIMS,
  collectionPath,
  NAMESPACES,
  NODES,
  PODS,
  POOLS,
  RESERVATIONS,
  type Resource,
  STATEFULSETS,
} from "../../kube/api/resource.ts";
import { createRandom } from "../../system/random.ts";
import { eventually } from "../support/eventually.ts";
import { type Entry, Etcd } from "./etcd.ts";

export interface Load {
  /** Each with its reservation, of StatefulSets of 100. */
  readonly claims: number;
  /** The claims of so many are bound, and their sandboxes attached. */
  readonly pods: number;
  /** That the pods are on, in turn. */
  readonly nodes: number;
  /** Blocks of 64, of the nodes in turn. */
  readonly blocks?: number;
}

/** The pool that all of them have their addresses from. */
export const POOL = { name: "fixed", cidr: "10.64.0.0/12" };
const BLOCKS_CIDR = "10.112.0.0/12";
/** The API server stores in the form in which everything can be read and written. */
export const API_SERVER_FLAGS = ["--storage-media-type=application/json"];
const PER_SET = 100;
const SPACES = 100;
const HEARD_MS = 600_000;
const SINCE = Date.UTC(2026, 0, 1);
const CONTAINERS = { containers: [{ name: "main", image: "registry.example/database:1" }] };

export interface Ordinal {
  readonly namespace: string;
  readonly set: string;
  readonly ordinal: number;
  readonly name: string;
  readonly address: Address;
}

/** The n-th claim: whose it is, and its address. */
export function ordinalOf(n: number): Ordinal {
  const { set, namespace } = setOf(Math.floor(n / PER_SET));
  const ordinal = n % PER_SET;
  const { base } = parseCidr(POOL.cidr) ?? { base: 0n };
  const address = fromNumber(base + BigInt(n + 2), "IPv4");
  return { namespace, set, ordinal, address, name: `${set}-${ordinal}` };
}

/** The node of the n-th pod. */
export function nodeOf(n: number, { nodes }: Load): string {
  return `node-${n % nodes}`;
}

/** Fills an empty API server, whose etcd is at that URL. */
export async function fill(connection: Connection, etcd: string, load: Load): Promise<void> {
  await new Client(connection, POOLS).create(
    { name: POOL.name },
    { spec: { ranges: [{ cidr: POOL.cidr }] } },
  );
  const form = new Forms(connection, new Etcd(etcd));
  const sets = Math.ceil(load.claims / PER_SET);
  await form.write(NAMESPACES, Math.min(SPACES, sets), (n) => ({ name: spaceOf(n) }));
  await form.write(NODES, load.nodes, (n) => ({ name: nodeOf(n, load) }));
  await form.write(STATEFULSETS, sets, setObject);
  await form.write(PODS, load.pods, (n) => podObject(n, nodeOf(n, load)));
  await form.write(RESERVATIONS, load.claims, reservationObject);
  await form.write(CLAIMS, load.pods, (n) => claimObject(n, nodeOf(n, load)));
  await form.write(CLAIMS, load.claims, (n) => claimObject(n), load.pods);
  await form.write(BLOCKS, load.blocks ?? 0, (n) => blockObject(n, nodeOf(n, load)));
  for (const resource of [CLAIMS, RESERVATIONS, PODS]) await untilHeard(connection, resource);
}

/** The API server hears of what was written beside it by its watch of etcd, which takes minutes for 100,000: whoever asked before would be turned away. */
async function untilHeard(connection: Connection, resource: Resource): Promise<void> {
  const name = `after-${resource.plural}`;
  const last = await new Client(connection, NAMESPACES).create({ name }, {});
  const resourceVersion = last?.metadata.resourceVersion ?? "";
  const query = { limit: "1", resourceVersion, resourceVersionMatch: "NotOlderThan" };
  const path = collectionPath(resource);
  await eventually(
    `the API server has heard of all ${resource.plural}`,
    async () => ((await connection.call({ method: "GET", path, query })).status === 200 ? true : undefined),
    HEARD_MS,
  );
}

/** What differs from object to object. */
interface Made {
  readonly name: string;
  readonly namespace?: string;
  readonly uid?: string;
  readonly metadata?: Body;
  readonly spec?: Body;
  readonly status?: Body;
}

class Forms {
  readonly #connection: Connection;
  readonly #etcd: Etcd;

  constructor(connection: Connection, etcd: Etcd) {
    this.#connection = connection;
    this.#etcd = etcd;
  }

  /** The objects from `first` on: that one through the API server, the others as copies of it but for what `of` says. */
  async write(resource: Resource, count: number, of: (n: number) => Made, first = 0): Promise<void> {
    if (count <= first) return;
    const made = of(first);
    await this.#make(resource, made);
    const form = (await this.#etcd.get(keyOf(resource, made))) as { metadata: Body };
    const copy = ({ name, namespace, uid = uidOf("copy", 0), metadata, spec, status }: Made): Body => ({
      ...form,
      metadata: {
        ...form.metadata,
        ...metadata,
        ...{ name, uid },
        ...(namespace === undefined ? {} : { namespace }),
      },
      ...(spec === undefined ? {} : { spec: { ...("spec" in form ? (form.spec as Body) : {}), ...spec } }),
      ...(status === undefined ? {} : { status }),
    });
    const entries = function* (): Generator<Entry, void, void> {
      for (let n = first; n < count; n++) {
        const next = of(n);
        yield { key: keyOf(resource, next), value: copy(next) };
      }
    };
    await this.#etcd.putAll(entries());
  }

  async #make(
    resource: Resource,
    { name, namespace, metadata = {}, spec = {}, status }: Made,
  ): Promise<void> {
    const client = new Client(this.#connection, resource);
    const place = namespace === undefined ? { name } : { name, namespace };
    const made = await client.create(place, { metadata, ...(resource === NAMESPACES ? {} : { spec }) });
    if (made === undefined) throw new Error(`${resource.plural} ${name} is there already`);
    if (status !== undefined && resource === CLAIMS)
      await client.patch(place, { type: "merge", body: { status } }, "status");
  }
}

/** Where the API server keeps an object in etcd. */
function keyOf({ group, plural }: Resource, { name, namespace }: Made): string {
  const kind = plural === "nodes" ? "minions" : plural;
  const folder = group === "berth.dev" ? `${group}/${kind}` : kind;
  return `/registry/${folder}/${namespace === undefined ? name : `${namespace}/${name}`}`;
}

/** Always the same for the n-th of a kind. */
function uidOf(kind: string, n: number): string {
  const digits = Buffer.from(kind).toString("hex").padEnd(8, "0").slice(0, 8);
  return `${digits}-0000-4000-8000-${n.toString(16).padStart(12, "0")}`;
}

function spaceOf(set: number): string {
  return `space-${set % SPACES}`;
}

function setOf(n: number): { readonly set: string; readonly namespace: string } {
  return { set: `database-${n}`, namespace: spaceOf(n) };
}

function setObject(n: number): Made {
  const { set, namespace } = setOf(n);
  const labels = { app: set };
  const annotations = { "berth.dev/pools": POOL.name };
  const template = { metadata: { labels, annotations }, spec: CONTAINERS };
  const spec = { replicas: PER_SET, serviceName: set, selector: { matchLabels: labels }, template };
  return { name: set, namespace, uid: uidOf("set", n), spec };
}

/** As the StatefulSet's controller makes it, and Berth and the scheduler have had it. */
function podObject(n: number, node: string): Made {
  const { set, name, namespace, ordinal, address } = ordinalOf(n);
  const uid = uidOf("set", Math.floor(n / PER_SET));
  const index = String(ordinal);
  const metadata = {
    labels: {
      app: set,
      "statefulset.kubernetes.io/pod-name": name,
      "apps.kubernetes.io/pod-index": index,
    },
    annotations: {
      "berth.dev/pools": POOL.name,
      "berth.dev/claim": name,
      "berth.dev/addresses": address,
    },
    ownerReferences: [{ apiVersion: "apps/v1", kind: "StatefulSet", name: set, uid, controller: true }],
  };
  return { name, namespace, uid: uidOf("pod", n), metadata, spec: { nodeName: node, ...CONTAINERS } };
}

function reservationObject(n: number): Made {
  const { namespace, name, address } = ordinalOf(n);
  const record = { address, pool: POOL.name, claim: { namespace, name }, nonce: nonceOf(n) };
  return { name: reservationName(address), uid: uidOf("rsv", n), spec: specOf("reservation", record) };
}

/** Of a pod on the node, with its sandbox attached; of an ordinal without a pod where there is none. */
function claimObject(n: number, node?: string): Made {
  const { namespace, name, set, ordinal, address } = ordinalOf(n);
  const podUID = uidOf("pod", n);
  const bound = { node: node ?? "", interface: "eth0", podUID, since: SINCE };
  const containerID = n.toString(16).padStart(64, "c");
  const status: Claim["status"] =
    node === undefined ? {} : { attachment: { ...bound, containerID, detached: false } };
  const claim: Claim = {
    ...{ namespace, name, nonce: nonceOf(n), addresses: [address], admittedAt: SINCE, status },
    identity: {
      ...{ kind: "StatefulSet", apiVersion: "apps/v1", name: set, ordinal },
      uid: uidOf("set", Math.floor(n / PER_SET)),
    },
    request: { pools: [POOL.name] },
    retention: DEFAULT_RETENTION,
    ...(node === undefined ? {} : { binding: { ...bound, token: "", podName: name } }),
  };
  const metadata = node === undefined ? {} : { finalizers: [IN_USE] };
  const written = { spec: specOf("claim", claim), status: statusPatch(status) };
  return { name, namespace, uid: uidOf("clm", n), metadata, ...written };
}

function blockObject(n: number, node: string): Made {
  const { base } = parseCidr(BLOCKS_CIDR) ?? { base: 0n };
  const network = fromNumber(base + BigInt(n) * 64n, "IPv4");
  const cidr = parseCidr(`${network}/26`);
  if (cidr === undefined) throw new Error(`${network} is no block`);
  const record = {
    cidr: cidr.text,
    pool: POOL.name,
    node,
    nodeUID: uidOf("node", n),
    holes: [],
    granted: true,
  };
  return { name: blockName(cidr), uid: uidOf("blk", n), spec: specOf("block", record) };
}

/** As long as Berth's own, and the same for claim and reservation. */
function nonceOf(n: number): string {
  return NONCE.slice(0, -8) + n.toString(36).padStart(8, "0");
}

const NONCE = createRandom().token();
