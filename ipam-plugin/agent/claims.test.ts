// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { bind, isAtRest } from "../../allocator/bind.ts";
import type { Claim } from "../../allocator/claim.ts";
import { isRefusal, type Refusal } from "../../allocator/errors.ts";
import { readObject } from "../../allocator/kube-object.ts";
import { reserve } from "../../allocator/reserve.ts";
import type { Store, Stored } from "../../allocator/store/store.ts";
import { addrs, DB_POOL, refusalOf } from "../../test/support/fixtures.ts";
import { openWorld, type World } from "../../test/support/world.ts";
import { Claims, type ClaimsOptions } from "./claims.ts";
import type { AttachRequest, Moored, Unmoored } from "./mooring.ts";

const LIVE = new AbortController().signal;

function optionsOf({ context, shelf }: World, suspects: Claim[] = []): ClaimsOptions {
  return { context, inventory: shelf, node: "here", suspect: (claim) => void suspects.push(claim) };
}

function claimsOf(world: World, suspects: Claim[] = []): Claims {
  return new Claims(optionsOf(world, suspects));
}

/** The store, with another way to write the status of claims. */
function reportingWith({ authority }: World, report: Store["report"]): Store {
  return {
    create: (kind, record) => authority.create(kind, record),
    get: (kind, key) => authority.get(kind, key),
    replace: (kind, seen, next) => authority.replace(kind, seen, next),
    report,
    remove: (kind, seen) => authority.remove(kind, seen),
    list: (kind) => authority.list(kind),
    watch: (kind, signal) => authority.watch(kind, signal),
    close: () => authority.close(),
  };
}

/** The store, where somebody acts just before the reservation of a claim is looked at. */
function altering(world: World, before: () => Promise<void>): Store {
  return {
    ...reportingWith(world, (seen, status) => world.authority.report(seen, status)),
    get: async (kind, key) => {
      if (kind === "reservation") await before();
      return await world.authority.get(kind, key);
    },
  };
}

/** Somebody gives the claim another address just before it is reported. */
function changingBeforeReport(world: World, key: string, address: string): Store {
  const addresses = addrs(address);
  return reportingWith(world, async (seen, status) => {
    const { authority } = world;
    const now = await authority.get("claim", key);
    if (now !== undefined && now.record.addresses[0] !== addresses[0]) {
      await authority.replace("claim", now, { ...now.record, addresses });
    }
    return await authority.report(seen, status);
  });
}

function ask(name: string, over: Partial<AttachRequest> = {}): AttachRequest {
  return {
    pod: { namespace: "shop", name, uid: `uid-${name}` },
    attachment: { network: "net", containerID: `box-${name}`, interface: "eth0" },
    pools: [],
    addresses: [],
    annotations: undefined,
    ...over,
  };
}

/** A claim of that name for exactly this address, as admission would have made it. */
async function pin(world: World, name: string, ...addresses: readonly string[]): Promise<void> {
  const entry = addrs(...addresses);
  const got = await reserve(world.context, {
    key: { namespace: "shop", name },
    identity: { kind: "Pod", apiVersion: "v1", name },
    request: { addresses: entry },
    retention: { whenDeleted: "Release", whenScaled: "Retain", ttlMs: null },
    ask: { namespace: "shop", name, namespaceLabels: {}, podLabels: {}, entry },
  });
  assert.equal(got.kind, "reserved");
  await world.settle();
}

async function keepPod(world: World, name: string, annotations: Record<string, string>): Promise<void> {
  const metadata = { namespace: "shop", name, uid: `uid-${name}`, annotations };
  const pod = readObject({ apiVersion: "v1", kind: "Pod", metadata, spec: {} });
  if (isRefusal(pod)) throw new TypeError(pod.message);
  await world.shelf.keep(pod);
}

/** Found and, if there is a claim, attached. */
async function attach(claims: Claims, request: AttachRequest): Promise<Moored | Unmoored | Refusal> {
  const found = await claims.find(request, LIVE);
  return found.kind === "found" ? await claims.attach(found, request, LIVE) : found;
}

async function moored(claims: Claims, request: AttachRequest): Promise<Moored> {
  const got = await attach(claims, request);
  assert.equal(got.kind, "moored", JSON.stringify(got));
  return got as Moored;
}

async function refused(claims: Claims, request: AttachRequest): Promise<string> {
  const got = await attach(claims, request);
  assert.equal(got.kind, "refused", JSON.stringify(got));
  return isRefusal(got) ? `${got.code}: ${got.message}` : "";
}

describe("Claims", () => {
  it("lends the claim of the pod's name with what its pool says about reaching it", async () => {
    await using world = await openWorld({
      pools: [
        {
          ...DB_POOL,
          spec: { ...DB_POOL.spec, routes: [{ dst: "0.0.0.0/0" }], dns: { nameservers: ["10.20.0.2"] } },
        },
      ],
    });
    await pin(world, "a", "10.20.0.70", "fd00:20::70");
    const got = await moored(claimsOf(world), ask("a"));
    assert.deepEqual(got, {
      kind: "moored",
      claim: "shop/a",
      addresses: [
        { address: "10.20.0.70", prefixLength: 24, gateway: "10.20.0.100" },
        { address: "fd00:20::70", prefixLength: 64 },
      ],
      routes: [{ dst: "0.0.0.0/0" }],
      dns: { nameservers: ["10.20.0.2"] },
    });
    const claim = await world.authority.get("claim", "shop/a");
    assert.equal(claim?.record.binding?.podUID, "uid-a");
    assert.equal(claim?.record.binding?.node, "here");
  });

  it("refuses a pod that asked for an address and has no claim, whoever told of its request", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const claims = claimsOf(world);
    const words =
      "CLAIM_MISSING: pod shop/b asks for a fixed address and has no claim: it did not pass the Berth webhook; delete it and create it again";
    assert.equal(await refused(claims, ask("b", { annotations: { "berth.dev/ips": "10.20.0.70" } })), words);
    assert.equal(
      await refused(claims, ask("b", { annotations: { "berth.dev/sticky": "true" }, pools: ["db"] })),
      words,
    );
    await keepPod(world, "b", { "cni.projectcalico.org/ipAddrs": '["10.20.0.70"]' });
    assert.equal(await refused(claims, ask("b", { pools: ["db"] })), words);
  });

  it("refuses no pod of kube-system, as admission does not", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const pod = { namespace: "kube-system", name: "dns", uid: "u" };
    const annotations = { "berth.dev/ips": "10.20.0.70" };
    assert.deepEqual(await attach(claimsOf(world), ask("dns", { pod, annotations })), {
      kind: "unmoored",
    });
  });

  it("leaves a pod that asked for nothing to the configuration, or takes any address of its pools and gives it back", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const suspects: Claim[] = [];
    const claims = claimsOf(world, suspects);
    assert.deepEqual(await attach(claims, ask("c")), { kind: "unmoored" });
    const got = await moored(claims, ask("c", { pools: ["db"] }));
    assert.equal(got.claim, "shop/c");
    assert.equal(got.addresses.length, 2);
    await claims.detached({ claim: "shop/c", pod: ask("c").pod, attachment: ask("c").attachment });
    assert.deepEqual(
      suspects.map(({ name }) => name),
      ["c"],
    );
    await world.reaper().judgeClaim(await claimAt(world, "shop/c"));
    assert.equal(await world.authority.get("claim", "shop/c"), undefined);
  });

  it("lends to the first interface that asks, and to the same one again", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    await pin(world, "a", "10.20.0.70");
    const claims = claimsOf(world);
    await moored(claims, ask("a"));
    const second = ask("a", { attachment: { network: "net2", containerID: "box-a", interface: "net1" } });
    assert.deepEqual(await attach(claims, second), { kind: "unmoored" });
    await moored(
      claims,
      ask("a", { attachment: { network: "net", containerID: "box-a2", interface: "eth0" } }),
    );
  });

  it("lets the pod of a new UID on the same node have the claim, and ignores the late end of the old sandbox", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    await pin(world, "a", "10.20.0.70");
    const claims = claimsOf(world);
    await moored(claims, ask("a"));
    const pod = { namespace: "shop", name: "a", uid: "uid-second" };
    const attachment = { network: "net", containerID: "box-second", interface: "eth0" };
    await moored(claims, ask("a", { pod, attachment }));
    await claims.attached({ claim: "shop/a", pod, attachment });
    const before = await claimAt(world, "shop/a");
    await claims.attached({ claim: "shop/a", pod, attachment });
    await claims.detached({ claim: "shop/a", pod: ask("a").pod, attachment: ask("a").attachment });
    assert.deepEqual(await claimAt(world, "shop/a"), before);
    await claims.detached({ claim: "shop/a", pod, attachment });
    assert.equal((await claimAt(world, "shop/a")).record.status.attachment?.detached, true);
  });

  it("lets go of what counts as in use on this node when nothing here has it", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    for (const [i, name] of ["bound", "ended"].entries()) {
      await pin(world, name, `10.20.0.7${i}`);
      await moored(claimsOf(world), ask(name));
    }
    await pin(world, "elsewhere", "10.20.0.79");
    const bindee = { name: "elsewhere", uid: "u", node: "there", token: "" };
    await bind(world.context, "shop/elsewhere", bindee, async () => ({ fenced: false, promiseOver: false }));
    const suspects: Claim[] = [];
    const claims = claimsOf(world, suspects);
    const { pod, attachment } = ask("ended");
    await claims.detached({ claim: "shop/ended", pod, attachment });
    suspects.length = 0;
    await world.settle();
    assert.deepEqual(claims.inUse(), ["shop/bound"]);
    for (const name of ["bound", "bound", "ended", "elsewhere", "nobody"])
      await claims.absent(`shop/${name}`);
    assert.deepEqual(
      suspects.map(({ name }) => name),
      ["bound"],
    );
    assert.ok(isAtRest((await claimAt(world, "shop/bound")).record));
    assert.ok(!isAtRest((await claimAt(world, "shop/elsewhere")).record));
    await moored(claims, ask("bound"));
    assert.ok(!isAtRest((await claimAt(world, "shop/bound")).record));
  });

  it("refuses a sandbox whose pod was deleted and has a successor of its name", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    await pin(world, "a", "10.20.0.70");
    await keepPod(world, "a", { "berth.dev/claim": "a", "berth.dev/addresses": "10.20.0.70" });
    const claims = claimsOf(world);
    const gone =
      "CLAIM_BUSY: the pod shop/a that this sandbox is for is deleted, and another one has its name and its claim";
    const of = (uid: string, annotations?: Record<string, string>) =>
      ask("a", { pod: { namespace: "shop", name: "a", uid }, annotations });
    assert.equal(refusalOf(await attach(claims, of("uid-before"))), gone);
    assert.equal(refusalOf(await attach(claims, of("", {}))), gone);
    assert.deepEqual(
      (await moored(claims, of(""))).addresses.map(({ address }) => address),
      ["10.20.0.70"],
    );
  });

  it("takes a static pod, whose object has another UID, for the pod that it is", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    await keepPod(world, "a", { "kubernetes.io/config.mirror": "0123" });
    const pod = { namespace: "shop", name: "a", uid: "0123" };
    assert.equal((await attach(claimsOf(world), ask("a", { pod, pools: ["db"] }))).kind, "moored");
  });

  it("writes nothing more for an ADD that was given up", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    await pin(world, "a", "10.20.0.70");
    const abort = new AbortController();
    const store = reportingWith(world, async () => {
      abort.abort();
      return { kind: "conflict" };
    });
    const claims = new Claims({ ...optionsOf(world), context: { ...world.context, store } });
    const found = await claims.find(ask("a"), LIVE);
    assert.ok(found.kind === "found");
    await assert.rejects(claims.attach(found, ask("a"), abort.signal), /the ADD was given up/);
    const before = await claimAt(world, "shop/a");
    assert.equal(before.record.status.attachment, undefined);
    await assert.rejects(claims.attach(found, ask("a"), abort.signal), /the ADD was given up/);
    assert.deepEqual(await claimAt(world, "shop/a"), before);
  });

  it("says nothing of a claim that went on to another node while it looked", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    await pin(world, "a", "10.20.0.70");
    const silent = ask("a", { pod: { namespace: "shop", name: "a", uid: "" } });
    const here = claimsOf(world);
    await moored(here, silent);
    const { pod, attachment } = silent;
    let late = true;
    const store = altering(world, async () => {
      if (!late) return;
      late = false;
      await here.detached({ claim: "shop/a", pod, attachment });
      const there = new Claims({ ...optionsOf(world), node: "there" });
      await moored(there, ask("a", { attachment: { network: "net", containerID: "b", interface: "eth0" } }));
    });
    const again = new Claims({ ...optionsOf(world), context: { ...world.context, store } });
    const next = { ...silent, attachment: { ...attachment, containerID: "next" } };
    assert.equal(
      refusalOf(await attach(again, next)),
      "CLAIM_BUSY: claim shop/a was changed or given back while it was being attached; try again",
    );
    const lent = await claimAt(world, "shop/a");
    assert.deepEqual([lent.record.binding?.node, lent.record.status.attachment?.containerID], ["there", "b"]);
    await here.detached({ claim: "shop/a", pod, attachment: { ...attachment, containerID: "b" } });
    assert.deepEqual(await claimAt(world, "shop/a"), lent);
  });

  it("does not lend what was changed while it was being attached", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    await pin(world, "a", "10.20.0.70");
    const claims = claimsOf(world);
    await moored(claims, ask("a"));
    const changes = changingBeforeReport(world, "shop/a", "10.20.0.71");
    const again = new Claims({ ...optionsOf(world), context: { ...world.context, store: changes } });
    const next = ask("a", { attachment: { network: "net", containerID: "next", interface: "eth0" } });
    assert.equal(
      refusalOf(await attach(again, next)),
      "CLAIM_BUSY: claim shop/a was changed or given back while it was being attached; try again",
    );
  });

  it("finds a pod without a name of its own by its token, and only by that", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const entry = addrs("10.20.0.70");
    await reserve(world.context, {
      key: { namespace: "shop", name: "web-slot-0" },
      identity: { kind: "Deployment", apiVersion: "apps/v1", name: "web", slot: 0 },
      request: { addresses: entry },
      retention: { whenDeleted: "Release", whenScaled: "Retain", ttlMs: null },
      ask: { namespace: "shop", name: "web-slot-0", namespaceLabels: {}, podLabels: {}, entry },
      promise: { token: "secret", podName: "", podUID: "", node: "", since: world.clock.now() },
    });
    const claims = claimsOf(world);
    const guess = { "berth.dev/claim": "web-slot-0", "berth.dev/token": "guess" };
    assert.match(await refused(claims, ask("web-1", { annotations: guess })), /^CLAIM_MISSING/);
    assert.deepEqual(await attach(claims, ask("web-slot-0")), { kind: "unmoored" });
    const right = { "berth.dev/claim": "web-slot-0", "berth.dev/token": "secret" };
    assert.equal((await moored(claims, ask("web-1", { annotations: right }))).claim, "shop/web-slot-0");
    assert.match(await refused(claims, ask("web-2", { annotations: guess })), /^CLAIM_MISSING/);
  });

  it("refuses addresses that the runtime asks for and the claim does not have", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    await pin(world, "a", "10.20.0.70");
    const words = await refused(claimsOf(world), ask("a", { addresses: addrs("10.20.0.71") }));
    assert.equal(
      words,
      "CLAIM_CHANGED: the runtime asks for 10.20.0.71, and claim shop/a holds 10.20.0.70; remove one of the two requests",
    );
    await moored(claimsOf(world), ask("a", { addresses: addrs("10.20.0.70") }));
  });
});

async function claimAt(world: World, key: string): Promise<Stored<"claim">> {
  const stored = await world.authority.get("claim", key);
  if (stored === undefined) throw new Error(`no claim ${key}`);
  return stored;
}
