// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { entries, ordinalAllocation, podAllocation } from "../../test/support/allocation-requests.ts";
import {
  attachmentOf,
  bindingTo,
  granted,
  poolRecord,
  refusalOf,
  reservationRecord,
} from "../../test/support/fixtures.ts";
import type { SeededRandom } from "../../test/support/random.ts";
import { skipAllBut } from "../../test/support/runs.ts";
import { openWorld, type World } from "../../test/support/world.ts";
import { isRefusal } from "../base/errors.ts";
import type { AllocationRequest } from "../lifecycle/allocation-request.ts";
import { release } from "../lifecycle/release.ts";
import { reserve } from "../lifecycle/reserve.ts";
import type { Request } from "../model/address-request.ts";
import { describeDryRun, dryRun } from "./allocation-dry-run.ts";

/** Small enough that addresses are taken, exhausted and cooling most of the time. */
const POOLS = [
  {
    name: "four",
    spec: { ranges: [{ cidr: "10.1.0.0/29", gateway: "10.1.0.6" }], reserved: ["10.1.0.5"], cooldown: "20s" },
  },
  poolRecord("dual", ["10.2.0.0/29", "fd02::/125"], { limits: { perNamespace: 5 } }),
];
const LISTS = [
  "10.1.0.1",
  "10.1.0.2",
  "10.1.0.5",
  "10.1.0.6",
  "10.2.0.1",
  "10.2.0.2,fd02::2",
  "fd02::3",
  "10.9.0.1",
];
const REQUESTS: readonly Request[] = [
  ...LISTS.map(entries),
  { sticky: true },
  { pools: ["dual"] },
  { pools: ["dual", "four"], families: ["IPv4"] },
  { pools: ["10.2.0.0/29"] },
  { pools: ["four"], families: ["IPv6"] },
];

function anyAllocation(world: World, random: SeededRandom): AllocationRequest {
  const request = random.pick(REQUESTS);
  const name = `db${random.below(7)}-0`;
  return random.below(2) === 0
    ? ordinalAllocation(world, name, request)
    : podAllocation(world, name, request);
}

/** In words: the addresses, or the refusal. */
async function foreseen(world: World, allocation: AllocationRequest): Promise<string> {
  const before = world.dump();
  const would = await dryRun(world.context, allocation);
  assert.equal(world.dump(), before);
  return isRefusal(would)
    ? refusalOf(would)
    : would.addresses
        .map(({ address }) => address)
        .sort()
        .join(",");
}

async function done(world: World, allocation: AllocationRequest): Promise<string> {
  const got = await reserve(world.context, allocation, "pod");
  await world.settle();
  return isRefusal(got) ? refusalOf(got) : [...got.claim.record.addresses].sort().join(",");
}

/** One thing that changes what the next identity would get. */
async function disturb(world: World, random: SeededRandom): Promise<void> {
  if (random.below(4) === 0) world.clock.advance(random.below(15_000));
  if (random.below(6) === 0) await world.collector().pass();
  await world.settle();
  const claims = await world.all("claim");
  if (claims.length === 0 || random.below(2) === 0) return;
  const seen = random.pick(claims);
  if (random.below(2) === 0) {
    await release(world.context, seen);
  } else {
    const { name } = seen.record;
    const bound = await world.realStore.replace("claim", seen, {
      ...seen.record,
      binding: bindingTo(name, "node-a"),
    });
    assert.ok(bound.kind === "replaced");
    const attachment = attachmentOf(name, { detached: random.below(2) === 0 });
    await world.realStore.report(bound.stored, { attachment });
  }
  await world.settle();
}

describe("dryRun", () => {
  for (const seed of [1, 2, 3]) {
    it(`says what reserve then does, in the same words (seed ${seed})`, {
      skip: skipAllBut(1, 3, seed - 1),
    }, async () => {
      await using world = await openWorld({ pools: POOLS, seed });
      const seen = new Map<string, number>(); // outcome -> how often
      for (let n = 0; n < 300; n++) {
        await disturb(world, world.random);
        const allocation = anyAllocation(world, world.random);
        const said = await foreseen(world, allocation);
        assert.equal(await done(world, allocation), said, `step ${n}`);
        const outcome = said.split(":")[0] ?? "";
        const kind = /^[A-Z_]+$/.test(outcome) ? outcome : "granted";
        seen.set(kind, (seen.get(kind) ?? 0) + 1);
      }
      const usual = [
        "granted",
        "ADDRESS_TAKEN",
        "CLAIM_CHANGED",
        "ADDRESS_EXCLUDED",
        "ADDRESS_OUTSIDE",
        "FAMILY_UNAVAILABLE",
      ];
      for (const outcome of usual) assert.ok((seen.get(outcome) ?? 0) > 0, `${outcome} never happened`);
    });
  }

  it("knows a claim that the view does not show yet", async () => {
    await using world = await openWorld({ pools: POOLS });
    granted(await reserve(world.context, podAllocation(world, "db-0", { pools: ["four"] }), "pod"));
    // no settle: the cache has not heard of it
    const would = granted(await dryRun(world.context, podAllocation(world, "db-0", { pools: ["four"] })));
    assert.deepEqual(
      would.addresses.map(({ held }) => held),
      [true],
    );
    await world.settle();
  });

  it("takes addresses that others of the same review would get for taken", async () => {
    await using world = await openWorld({ pools: POOLS });
    const allocation = podAllocation(world, "db-0", { pools: ["four"] });
    const [first] = granted(await dryRun(world.context, allocation)).addresses;
    assert.ok(first);
    const [second] = granted(await dryRun(world.context, allocation, new Set([first.address]))).addresses;
    assert.ok(second && second.address !== first.address);
    const named = podAllocation(world, "db-1", entries(first.address));
    assert.match(
      refusalOf(await dryRun(world.context, named, new Set([first.address]))),
      new RegExp(`^ADDRESS_TAKEN: address ${first.address} in pool "four" is taken`),
    );
    const all = new Set(
      ["10.1.0.1", "10.1.0.2", "10.1.0.3", "10.1.0.4"].map((text) => reservationRecord(text).address),
    );
    assert.match(refusalOf(await dryRun(world.context, allocation, all)), /^POOL_EXHAUSTED: /);
  });
});

describe("describeDryRun", () => {
  it("says where each address is from, or that it is the identity's own", async () => {
    await using world = await openWorld({ pools: POOLS });
    const would = (request: Request) => dryRun(world.context, podAllocation(world, "db-0", request));
    const list = entries("10.2.0.2,fd02::2");
    assert.equal(
      describeDryRun("this pod", granted(await would(list))),
      "this pod would get 10.2.0.2 from pool dual and fd02::2 from pool dual",
    );
    granted(await reserve(world.context, podAllocation(world, "db-0", entries("10.2.0.2")), "pod"));
    await world.settle();
    assert.equal(
      describeDryRun("this pod", granted(await would(list))),
      "this pod would get 10.2.0.2 (its own) and fd02::2 from pool dual",
    );
  });
});
