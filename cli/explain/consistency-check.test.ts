// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { readObject } from "../../allocator/manifest/kubernetes-object.ts";
import type { Claim } from "../../allocator/model/claim.ts";
import type { Reservation } from "../../allocator/model/reservation.ts";
import {
  addrs,
  bindingTo,
  claimRecord,
  DB_POOL,
  granted,
  poolRecord,
  reservationsOf,
} from "../../test/support/fixtures.ts";
import { workload } from "../../test/support/objects.ts";
import type { Backend } from "../backend/backend.ts";
import { allOf, withEmbeddedBackend } from "../backend/embedded-backend.ts";
import { withBackend } from "../backend/open-backend.ts";
import { Folder } from "../testing/folder.ts";
import { checkBackend } from "./consistency-check.ts";

const lost = claimRecord();

/** A folder with a claim whose reservation is missing, audited while `meanwhile` happens at each wait. */
async function auditOf(
  data: Folder,
  meanwhile: (registry: Backend, wait: number) => Promise<void>,
): Promise<{ findings: string[]; waits: number }> {
  let waits = 0;
  return await withBackend(data.context(), "write", async (backend) => {
    const clock = {
      now: () => data.clock.now(),
      monotonic: () => data.clock.monotonic(),
      sleep: () => meanwhile(backend, ++waits),
    };
    const { findings } = await checkBackend(backend, clock);
    return { findings: findings.map(({ severity, kind }) => `${severity} ${kind}`), waits };
  });
}

async function touch({ store }: Backend, change: Partial<Claim>): Promise<void> {
  const [claim] = await allOf(store, "claim");
  assert.ok(claim);
  await store.replace("claim", claim, { ...claim.record, ...change });
}

describe("auditRegistry", () => {
  it("calls a defect what stays for three looks and nobody touches", async (t) => {
    const data = await Folder.of(t, { pools: [DB_POOL], claims: [lost] });
    assert.deepEqual(await auditOf(data, async () => {}), { findings: ["defect unreserved"], waits: 2 });
  });

  for (const when of [1, 2]) {
    it(`passes over what is repaired before look ${when + 1}`, async (t) => {
      const data = await Folder.of(t, { pools: [DB_POOL], claims: [lost] });
      const [reservation] = reservationsOf(lost) as [Reservation];
      const repair = async ({ store }: Backend, wait: number) => {
        if (wait === when) await store.create("reservation", reservation);
      };
      assert.deepEqual(await auditOf(data, repair), { findings: [], waits: when });
    });

    it(`calls pending what somebody wrote to before look ${when + 1}`, async (t) => {
      const data = await Folder.of(t, { pools: [DB_POOL], claims: [lost] });
      const write = async (backend: Backend, wait: number) => {
        if (wait === when) await touch(backend, { admittedAt: 1 });
      };
      assert.deepEqual(await auditOf(data, write), { findings: ["pending unreserved"], waits: 2 });
    });
  }

  it("compares blocks, with claims and pools, and counts them where there are any", async (t) => {
    const cut = poolRecord("web", "10.40.0.0/24", { blockSize: { ipv4: 28 } });
    const claim = claimRecord({
      name: "a",
      addresses: addrs("10.40.0.5"),
      binding: bindingTo("a", "node-a"),
    });
    const data = await Folder.of(t, {
      pools: [cut],
      claims: [claim],
      reservations: reservationsOf(claim, "web"),
    });
    const block = { pool: "web", node: "node-b", nodeUID: "u", holes: [], granted: true };
    await withBackend(data.context(), "write", async ({ store }) => {
      await store.create("block", { ...block, cidr: "10.40.0.0/28", holes: ["10.40.0.0/32"] });
      await store.create("block", { ...block, cidr: "10.40.0.32/29" });
    });
    const reported = ["defect in-block", "defect stray-block"];
    const found = await auditOf(data, async () => {});
    assert.deepEqual([found.findings.toSorted(), found.waits], [reported, 2]);
    const write = async ({ store }: Backend, wait: number) => {
      for (const seen of wait === 2 ? await allOf(store, "block") : [])
        await store.reportBlock(seen, { node: "node-b", used: 1 });
    };
    const busy = await auditOf(data, write);
    assert.deepEqual(busy.findings.toSorted(), ["pending in-block", "pending stray-block"]);
    const clock = { now: () => data.clock.now(), monotonic: () => 0, sleep: async () => {} };
    const counts = await withBackend(data.context(), "read", async (backend) => {
      return (await checkBackend(backend, clock)).counts;
    });
    assert.deepEqual(counts, { pools: 1, claims: 1, reservations: 1, blocks: 2, attachments: 0 });
  });

  it("finds pools over each other, once for both, and takes a reservation for its own pool's", async (t) => {
    const pools = ["a", "b", "c"].map((name) =>
      poolRecord(name, name === "c" ? "10.41.0.0/24" : "10.40.0.0/24"),
    );
    const claim = claimRecord({ addresses: addrs("10.40.0.5") });
    const data = await Folder.of(t, { pools, claims: [claim], reservations: reservationsOf(claim, "b") });
    const found = await withBackend(data.context(), "read", async (backend) => {
      return (await checkBackend(backend, data.clock)).findings;
    });
    assert.deepEqual(
      found.filter(({ severity }) => severity === "defect").map(({ kind, message }) => `${kind}: ${message}`),
      [
        "pool-overlap: pools b and a both contain 10.40.0.1-10.40.0.254; change from, to or cidr of one of them, or set spec.disabled: true on one and delete it once nothing of it is in use",
      ],
    );
  });

  it("tells, in a cluster, of pods whose addresses are in blocks of other nodes, and of none of their own's", async (t) => {
    const data = await Folder.of(t, {
      pools: [poolRecord("web", "10.40.0.0/24", { blockSize: { ipv4: 28 } })],
    });
    const pods = [
      ["on-b", "node-b", "10.40.0.17"],
      ["on-a", "node-a", "10.40.0.18"],
    ].map(([name, nodeName, ip]) =>
      readObject({
        kind: "Pod",
        metadata: { namespace: "shop", name, uid: name },
        ...{ spec: { nodeName }, status: { podIPs: [{ ip }] } },
      }),
    );
    const found = await withBackend(data.context(), "write", async (backend) => {
      const block = { pool: "web", node: "node-b", nodeUID: "u", holes: [], granted: true };
      await backend.store.create("block", { ...block, cidr: "10.40.0.16/28" });
      const installed = ["MutatingWebhookConfiguration/webhook", "DaemonSet/agent"].map((part) => {
        const [kind, component] = part.split("/");
        const labels = { "app.kubernetes.io/name": "berth", "app.kubernetes.io/component": component };
        return granted(readObject({ kind, metadata: { name: "berth", labels } }));
      });
      const world = {
        object: async () => undefined,
        objects: async (kind: string) => installed.filter((one) => one.kind === kind),
        async *each(kind: string) {
          if (kind === "Pod") yield* pods;
        },
      };
      const cluster = { ...backend, place: "cluster", world: world as unknown as Backend["world"] } as const;
      return (await checkBackend(cluster, data.clock)).findings.map(
        ({ severity, kind, message }) => `${severity} ${kind}: ${message}`,
      );
    });
    assert.deepEqual(found, [
      "pending outside-block: address 10.40.0.18 is used by pod shop/on-a on node node-a, and is in block 10.40.0.16/28 of node node-b",
    ]);
  });

  it("lists the nodes of a cluster once, whatever is found of them", async (t) => {
    const rack = poolRecord("rack", "10.50.0.0/24", { nodeSelector: { matchLabels: { rack: "9" } } });
    const bound = claimRecord({ addresses: addrs("10.50.0.7"), binding: bindingTo("mysql-0", "node-a") });
    const reservations = reservationsOf(bound).map((one) => ({ ...one, pool: "rack" }));
    const data = await Folder.of(t, { pools: [rack, DB_POOL], claims: [bound], reservations });
    const labels = { "app.kubernetes.io/name": "berth" };
    const component = (name: string) => ({ ...labels, "app.kubernetes.io/component": name });
    const objects = [
      { kind: "MutatingWebhookConfiguration", metadata: { name: "berth", labels: component("webhook") } },
      { kind: "DaemonSet", metadata: { name: "berth", labels: component("agent") } },
      workload("StatefulSet", "mysql", { replicas: 2, annotations: { "berth.dev/pools": "db" } }),
      ...["node-a", "node-b"].map((name) => ({
        kind: "Node",
        metadata: { name, annotations: { "berth.dev/fenced": name === "node-a" ? "true" : "false" } },
        spec: { podCIDRs: ["10.60.0.0/26"] },
        status: {
          addresses: [{ type: "InternalIP", address: "10.50.0.9" }],
          conditions: [{ type: "Ready", status: "True" }],
          images: [{ names: ["registry.example/app:1"] }],
        },
      })),
    ].map((one) => granted(readObject(one)));
    let lists = 0;
    const found = await withBackend(data.context(), "write", async (backend) => {
      const block = { pool: "rack", node: "node-a", nodeUID: "u", use: "PodCIDR", holes: [] } as const;
      await backend.store.create("block", { ...block, cidr: "10.60.0.0/26", granted: true });
      const all = (kind: string) => {
        if (kind === "Node") lists++;
        return objects.filter((one) => one.kind === kind);
      };
      const world = {
        object: async (kind: string, _: string, name: string) =>
          objects.find((one) => one.kind === kind && one.metadata.name === name),
        objects: async (kind: string) => all(kind),
        async *each(kind: string) {
          yield* all(kind);
        },
        ...{ pod: async () => undefined, workload: async () => "unknown", namespace: async () => undefined },
      };
      const cluster = { ...backend, place: "cluster", world: world as unknown as Backend["world"] } as const;
      const { findings } = await checkBackend(cluster, data.clock);
      return new Set(findings.map(({ kind }) => kind));
    });
    for (const kind of ["fenced-ready", "no-node", "in-use", "shared-cidr", "missing"] as const)
      assert.ok(found.has(kind), `${kind}: ${[...found].join()}`);
    assert.equal(lists, 1);
  });

  it("does not take up what goes wrong only later: that is for the next call", async (t) => {
    const data = await Folder.of(t, { pools: [DB_POOL], claims: [lost] });
    const other = claimRecord({ name: "mysql-1", nonce: "n2" });
    const findings = await auditOf(data, async ({ store }) => {
      await store.create("claim", other);
    });
    assert.deepEqual(findings, { findings: ["defect unreserved"], waits: 2 });
    const claims = await withEmbeddedBackend(data.context(), "read", ({ store }) => allOf(store, "claim"));
    assert.equal(claims.length, 2);
  });
});
