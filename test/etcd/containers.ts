// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { isRefusal } from "../../allocator/base/errors.ts";
import type { AttachRequest } from "../../ipam-plugin/agent/claims/claim-source.ts";
import { containerName } from "../../ipam-plugin/agent/claims/etcd/container-name.ts";
import { LIVE } from "../../ipam-plugin/agent/testing/claims-bench.ts";
import type { Host } from "./host.ts";

/** What an agent asks for a container of a network that names the pool `lan`. */
export function addRequest(name: string): AttachRequest {
  const attachment = { network: "macvlan", containerID: `box-${name}`, interface: "eth0" };
  return {
    pod: containerName(attachment),
    attachment,
    pools: ["lan"],
    addresses: [],
    annotations: undefined,
  };
}

/** An ADD's part of it: the address, or why there is none, as CODE: words. Throws what the store throws. */
export async function claimAddress({ claims }: Host, request: AttachRequest): Promise<string> {
  const found = await claims.find(request, LIVE);
  if (isRefusal(found)) return `${found.code}: ${found.message}`;
  assert.equal(found.kind, "found");
  const given = await claims.attach(found, request, LIVE);
  if (isRefusal(given)) return `${given.code}: ${given.message}`;
  assert.equal(given.kind, "claimed");
  return given.addresses.map(({ address }) => address).join(",");
}
