// SPDX-License-Identifier: Apache-2.0
// Addresses that others have, and not from Berth: what is chosen, and what is refused.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  addr,
  addrs,
  askFor,
  claimRecord,
  poolRecord,
  refusalOf,
  reservationsOf,
  viewOf,
} from "../../test/support/fixtures.ts";
import { isRefusal } from "../base/errors.ts";
import type { RecordCache } from "../cache/cache.ts";
import type { Occupant } from "../model/occupant.ts";
import type { PoolSpec } from "../pool/pool.ts";
import { planAddresses } from "./address-plan.ts";
import type { AddressConstraints } from "./plan.ts";

const POD: Occupant = { kind: "pod", namespace: "other", name: "web-7" };
const NODE: Occupant = { kind: "node", namespace: "", name: "node-a" };

function viewWith(spec: Partial<PoolSpec>, ...occupied: readonly (readonly [string, Occupant])[]) {
  const view = viewOf({ pools: [poolRecord("web", "10.0.0.0/29", spec)] });
  for (const [address, occupant] of occupied) view.occupy(addr(address), occupant);
  return view;
}

/** Every address that would be tried, or the refusal. */
function planned(view: RecordCache, ask: Partial<AddressConstraints> = {}): string {
  const plan = planAddresses(view, askFor(ask));
  if (isRefusal(plan)) return refusalOf(plan);
  const all = plan.familyPlans.flatMap(({ candidates }) => [...candidates].map(({ address }) => address));
  return all.sort().join(" ");
}

describe("an address that others have", () => {
  const two = [
    ["10.0.0.2", POD],
    ["10.0.0.3", NODE],
  ] as const;

  it("is not chosen, until they are gone", () => {
    const view = viewWith({}, ...two);
    assert.equal(planned(view), "10.0.0.1 10.0.0.4 10.0.0.5 10.0.0.6");
    view.vacate(addr("10.0.0.2"));
    assert.equal(planned(view), "10.0.0.1 10.0.0.2 10.0.0.4 10.0.0.5 10.0.0.6");
    view.occupy(addr("10.0.0.1"), POD);
    assert.equal(planned(view), "10.0.0.2 10.0.0.4 10.0.0.5 10.0.0.6", "while the pool is known");
  });

  it("is not chosen after a claim has let go of it, and is by who has it gone", () => {
    const view = viewWith({}, ...two);
    const claim = claimRecord({ name: "other", addresses: addrs("10.0.0.2") });
    const [reservation] = reservationsOf(claim, "web");
    assert.ok(reservation);
    const stored = { key: "10.0.0.2", uid: "u", revision: "1", createdAt: 0, record: reservation };
    assert.equal(planned(view).includes("10.0.0.2"), false);
    view.apply("reservation", { type: "put", stored });
    view.vacate(addr("10.0.0.2"));
    assert.equal(planned(view).includes("10.0.0.2"), false, "it is reserved");
    view.occupy(addr("10.0.0.2"), POD);
    view.apply("reservation", { type: "gone", key: "10.0.0.2" });
    assert.equal(planned(view).includes("10.0.0.2"), false, "it is in use");
    view.vacate(addr("10.0.0.2"));
    assert.equal(planned(view).includes("10.0.0.2"), true);
  });

  it("is refused by name, with who has it and what to do", () => {
    const view = viewWith({}, ...two);
    assert.equal(
      planned(view, { addresses: addrs("10.0.0.2") }),
      'ADDRESS_TAKEN: address 10.0.0.2 in pool "web" is in use by pod other/web-7, and not from Berth; free nearby: 10.0.0.1, 10.0.0.4, 10.0.0.5; or delete that pod first, or set spec.networks if the pool is for another network than that pod\'s',
    );
    assert.equal(
      planned(view, { addresses: addrs("10.0.0.3") }),
      'ADDRESS_TAKEN: address 10.0.0.3 in pool "web" is in use by node node-a, and not from Berth; free nearby: 10.0.0.4, 10.0.0.1, 10.0.0.5; or exclude it from the pool',
    );
    assert.equal(
      planned(view, { addresses: addrs("10.0.0.2"), fallback: "any" }),
      "10.0.0.1 10.0.0.4 10.0.0.5 10.0.0.6",
    );
  });

  it("is given by name to who holds it, and to the pod of the same name when it is made anew", () => {
    const view = viewWith({}, ["10.0.0.2", { kind: "pod", namespace: "shop", name: "mysql-0" }]);
    const own = { namespace: "shop", name: "mysql-0", addresses: addrs("10.0.0.2") };
    assert.equal(planned(view, own), "10.0.0.2");
    assert.match(planned(view, { ...own, name: "mysql-1" }), /^ADDRESS_TAKEN: /);
    const held = planAddresses(view, askFor({ ...own, name: "mysql-1", ownAddresses: addrs("10.0.0.2") }));
    assert.deepEqual(isRefusal(held) ? held.message : held.keep, ["10.0.0.2"]);
  });

  it("counts for nothing in a pool for other networks, but for the nodes' own, which are passed over", () => {
    const view = viewWith({ networks: ["vlan7"] }, ...two);
    assert.equal(planned(view, { pools: ["web"] }), "10.0.0.1 10.0.0.2 10.0.0.4 10.0.0.5 10.0.0.6");
    for (const address of ["10.0.0.2", "10.0.0.3"]) {
      assert.equal(planned(view, { addresses: addrs(address) }), address);
    }
  });

  it("is counted where none is left", () => {
    const all = [1, 2, 3, 4, 5, 6].map((n) => [`10.0.0.${n}`, POD] as const);
    const plan = planAddresses(viewWith({}, ...all), askFor({}));
    assert.ok(!isRefusal(plan));
    assert.equal(
      plan.familyPlans[0]?.exhausted().message,
      'no free IPv4 address in pool "web": 0 are held or cooling, 6 are in use by what is not Berth\'s; add a range, or release claims that are not needed',
    );
  });
});
