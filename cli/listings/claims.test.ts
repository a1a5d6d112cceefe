// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Claim } from "../../allocator/model/claim.ts";
import { containerName } from "../../ipam-plugin/agent/claims/etcd/container-name.ts";
import { formerClaimName } from "../../ipam-plugin/agent/claims/etcd/former-containers.ts";
import { addr, attachmentOf, claimRecord } from "../../test/support/fixtures.ts";
import type { Backend } from "../backend/backend.ts";
import { claims } from "./claims.ts";

const containerID = "e3f0c1d2a4b5c6d7";
const { name } = containerName({ network: "lan", containerID, interface: "eth0" });
const identity = { kind: "Pod", apiVersion: "v1", name };
const attachment = attachmentOf(name, { containerID });

async function identitiesOf(place: Backend["place"], ...all: readonly Claim[]): Promise<readonly string[]> {
  const backend = { place, node: "", claims: async () => all.map((record) => ({ record, createdAt: 0 })) };
  const query = { format: "table", namespace: "default", name: undefined } as const;
  let text = "";
  await claims.show(backend as unknown as Backend, query, 0, async (part) => {
    text += part;
  });
  const [head = "", ...rows] = text.trimEnd().split("\n");
  const [from, to] = [head.indexOf("IDENTITY"), head.indexOf("PHASE")];
  return rows.map((row) => row.slice(from, to).trim());
}

describe("the claims of hosts that share an etcd", () => {
  const held = claimRecord({ namespace: "default", name, identity, status: { attachment } });

  it("are of containers, by their ids", async () => {
    assert.deepEqual(await identitiesOf("etcd", held), ["container e3f0c1d2a4b5, eth0"]);
    assert.deepEqual(await identitiesOf("etcd", { ...held, status: {} }), ["container e3f0c1d2a4b5, eth0"]);
    const odd = containerName({ network: "lan", containerID: "c-1", interface: "eth0" });
    assert.deepEqual(await identitiesOf("etcd", { ...held, name: odd.name, status: {} }), ["container"]);
  });

  it("are of the containers of cni-ipam-etcd after an import", async () => {
    const former = formerClaimName({ network: "lan", containerID }, addr("10.10.20.50"));
    const kept = { ...held, name: former, status: {}, handMade: true } as const;
    assert.deepEqual(await identitiesOf("etcd", kept), ["container e3f0c1d2a4b5"]);
  });

  it("are of others as everywhere", async () => {
    const named = { ...held, name: "recorder", identity: { ...identity, name: "recorder" } };
    assert.deepEqual(await identitiesOf("etcd", named), ["Pod recorder"]);
    assert.deepEqual(await identitiesOf("cluster", held), [`Pod ${name}`]);
  });
});
