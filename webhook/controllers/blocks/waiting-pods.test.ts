// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { needs, on, web } from "../../testing/node-needs.ts";

const SINGLES = { ipv4: 32, ahead: 0 };
const LAN = web({ networks: ["pods"], blockSize: SINGLES }, "lan", "10.2.0.0/24");
const VLAN = web({ networks: ["shop/vlan"], blockSize: SINGLES }, "vlan", "10.3.0.0/24");
const ANY = web({ default: true, blockSize: SINGLES }, "any", "10.4.0.0/24");

/** A pod with further interfaces, which has no address. */
const beside = (networks: string, more: Readonly<Record<string, string>> = {}) => ({
  ...on("a"),
  metadata: { annotations: { "k8s.v1.cni.cncf.io/networks": networks, ...more } },
});
const having = (...ips: readonly string[]) => ({ ...on("a"), status: { podIPs: ips.map((ip) => ({ ip })) } });

/** What node a needs of each pool. */
async function ofA(scene: Parameters<typeof needs>[0]): Promise<Record<string, string>> {
  const all = await needs({ nodes: { a: {} }, ...scene });
  return Object.fromEntries(Object.entries(all).map(([key, value]) => [key.split("/")[0], value.slice(2)]));
}

describe("a pod that waits for an address of its network's pool", () => {
  it("counts for it after 5 s, and at once where others have their addresses from there", async () => {
    const pools = [LAN, ANY];
    const pods = { waits: on("a") };
    assert.deepEqual(await ofA({ pools, pods }), { lan: "0", any: "1" });
    assert.deepEqual(await ofA({ pools, pods, waitedMs: 5_000 }), { lan: "1", any: "1" });
    // the network of all pods is one that the pool is for: theirs comes before the default
    const known = { ...pods, served: having("10.2.0.7"), more: on("a") };
    assert.deepEqual(await ofA({ pools, pods: known }), { lan: "3", any: "0" });
  });

  it("never counts for the pool of a NetworkAttachmentDefinition that it does not name", async () => {
    const pools = [VLAN, ANY];
    const pods = { waits: on("a"), other: beside("vlan2") };
    assert.deepEqual(await ofA({ pools, pods, waitedMs: 60_000 }), { vlan: "0", any: "3" });
    const named = { ...pods, own: beside("vlan"), far: beside("lab/vlan") };
    assert.deepEqual(await ofA({ pools, pods: named, waitedMs: 60_000 }), { vlan: "1", any: "7" });
  });

  it("counts once for each of its interfaces that the pool may serve, which is not known of further networks at first", async () => {
    const pools = [web({ namespaceSelector: {}, blockSize: SINGLES }, "open", "10.4.0.0/24")];
    const pods = { waits: beside("one,two,three") };
    assert.deepEqual(await ofA({ pools, pods }), { open: "1" });
    assert.deepEqual(await ofA({ pools, pods, waitedMs: 5_000 }), { open: "2" });
    assert.deepEqual(await ofA({ pools, pods, waitedMs: 30_000 }), { open: "4" });
    const served = { ...pods.waits, status: { podIPs: [{ ip: "10.4.0.9" }] } };
    assert.deepEqual(await ofA({ pools, pods: { served }, waitedMs: 30_000 }), { open: "1" }, "it has them");
    const many = { waits: beside("one,two,three,four,five,six") };
    assert.deepEqual(
      await ofA({ pools, pods: many, waitedMs: 30_000 }),
      { open: "4" },
      "anybody may name networks",
    );
  });

  it("counts beyond what others use at all of their interfaces, once it has waited in vain", async () => {
    const pools = [web({ default: true, blockSize: SINGLES }, "open", "10.4.0.0/24")];
    const served = { ...beside("one"), status: { podIPs: [{ ip: "10.4.0.1" }] } };
    const status = { node: "a", used: 1 };
    const blocks = ["10.4.0.1/32", "10.4.0.2/32"].map((cidr) => ({ cidr, pool: "open", status }));
    const plain = { pools, pods: { served, waits: on("a") }, blocks };
    assert.deepEqual(await ofA(plain), { open: "2" }, "it may be one of those that are used");
    assert.deepEqual(
      await ofA({ ...plain, waitedMs: 5_000 }),
      { open: "2" },
      "its kubelet may not say so yet",
    );
    const pods = { served, waits: beside("one") };
    assert.deepEqual(await ofA({ pools, pods, blocks, waitedMs: 5_000 }), { open: "4" });
  });

  it("counts beyond what others use after 30 s, also with one interface, where nodes have nothing ahead", async () => {
    const served = { ...beside("one"), status: { podIPs: [{ ip: "10.4.0.1" }] } };
    const status = { node: "a", used: 1 };
    const blocks = ["10.4.0.1/32", "10.4.0.2/32"].map((cidr) => ({ cidr, pool: "open", status }));
    const of = (blockSize: object, more: object) => {
      const pools = [web({ blockSize, ...more }, "open", "10.4.0.0/24")];
      return ofA({ pools, pods: { served, waits: on("a") }, blocks, waitedMs: 30_000 });
    };
    assert.deepEqual(await of(SINGLES, { default: true }), { open: "3" });
    assert.deepEqual(await of(SINGLES, { networks: ["lan"] }), { open: "3" });
    assert.deepEqual(await of({ ipv4: 32 }, { default: true }), { open: "2" });
  });

  it("counts beyond what others use after 60 s, where these have their first addresses from elsewhere", async () => {
    const pools = [web({ default: true, blockSize: SINGLES }, "open", "10.4.0.0/24")];
    const served = { ...beside("one"), status: { podIPs: [{ ip: "10.244.1.9" }] } };
    const block = { cidr: "10.4.0.1/32", pool: "open", status: { node: "a", used: 1 } };
    const of = (waitedMs: number) =>
      ofA({ pools, pods: { served, waits: on("a") }, blocks: [block], waitedMs });
    assert.deepEqual(await of(30_000), { open: "1" }, "what is used may be its own");
    assert.deepEqual(await of(60_000), { open: "2" });
  });

  it("counts for both interfaces for a pool that names both networks", async () => {
    const both = web({ networks: ["net", "line"], blockSize: SINGLES }, "both", "10.5.0.0/24");
    const pods = { waits: beside("line") };
    assert.deepEqual(await ofA({ pools: [both], pods, waitedMs: 5_000 }), { both: "2" });
    const line = web({ networks: ["line"], blockSize: SINGLES }, "line", "10.5.0.0/24");
    assert.deepEqual(await ofA({ pools: [line], pods, waitedMs: 5_000 }), { line: "1" });
  });

  it("counts for that of each network that it names, as soon as pods have addresses of it", async () => {
    const named = web({ networks: ["line"], blockSize: SINGLES }, "line", "10.5.0.0/24");
    const pools = [VLAN, named];
    const pods = { waits: beside("vlan,line@net7") };
    assert.deepEqual(
      await ofA({ pools, pods }),
      { vlan: "0", line: "0" },
      "they may be for fixed ones alone",
    );
    assert.deepEqual(await ofA({ pools, pods, waitedMs: 5_000 }), { vlan: "1", line: "1" });
    const block = { cidr: "10.3.0.9/32", pool: "vlan", node: "b", status: { node: "b", used: 1 } };
    assert.deepEqual(await ofA({ pools, pods, blocks: [block] }), { vlan: "1", line: "0" });
    const empty = { ...block, status: { node: "b", used: 0 } };
    assert.deepEqual(await ofA({ pools, pods, blocks: [empty] }), { vlan: "0", line: "0" });
  });

  it("counts beside those that have theirs, which their status does not show", async () => {
    const block = { cidr: "10.3.0.9/32", pool: "vlan", status: { node: "a", used: 1 } };
    const served = { ...beside("vlan"), status: { podIPs: [{ ip: "10.244.1.9" }] } };
    const pods = { served, waits: beside("vlan") };
    assert.deepEqual(await ofA({ pools: [VLAN], pods, blocks: [block] }), { vlan: "2" });
    assert.deepEqual(await ofA({ pools: [VLAN], pods: { served }, blocks: [block] }), { vlan: "1" });
  });

  it("does not wait for longer where its first interface has its address from elsewhere", async () => {
    const pods = { waits: beside("vlan"), served: having("10.244.1.9") };
    const pools = [VLAN, LAN];
    assert.deepEqual(await ofA({ pools, pods, waitedMs: 4_999 }), { vlan: "0", lan: "0" });
    assert.deepEqual(await ofA({ pools, pods, waitedMs: 5_000 }), { vlan: "1", lan: "0" });
    assert.deepEqual(await ofA({ pools, pods, waitedMs: 30_000 }), { vlan: "1", lan: "1" });
  });

  it("counts for its further interfaces where a claim has the first, and for none that a claim has", async () => {
    const fixed = { "berth.dev/claim": "x", "berth.dev/addresses": "10.9.0.7" };
    const pools = [VLAN, web({ networks: ["shop/line"], blockSize: SINGLES }, "line", "10.5.0.0/24")];
    const pods = { waits: beside("vlan,line", fixed) };
    const late = { pools, pods, waitedMs: 5_000 };
    assert.deepEqual(
      await ofA(late),
      { vlan: "0", line: "0" },
      "which of them its claim is for nobody knows",
    );
    const claim = { name: "waits", addresses: ["10.9.0.7" as never] };
    assert.deepEqual(await ofA({ ...late, claims: [claim] }), { vlan: "1", line: "1" });
    assert.deepEqual(await ofA({ ...late, claims: [claim], waitedMs: 0 }), { vlan: "0", line: "0" });
    const ofVlan = { name: "waits", addresses: ["10.3.0.9" as never] };
    assert.deepEqual(await ofA({ ...late, claims: [ofVlan] }), { vlan: "0", line: "1" });
    const interfaces = { net1: [], net2: ["10.5.0.9" as never] };
    const ofLine = { name: "waits", addresses: ["10.5.0.9" as never], interfaces };
    assert.deepEqual(await ofA({ ...late, claims: [ofLine] }), { vlan: "1", line: "0" });
  });

  it("counts for the network that its annotation takes for its first interface", async () => {
    const key = "v1.multus-cni.io/default-network";
    const pods = { waits: { ...on("a"), metadata: { annotations: { [key]: "vlan" } } } };
    assert.deepEqual(await ofA({ pools: [VLAN, ANY], pods }), { vlan: "1", any: "0" });
  });
});
