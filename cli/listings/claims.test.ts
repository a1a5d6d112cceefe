// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Claim } from "../../allocator/model/claim.ts";
import { containerName } from "../../ipam-plugin/agent/claims/etcd/container-name.ts";
import { formerClaimName } from "../../ipam-plugin/agent/claims/etcd/former-containers.ts";
import { addr, attachmentOf, bindingTo, claimRecord } from "../../test/support/fixtures.ts";
import type { Backend } from "../backend/backend.ts";
import { claims } from "./claims.ts";

const containerID = "e3f0c1d2a4b5c6d7";
const { name } = containerName({ network: "lan", containerID, interface: "eth0" });
const identity = { kind: "Pod", apiVersion: "v1", name };
const attachment = attachmentOf(name, { containerID });

async function identitiesOf(place: Backend["place"], ...all: readonly Claim[]): Promise<readonly string[]> {
  return (await rowsOf(place, all)).map((row) => row["IDENTITY"] ?? "");
}

/** Each row: title of a column -> what is in it. */
async function rowsOf(
  place: Backend["place"],
  all: readonly Claim[],
): Promise<readonly Readonly<Record<string, string>>[]> {
  const backend = { place, node: "", claims: async () => all.map((record) => ({ record, createdAt: 0 })) };
  const query = { format: "table", namespace: "default", name: undefined } as const;
  let text = "";
  await claims.show(backend as unknown as Backend, query, 0, async (part) => {
    text += part;
  });
  const [head = "", ...rows] = text.trimEnd().split("\n");
  const titles = [...head.matchAll(/\S+(?: \S+)*/g)].map(({ 0: title, index }) => ({ title, index }));
  const cellsOf = (row: string) =>
    titles.map(({ title, index }, n) => [title, row.slice(index, titles[n + 1]?.index).trim()]);
  return rows.map((row) => Object.fromEntries(cellsOf(row)));
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

  it("are of the containers whose names they have", async () => {
    const binding = bindingTo("recorder", "host-a", { podUID: "" });
    const status = { attachment: attachmentOf("recorder", { containerID, podUID: "", node: "host-a" }) };
    const free = { ...held, name: "recorder", identity: { ...identity, name: "recorder" }, status: {} };
    const named = { ...free, binding, status };
    assert.deepEqual(await identitiesOf("etcd", free), ["container recorder"]);
    const own = { ...held, binding: bindingTo(name, "host-a", { podUID: "" }), status };
    const [of, ofOwn] = await rowsOf("etcd", [named, own]);
    assert.deepEqual(
      [of?.["IDENTITY"], of?.["CONTAINER"], of?.["HOST"]],
      ["container recorder", "recorder", "host-a"],
    );
    assert.equal(ofOwn?.["CONTAINER"], "e3f0c1d2a4b5");
  });

  it("are of others as everywhere", async () => {
    const named = { ...held, name: "recorder", identity: { ...identity, name: "recorder" } };
    assert.deepEqual(await identitiesOf("etcd", named), ["Pod recorder"], "a pod of a cluster has it");
    assert.deepEqual(await identitiesOf("cluster", held), [`Pod ${name}`]);
  });
});

describe("a claim whose pod is gone", () => {
  it("has no pod any more, and the node that it was on", async () => {
    const bound = claimRecord({ namespace: "default", binding: bindingTo("mysql-0", "node-a") });
    const detached = { attachment: attachmentOf("mysql-0", { detached: true }) };
    const kept = { ...bound, status: detached, retained: { since: 0, because: "deleted" } } as const;
    const podOf = async (claim: Claim) => {
      const [row] = await rowsOf("cluster", [claim]);
      return [row?.["PHASE"], row?.["POD"], row?.["NODE"]];
    };
    assert.deepEqual(await podOf({ ...bound, status: detached }), ["Detached", "mysql-0", "node-a"]);
    assert.deepEqual(await podOf(kept), ["Retained", "-", "node-a"]);
  });
});
