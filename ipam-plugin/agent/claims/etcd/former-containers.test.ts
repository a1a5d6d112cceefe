// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  addr,
  addrs,
  claimRecord,
  DB_POOL,
  poolRecord,
  reservationsOf,
} from "../../../../test/support/fixtures.ts";
import { openWorld, type World } from "../../../../test/support/world.ts";
import { assignedClaim, optionsOf } from "../../testing/claims-bench.ts";
import type { AttachRequest } from "../claim-source.ts";
import { EmbeddedClaims } from "../embedded.ts";
import { containerName, isContainerName } from "./container-name.ts";
import {
  FormerClaims,
  formerClaimName,
  freeFormer,
  isLeftOfImport,
  releaseFormer,
} from "./former-containers.ts";

const X = { network: "lan", containerID: "f00d".repeat(16), interface: "eth0" };
const LAN = poolRecord("lan", ["10.0.0.0/29", "fd00::/125"], { cooldown: "0s" });

/** As `berthctl import` leaves it. */
async function keep(
  world: World,
  address: string,
  over: { readonly pool?: string; readonly id?: string } = {},
) {
  const { pool = "lan", id = X.containerID } = over;
  const name = formerClaimName({ network: "lan", containerID: id }, addr(address));
  const claim = claimRecord({
    namespace: "default",
    name,
    addresses: addrs(address),
    nonce: name,
    handMade: true,
  });
  await world.realStore.create("claim", claim);
  for (const reservation of reservationsOf(claim, pool))
    await world.realStore.create("reservation", reservation);
  await world.settle();
  return name;
}

/** The host boots so much later than the world begins. */
function formerIn(world: World, bootsAfterMs = 3_600_000): FormerClaims {
  return new FormerClaims(world.cache, world.clock.now() + bootsAfterMs);
}

function claimsOn(world: World, former = formerIn(world)): EmbeddedClaims {
  return new EmbeddedClaims({
    ...optionsOf(world),
    bindsAtOnce: true,
    isNew: ({ name }) => isContainerName(name),
    former: (request) => freeFormer(world.context, former, request),
  });
}

function add(over: Partial<AttachRequest> = {}): AttachRequest {
  const pod = containerName(over.attachment ?? X);
  return { pod, attachment: X, pools: ["lan"], addresses: [], annotations: undefined, ...over };
}

async function given(
  world: World,
  request: AttachRequest,
  former?: FormerClaims,
): Promise<readonly string[]> {
  const { addresses } = await assignedClaim(claimsOn(world, former), request);
  return addresses.map(({ address }) => address).toSorted();
}

async function names(world: World): Promise<readonly string[]> {
  await world.settle();
  return [...world.cache.claims()].map(({ record }) => record.name).toSorted();
}

describe("a container that begins again with the id that cni-ipam-etcd knew", () => {
  it("has what it had, of each family, and no claim beside its own", async () => {
    await using world = await openWorld({ pools: [LAN] });
    for (const address of ["10.0.0.5", "fd00::5"]) await keep(world, address);
    assert.deepEqual(await given(world, add()), ["10.0.0.5", "fd00::5"]);
    assert.deepEqual(await names(world), [containerName(X).name]);
  });

  it("has it although it cools after its release, and the pool and its namespace are full", async () => {
    const pool = poolRecord("lan", "10.0.0.0/30", { cooldown: "1h", limits: { perNamespace: 2 } });
    await using world = await openWorld({ pools: [pool] });
    for (const [id, address] of [
      ["other", "10.0.0.1"],
      [X.containerID, "10.0.0.2"],
    ] as const)
      await keep(world, address, { id });
    assert.deepEqual(await given(world, add()), ["10.0.0.2"]);
  });

  it("has it when it is asked for again after an ADD that broke off between the two claims", async () => {
    const pool = poolRecord("lan", "10.0.0.0/29", { cooldown: "1h" });
    await using world = await openWorld({ pools: [pool] });
    await keep(world, "10.0.0.5");
    const former = formerIn(world);
    assert.deepEqual((await freeFormer(world.context, former, add()))?.addresses, ["10.0.0.5"]);
    assert.deepEqual(await names(world), []);
    assert.deepEqual((await freeFormer(world.context, former, add()))?.addresses, ["10.0.0.5"]);
    const eth1 = { ...X, interface: "eth1" };
    assert.equal(await freeFormer(world.context, former, add({ attachment: eth1 })), undefined);
    assert.deepEqual(await given(world, add(), former), ["10.0.0.5"]);
    await releaseFormer(world.context, former, { container: X, isKnown: false });
    assert.equal(await freeFormer(world.context, former, add()), undefined, "it has ended");
  });

  it("has any other where the pool or the runtime says so, and keeps the claim until its end is told", async () => {
    await using world = await openWorld({ pools: [LAN, DB_POOL] });
    const left = [await keep(world, "10.0.0.5"), await keep(world, "10.20.0.70", { pool: "db" })];
    const asked = add({ addresses: addrs("10.0.0.2") });
    assert.deepEqual(await given(world, asked), ["10.0.0.2"]);
    assert.deepEqual(await names(world), [...left, containerName(X).name].toSorted());
    await releaseFormer(world.context, formerIn(world), { container: X, isKnown: false });
    assert.deepEqual(await names(world), [containerName(X).name]);
  });

  it("has another one for an interface that joins while the container may be up, and keeps the one that it has", async () => {
    await using world = await openWorld({ pools: [LAN] });
    const left = await keep(world, "10.0.0.5");
    const former = formerIn(world, 599_000);
    const eth1 = { ...X, interface: "eth1" };
    const other = await given(world, add({ attachment: eth1, families: ["IPv4"] }), former);
    assert.notDeepEqual(other, ["10.0.0.5"]);
    await releaseFormer(world.context, former, { container: eth1, isKnown: true });
    assert.ok((await names(world)).includes(left));
    await releaseFormer(world.context, former, { container: X, isKnown: false });
    assert.ok(!(await names(world)).includes(left));
  });

  it("has nothing that another container had", async () => {
    await using world = await openWorld({ pools: [poolRecord("lan", "10.0.0.0/30", { cooldown: "0s" })] });
    const other = await keep(world, "10.0.0.1", { id: "other" });
    assert.deepEqual(await given(world, add()), ["10.0.0.2"]);
    assert.ok((await names(world)).includes(other));
  });
});

describe("claims of an import", () => {
  it("are known by their container as they come and go", async () => {
    await using world = await openWorld({ pools: [LAN] });
    const name = await keep(world, "10.0.0.5");
    const former = formerIn(world);
    assert.deepEqual(former.of(X), [`default/${name}`]);
    await keep(world, "fd00::5");
    assert.equal(former.of(X).length, 2);
    assert.deepEqual(former.of({ ...X, network: "yard" }), []);
    await releaseFormer(world.context, former, { container: X, isKnown: false });
    await world.settle();
    assert.deepEqual(former.of(X), []);
  });

  it("are told from claims of people and of containers", () => {
    const name = formerClaimName(X, addr("fd00::5"));
    const claim = claimRecord({ namespace: "default", name, handMade: true });
    assert.equal(isLeftOfImport(claim, addr("fd00::5")), true);
    assert.equal(isLeftOfImport(claim, addr("fd00::6")), false);
    assert.equal(isLeftOfImport({ ...claim, name: "printer-fd00--5" }, addr("fd00::5")), false);
    assert.equal(isLeftOfImport({ ...claim, handMade: false }, addr("fd00::5")), false);
  });
});
