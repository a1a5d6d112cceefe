// SPDX-License-Identifier: Apache-2.0
// What the API server says of addresses of Services: read when somebody makes a pool, and never watched.

import { BerthError } from "../../allocator/base/errors.ts";
import { type Cidr, parseAddress, parseCidr } from "../../allocator/ip/address.ts";
import { Fields } from "../../allocator/manifest/kubernetes-object.ts";
import type { Occupied } from "../../allocator/planning/occupied.ts";
import { Client } from "../../kube/api/client.ts";
import type { Connection } from "../../kube/api/connection.ts";
import { type KubeItem, SERVICE_CIDRS, SERVICES } from "../../kube/api/resource.ts";

/** Which addresses Services have now, and which networks they get theirs from. */
export interface ServiceFacts {
  readonly networks: readonly Cidr[];
  readonly occupied: readonly Occupied[];
  /** Something of it could not be read. */
  readonly isPart: boolean;
}

const PAGE = 2_000;
/** Somebody waits for an answer: for two pages of each at most. */
const FOR_REVIEW = { timeoutMs: 2_000, pages: 2 };

/** What cannot be read, or is not served by an older API server, is left out. */
export async function readServices(
  connection: Connection,
  { timeoutMs, pages }: { readonly timeoutMs: number; readonly pages: number } = FOR_REVIEW,
): Promise<ServiceFacts> {
  const [cidrs, services] = await Promise.all(
    [SERVICE_CIDRS, SERVICES].map((resource) => listed(new Client(connection, resource, timeoutMs), pages)),
  );
  return {
    networks: (cidrs ?? []).flatMap(networksOf),
    occupied: (services ?? []).flatMap(addressesOf),
    isPart: services === undefined,
  };
}

async function listed(client: Client, pages: number): Promise<KubeItem[] | undefined> {
  const all: KubeItem[] = [];
  let left = pages;
  try {
    for await (const { items } of client.pages({}, PAGE)) {
      all.push(...items);
      if (--left === 0) break;
    }
    return all;
  } catch (error) {
    if (error instanceof BerthError) return undefined;
    throw error;
  }
}

function networksOf(item: KubeItem): Cidr[] {
  const texts = new Fields(item).at("spec").list("cidrs");
  return texts.flatMap((text) => parseCidr(String(text)) ?? []);
}

function addressesOf(item: KubeItem): Occupied[] {
  const fields = new Fields(item);
  const spec = fields.at("spec");
  const { namespace = "", name } = item.metadata;
  const ingress = fields.at("status").at("loadBalancer").list("ingress");
  const texts = [
    ...spec.list("clusterIPs").map(String),
    ...spec.list("externalIPs").map(String),
    ...ingress.map((one) => new Fields(one).text("ip")),
  ];
  const addresses = texts.flatMap((text) => parseAddress(text) ?? []);
  return addresses.map((address) => [address, { kind: "service", namespace, name }] as const);
}
