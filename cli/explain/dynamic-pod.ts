// SPDX-License-Identifier: Apache-2.0
// Where a pod that asks for no address is served from.

import { isRefusal, type Refusal } from "../../allocator/base/errors.ts";
import type { Labels } from "../../allocator/base/ports.ts";
import type { RecordReader } from "../../allocator/cache/reader.ts";
import { type Address, parseAddress } from "../../allocator/ip/address.ts";
import { Fields, type KubeObject } from "../../allocator/manifest/kubernetes-object.ts";
import { networkAttachments } from "../../allocator/manifest/network-attachments.ts";
import type { Block } from "../../allocator/model/block.ts";
import { blockLength } from "../../allocator/pool/blocks.ts";
import type { Pool } from "../../allocator/pool/pool.ts";
import { choosePools, type PoolChoice } from "../../allocator/pool/pool-choice.ts";
import { type Backend, partialCache } from "../backend/backend.ts";

/** What a pod without a claim has, and which pools serve it where its network names none and has no ranges of its own. */
export interface DynamicFacts {
  readonly addresses: readonly { readonly address: Address; readonly block: Block | undefined }[];
  /** Undefined: none of Berth's pools. */
  readonly choice: PoolChoice | Refusal | undefined;
}

/** What its sandboxes have: by the journal of this host, or by the pod's own status in a cluster. */
function addressesOf({ place, uses }: Backend, pod: KubeObject): readonly Address[] {
  const { namespace, name, uid } = pod.metadata;
  if (place === "cluster") {
    const ips = pod.json.at("status").list("podIPs");
    return ips.flatMap((ip) => parseAddress(new Fields(ip).text("ip")) ?? []);
  }
  const own = uses([]).filter(
    (use) => use.pod?.namespace === namespace && use.pod.name === name && (uid === "" || use.pod.uid === uid),
  );
  return own.flatMap(({ result }) => result.addresses.map(({ address }) => address));
}

export async function dynamicFactsOf(
  backend: Backend,
  pod: KubeObject,
  { namespaceLabels, nodeLabels }: { readonly namespaceLabels: Labels; readonly nodeLabels: Labels },
): Promise<DynamicFacts> {
  const addresses = addressesOf(backend, pod);
  const view = await partialCache(backend.store, addresses);
  return {
    addresses: addresses.map((address) => ({ address, block: view.blockOwning(address) })),
    choice: choiceFor(view, pod, { namespaceLabels, nodeLabels }),
  };
}

function choiceFor(
  view: Pick<RecordReader, "pools">,
  { metadata }: KubeObject,
  { namespaceLabels, nodeLabels }: { readonly namespaceLabels: Labels; readonly nodeLabels: Labels },
): PoolChoice | Refusal | undefined {
  const { namespace, labels, annotations } = metadata;
  const networks = networkAttachments(annotations, namespace).map(({ network }) => network);
  const choice = choosePools(view.pools(), {
    ...{ namespace, namespaceLabels, podLabels: labels, nodeLabels, networks },
  });
  return choice === undefined || isRefusal(choice) || choice.pools.some(isCut) ? choice : undefined;
}

function isCut(pool: Pool): boolean {
  return pool.families.some((family) => blockLength(pool, family) !== undefined);
}

const BY: Readonly<Record<PoolChoice["by"], string>> = {
  network: "which its network names",
  annotation: "which its annotation names",
  selectors: "which selects it",
  default: "the default",
};

/** In words, behind the pod's name. */
export function describeDynamic({ addresses, choice }: DynamicFacts): string {
  const asks = "asks for no fixed address";
  if (addresses.length > 0) return `${asks}, and has ${addresses.map(describeAddress).join(" and ")}`;
  if (choice === undefined) return `${asks}; the network's configuration gives it any`;
  if (isRefusal(choice)) return `${asks}, and no pool gives it one: ${choice.message}`;
  const [first, ...rest] = choice.pools.map(({ name }) => `"${name}"`);
  const next = rest.length === 0 ? "" : `, then ${rest.join(", ")}`;
  return `${asks}; it gets any of pool ${first} (${BY[choice.by]})${next} from a block of its node, unless its network names pools or has ranges of its own`;
}

function describeAddress({ address, block }: DynamicFacts["addresses"][number]): string {
  return block === undefined
    ? `${address}, of its network's own configuration`
    : `${address}, of block ${block.cidr} that node ${block.node} has of pool "${block.pool}"`;
}
