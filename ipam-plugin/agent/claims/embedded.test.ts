// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { isRefusal } from "../../../allocator/base/errors.ts";
import { noopLogger } from "../../../allocator/base/ports.ts";
import { RecordCache } from "../../../allocator/cache/cache.ts";
import { reserve } from "../../../allocator/lifecycle/reserve.ts";
import type { Claim } from "../../../allocator/model/claim.ts";
import {
  addrs,
  claimRecord,
  DB_POOL,
  granted,
  poolRecord,
  reservationsOf,
} from "../../../test/support/fixtures.ts";
import { overlay } from "../../../test/support/overlay.ts";
import { openWorld } from "../../../test/support/world.ts";
import {
  assignedClaim,
  attach,
  claimAt,
  claimsOf,
  keepPod,
  optionsOf,
  pin,
} from "../testing/claims-bench.ts";
import { ask } from "../testing/node-world.ts";
import type { AttachRequest } from "./claim-source.ts";
import { EmbeddedClaims } from "./embedded.ts";

async function refused(claims: EmbeddedClaims, request: AttachRequest): Promise<string> {
  const got = await attach(claims, request);
  assert.equal(got.kind, "refused", JSON.stringify(got));
  return isRefusal(got) ? `${got.code}: ${got.message}` : "";
}

describe("Claims", () => {
  it("binds the claim of the pod's name, with what its pool says about reaching it", async () => {
    await using world = await openWorld({
      pools: [
        {
          ...DB_POOL,
          spec: { ...DB_POOL.spec, routes: [{ dst: "0.0.0.0/0" }], dns: { nameservers: ["10.20.0.2"] } },
        },
      ],
    });
    await pin(world, "a", "10.20.0.70", "fd00:20::70");
    const got = await assignedClaim(claimsOf(world), ask("a"));
    assert.deepEqual(got, {
      kind: "claimed",
      claim: "shop/a",
      addresses: [
        { address: "10.20.0.70", prefixLength: 24, gateway: "10.20.0.100" },
        { address: "fd00:20::70", prefixLength: 64 },
      ],
      routes: [{ dst: "0.0.0.0/0" }],
      dns: { nameservers: ["10.20.0.2"] },
    });
    const claim = await world.realStore.get("claim", "shop/a");
    assert.equal(claim?.record.binding?.podUID, "uid-a");
    assert.equal(claim?.record.binding?.node, "here");
  });

  it("binds the claim that the pod was told of, though its hold has ended, unless others have it or it has other addresses", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    for (const [name, address] of [
      ["d-slot-0", "10.20.0.70"],
      ["d-slot-1", "10.20.0.71"],
    ] as const)
      await pin(world, name, address);
    const reported = async (name: string, claim: string, address: string) => {
      const assigned = { "berth.dev/claim": claim, "berth.dev/token": name, "berth.dev/addresses": address };
      await keepPod(world, name, { "berth.dev/ips": address, ...assigned });
    };
    await reported("d-a", "d-slot-0", "10.20.0.70");
    await reported("d-b", "d-slot-0", "10.20.0.70");
    await reported("d-c", "d-slot-1", "10.20.0.79");
    const claims = claimsOf(world);
    assert.equal((await assignedClaim(claims, ask("d-a"))).claim, "shop/d-slot-0");
    assert.equal((await claimAt(world, "shop/d-slot-0")).record.binding?.podUID, "uid-d-a");
    const before = world.dump();
    assert.match(await refused(claims, ask("d-b")), /^CLAIM_(MISSING|BUSY): /);
    assert.match(await refused(claims, ask("d-c")), /^CLAIM_CHANGED: /);
    assert.equal(world.dump(), before);
  });

  it("refuses a pod that asked for an address and has no claim, whoever told of its request", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const claims = claimsOf(world);
    const words =
      "CLAIM_MISSING: pod shop/b asks for a fixed address and has no claim: its claim was given back, or it did not pass the Berth webhook; delete it and create it again";
    assert.equal(await refused(claims, ask("b", { annotations: { "berth.dev/ips": "10.20.0.70" } })), words);
    assert.equal(
      await refused(claims, ask("b", { annotations: { "berth.dev/sticky": "true" }, pools: ["db"] })),
      words,
    );
    await keepPod(world, "b", { "cni.projectcalico.org/ipAddrs": '["10.20.0.70"]' });
    assert.equal(await refused(claims, ask("b", { pools: ["db"] })), words);
  });

  it("refuses a pod that asks for another address than the claim of its name has, which no review saw", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    await pin(world, "a", "10.20.0.70");
    await pin(world, "b", "10.20.0.71");
    const claims = claimsOf(world);
    const asking = (ips: string) => ask("a", { annotations: { "berth.dev/ips": ips } });
    const words =
      /^CLAIM_CHANGED: claim shop\/a, which is kept for pods of this name, holds 10\.20\.0\.70, and pod shop\/a, .* asks for 10\.20\.0\.99;/;
    assert.match(await refused(claims, asking("10.20.0.99")), words);
    await keepPod(world, "b", { "berth.dev/ips": "10.20.0.98" });
    assert.match(await refused(claims, ask("b")), /^CLAIM_CHANGED: .* asks for 10\.20\.0\.98;/);
    const got = await assignedClaim(claims, asking("10.20.0.70"));
    assert.deepEqual([got.claim, got.addresses.length], ["shop/a", 1]);
    assert.equal((await assignedClaim(claims, asking("10.20.0.99"))).claim, "shop/a", "it has it already");
  });

  it("says to the same of a container, whom nobody reviews, what helps there", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    await pin(world, "a", "10.20.0.70");
    const view = new RecordCache(noopLogger, { ofContainers: true });
    for await (const stored of world.realStore.list("pool")) view.apply("pool", { type: "put", stored });
    const options = optionsOf(world);
    const claims = new EmbeddedClaims({ ...options, context: { ...options.context, view } });
    assert.equal(
      await refused(claims, ask("a", { annotations: { "berth.dev/ips": "10.20.0.99" } })),
      "CLAIM_CHANGED: claim shop/a, which is kept for containers of this name, holds 10.20.0.70, and this one asks for 10.20.0.99; ask for what the claim holds, or give the claim back: berthctl release shop/a",
    );
  });

  it("gives a pod of a list, of which nobody has kept the pod, the claim of its ordinal", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const list = { "berth.dev/ips": "10.20.0.70;10.20.0.71" };
    const identity = { kind: "StatefulSet", apiVersion: "apps/v1", name: "mysql", ordinal: 1 };
    const claim = claimRecord({ name: "mysql-1", identity, addresses: addrs("10.20.0.71"), request: {} });
    for (const one of reservationsOf(claim)) await world.realStore.create("reservation", one);
    await world.realStore.create("claim", claim);
    await world.settle();
    assert.equal(
      (await assignedClaim(claimsOf(world), ask("mysql-1", { annotations: list }))).claim,
      "shop/mysql-1",
    );
  });

  it("refuses no pod of kube-system, as admission does not", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const pod = { namespace: "kube-system", name: "dns", uid: "u" };
    const annotations = { "berth.dev/ips": "10.20.0.70" };
    assert.deepEqual(await attach(claimsOf(world), ask("dns", { pod, annotations })), {
      kind: "unclaimed",
    });
  });

  it("leaves a pod that asked for nothing to the configuration, or takes any address of its pools and gives it back", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const suspects: Claim[] = [];
    const claims = claimsOf(world, suspects);
    assert.deepEqual(await attach(claims, ask("c")), { kind: "unclaimed" });
    const got = await assignedClaim(claims, ask("c", { pools: ["db"] }));
    assert.equal(got.claim, "shop/c");
    assert.equal(got.addresses.length, 2);
    await claims.detached({ claim: "shop/c", pod: ask("c").pod, attachment: ask("c").attachment });
    assert.deepEqual(
      suspects.map(({ name }) => name),
      ["c"],
    );
    await world.collector().judgeClaim(await claimAt(world, "shop/c"));
    assert.equal(await world.realStore.get("claim", "shop/c"), undefined);
  });

  it("is the sandbox's that remains when the next one of its pod was given up", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    await pin(world, "a", "10.20.0.70");
    const suspects: Claim[] = [];
    const claims = claimsOf(world, suspects);
    const seenAt = { netns: "/run/netns/a", bootID: "boot-1" };
    const sandboxOf = (containerID: string) =>
      ask("a", { attachment: { network: "net", containerID, interface: "eth0" } });
    const [first, second] = [sandboxOf("box-a"), sandboxOf("box-a2")];
    await assignedClaim(claims, first);
    await assignedClaim(claims, second);
    const remaining = { claim: "shop/a", pod: first.pod, attachment: first.attachment, seenAt };
    await claims.detached({ claim: "shop/a", pod: second.pod, attachment: second.attachment, remaining });
    const { attachment } = (await claimAt(world, "shop/a")).record.status;
    assert.deepEqual(
      [attachment?.containerID, attachment?.detached, attachment?.netns],
      ["box-a", false, "/run/netns/a"],
    );
    await claims.detached({ claim: "shop/a", pod: first.pod, attachment: first.attachment });
    const last = (await claimAt(world, "shop/a")).record.status.attachment;
    assert.deepEqual([last?.containerID, last?.detached], ["box-a", true]);
  });

  it("gives it to the first interface that asks, and to the same one again", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    await pin(world, "a", "10.20.0.70");
    const claims = claimsOf(world);
    await assignedClaim(claims, ask("a"));
    const second = ask("a", { attachment: { network: "net2", containerID: "box-a", interface: "net1" } });
    assert.deepEqual(await attach(claims, second), { kind: "unclaimed" });
    await assignedClaim(
      claims,
      ask("a", { attachment: { network: "net", containerID: "box-a2", interface: "eth0" } }),
    );
  });

  it("takes a static pod, whose object has another UID, for the pod that it is", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    await keepPod(world, "a", { "kubernetes.io/config.mirror": "0123" });
    const pod = { namespace: "shop", name: "a", uid: "0123" };
    assert.equal((await attach(claimsOf(world), ask("a", { pod, pools: ["db"] }))).kind, "claimed");
  });

  it("finds a pod without a name of its own by its token, and only by that", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const addresses = addrs("10.20.0.70");
    await reserve(
      world.context,
      {
        key: { namespace: "shop", name: "web-slot-0" },
        identity: { kind: "Deployment", apiVersion: "apps/v1", name: "web", slot: 0 },
        request: { addresses },
        retention: { whenDeleted: "Release", whenScaled: "Retain", ttlMs: null },
        constraints: { namespace: "shop", name: "web-slot-0", namespaceLabels: {}, podLabels: {}, addresses },
        hold: { token: "secret", podName: "", podUID: "", node: "", since: world.clock.now() },
      },
      "pod",
    );
    const claims = claimsOf(world);
    const guess = { "berth.dev/claim": "web-slot-0", "berth.dev/token": "guess" };
    assert.match(await refused(claims, ask("web-1", { annotations: guess })), /^CLAIM_MISSING/);
    assert.deepEqual(await attach(claims, ask("web-slot-0")), { kind: "unclaimed" });
    const right = { "berth.dev/claim": "web-slot-0", "berth.dev/token": "secret" };
    assert.equal(
      (await assignedClaim(claims, ask("web-1", { annotations: right }))).claim,
      "shop/web-slot-0",
    );
    assert.match(await refused(claims, ask("web-2", { annotations: guess })), /^CLAIM_MISSING/);
  });

  it("holds nothing for a pod that asked for nothing and is called like an ordinal that has a claim", async () => {
    const other = poolRecord("other", "10.30.0.0/24");
    await using world = await openWorld({ pools: [DB_POOL, other] });
    const key = { namespace: "shop", name: "mysql-0" };
    const identity = { kind: "StatefulSet", apiVersion: "apps/v1", name: "mysql", ordinal: 0 };
    const retention = { whenDeleted: "Retain", whenScaled: "Retain", ttlMs: null } as const;
    const constraints = { ...key, namespaceLabels: {}, podLabels: {}, addresses: addrs("10.20.0.70") };
    granted(
      await reserve(
        world.context,
        { key, identity, request: {}, retention, constraints: constraints },
        "nothing",
      ),
    );
    await keepPod(world, "mysql-0", {});
    assert.equal(
      await refused(claimsOf(world), ask("mysql-0", { pools: ["other"] })),
      "CLAIM_BUSY: claim shop/mysql-0 is kept for StatefulSet mysql, ordinal 0, and this pod did not ask for it: it gets no address of other under this name before the claim is released; wait, or give this pod another name",
    );
    const held = [];
    for await (const { record } of world.realStore.list("reservation")) held.push(record.address);
    assert.deepEqual(held, addrs("10.20.0.70"));
  });

  it("refuses addresses that the runtime asks for and the claim does not have", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    await pin(world, "a", "10.20.0.70");
    const words = await refused(claimsOf(world), ask("a", { addresses: addrs("10.20.0.71") }));
    assert.equal(
      words,
      "CLAIM_CHANGED: the runtime asks for 10.20.0.71, and claim shop/a holds 10.20.0.70; remove one of the two requests",
    );
    const { record } = await claimAt(world, "shop/a");
    assert.equal(record.status.attachment, undefined, "nothing is attached");
    await assignedClaim(claimsOf(world), ask("a", { addresses: addrs("10.20.0.70") }));
  });

  it("binds a claim and says which sandbox has it in one write", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    await pin(world, "a", "10.20.0.70");
    const { realStore, context } = world;
    let writes = 0;
    const store = overlay(realStore, {
      replace: async () => assert.fail("replace"),
      report: async () => assert.fail("report"),
      replaceClaim: async (seen, next) => {
        writes++;
        return (await realStore.replaceClaim?.(seen, next)) ?? assert.fail("the store cannot");
      },
    });
    const claims = new EmbeddedClaims({ ...optionsOf(world), context: { ...context, store } });
    await assignedClaim(claims, ask("a"));
    assert.equal(writes, 1);
    const { binding, status } = (await claimAt(world, "shop/a")).record;
    assert.equal(binding?.podUID, "uid-a");
    assert.deepEqual(
      [status.attachment?.containerID, status.attachment?.podUID, status.attachment?.detached],
      [ask("a").attachment.containerID, "uid-a", false],
    );
  });
});
