// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  addrs,
  askFor,
  claimRecord,
  poolRecord,
  reservationsOf,
  viewOf,
} from "../../test/support/fixtures.ts";
import { isRefusal } from "../base/errors.ts";
import type { RecordReader } from "../cache/reader.ts";
import type { PoolSpec } from "../pool/pool.ts";
import { planAddresses } from "./address-plan.ts";
import type { AddressConstraints } from "./plan.ts";

/** Which pools a request leads to: "pool pool" of each family's candidates, kept addresses first. */
function served(view: RecordReader, ask: Partial<AddressConstraints> = {}): string {
  const plan = planAddresses(view, askFor(ask));
  if (isRefusal(plan)) return `${plan.code}: ${plan.message}`;
  const familyPlans = plan.familyPlans.map(({ candidates }) => {
    const pools = new Set<string>();
    for (const { pool } of candidates) pools.add(pool);
    return [...pools].join(" ");
  });
  return [...plan.keep, ...familyPlans].join(", ");
}

/** A pool of six addresses, 10.<n>.0.1 to 10.<n>.0.6. */
function six(name: string, n: number, spec: Partial<PoolSpec> = {}) {
  return poolRecord(name, `10.${n}.0.0/29`, spec);
}

const labelled = (key: string, value: string) => ({ matchLabels: { [key]: value } });

describe("pools that nobody named", () => {
  it("come by priority, then by name", () => {
    const view = viewOf({
      pools: [six("b", 1), six("c", 2, { priority: 5 }), six("a", 3), six("d", 4, { priority: -1 })],
    });
    assert.equal(served(view), "c a b d");
  });

  it("of one priority are those that say whom they are for, then the default, then the others", () => {
    const pools = [
      six("a", 1),
      six("b", 2, { default: true }),
      six("c", 3, { namespaceSelector: {} }),
      six("d", 4, { priority: 1 }),
    ];
    assert.equal(served(viewOf({ pools })), "d c b a");
  });

  it("that are for networks are for pods that are known to be on one of them, or that name them", () => {
    const view = viewOf({ pools: [six("a", 1, { networks: ["shop/vlan10", "net"] }), six("b", 2)] });
    const on = (...names: string[]) => ({ networks: { names, isAll: false } });
    assert.equal(served(view), "b");
    assert.equal(served(view, on("shop/vlan20")), "b");
    assert.equal(served(view, on("shop/vlan20", "shop/vlan10")), "a b");
    assert.equal(served(view, { ...on(), pools: ["a"] }), "a");
    const only = { networks: { names: ["x"], isAll: true }, pools: ["a"] };
    assert.match(served(view, only), /^POOL_FORBIDDEN: pool "a" is for networks shop\/vlan10, net, and x is/);
  });

  it("are those that select the namespace and the pod", () => {
    const pools = [
      six("a", 1, { namespaceSelector: labelled("team", "bank") }),
      six("b", 2, { podSelector: labelled("app", "web") }),
      six("c", 3, {
        namespaceSelector: labelled("kubernetes.io/metadata.name", "shop"),
        podSelector: labelled("app", "mysql"),
      }),
      six("d", 4, { namespaceSelector: {}, podSelector: {} }),
      six("e", 5, { authorization: "ServiceAccount" }),
      six("f", 6, { disabled: true }),
    ];
    const view = viewOf({ pools });
    assert.equal(served(view), "c d");
    assert.equal(served(view, { namespaceLabels: { team: "bank" } }), "a d");
    assert.equal(served(view, { podLabels: { app: "web" } }), "b d");
    assert.equal(served(view, { usable: new Set(["e"]) }), "c d e");
  });

  it("are refused in words when there is none", () => {
    assert.equal(served(viewOf({})), "POOL_UNKNOWN: there are no pools yet; create an IPPool first");
    const closed = { namespaceSelector: labelled("team", "bank") };
    assert.equal(
      served(viewOf({ pools: [six("a", 1, closed), six("b", 2, closed)] })),
      "POOL_FORBIDDEN: no pool is open to this pod in namespace shop; name one with berth.dev/pools or ask for a pool that selects the namespace",
    );
    assert.equal(
      served(viewOf({ pools: [six("a", 1, { disabled: true })] })),
      'POOL_DISABLED: pool "a" takes no new reservations; name another pool',
    );
  });

  it("give the families of the first of them", () => {
    const pools = [poolRecord("dual", ["10.1.0.0/29", "fd01::/126"], { priority: -1 }), six("four", 2)];
    assert.equal(served(viewOf({ pools })), "four dual");
    assert.equal(served(viewOf({ pools }), { families: ["IPv6"] }), "dual");
    assert.equal(
      served(viewOf({ pools: [six("four", 2)] }), { families: ["IPv4", "IPv6"] }),
      'FAMILY_UNAVAILABLE: no IPv6 range in pool "four"; ask for another family or add a pool that has it',
    );
  });
});

describe("named pools", () => {
  const view = viewOf({
    pools: [
      six("a", 1, { namespaceSelector: labelled("team", "bank") }),
      six("b", 2, { podSelector: labelled("app", "web") }),
      six("e", 5, { authorization: "ServiceAccount" }),
      six("f", 6, { disabled: true }),
    ],
  });
  const cases: readonly (readonly [Partial<AddressConstraints>, string])[] = [
    [{ pools: ["a"] }, 'POOL_FORBIDDEN: pool "a" is not open to namespace shop; open to it: "b", "e"'],
    [
      { pools: ["b"] },
      `POOL_FORBIDDEN: pool "b" takes only pods with other labels than this one's (its podSelector)`,
    ],
    [
      { pools: ["e"] },
      'POOL_FORBIDDEN: pool "e" is only for service accounts with the verb "use" on it; ask its administrator for a role',
    ],
    [{ pools: ["f"] }, 'POOL_DISABLED: pool "f" takes no new reservations; name another pool'],
    [
      { addresses: addrs("10.1.0.1") },
      'POOL_FORBIDDEN: pool "a" is not open to namespace shop; open to it: "b", "e"',
    ],
    [
      { addresses: addrs("10.6.0.1") },
      'POOL_DISABLED: pool "f" is disabled (spec.disabled: true); ask for an address of another pool',
    ],
    [{ pools: ["e"], usable: new Set(["e"]) }, "e"],
  ];
  for (const [ask, outcome] of cases) {
    it(JSON.stringify(ask), () => assert.equal(served(view, ask), outcome));
  }
});

describe("a disabled pool", () => {
  const view = viewOf({ pools: [poolRecord("f", ["10.6.0.0/29", "fd06::/126"], { disabled: true })] });

  it("lets addresses be kept", () => {
    assert.equal(served(view, { ownAddresses: addrs("10.6.0.1", "fd06::1") }), "10.6.0.1, fd06::1");
    assert.equal(served(view, { addresses: addrs("10.6.0.1"), ownAddresses: addrs("10.6.0.1") }), "10.6.0.1");
  });

  it("gives no others, not even to who has one", () => {
    const no = 'POOL_DISABLED: pool "f" takes no new reservations; name another pool';
    assert.equal(
      served(view, { addresses: addrs("10.6.0.2"), ownAddresses: addrs("10.6.0.1") }),
      'POOL_DISABLED: pool "f" is disabled (spec.disabled: true); ask for an address of another pool',
    );
    assert.equal(served(view, { families: ["IPv4", "IPv6"], ownAddresses: addrs("10.6.0.1") }), no);
    assert.equal(served(view, { ownAddresses: addrs("10.6.0.1") }), "10.6.0.1");
  });
});

describe("a new pool", () => {
  it("takes nothing away from who has an address of another, and adds no family to it", () => {
    const old = poolRecord("old", ["10.1.0.0/29", "fd01::/126"]);
    const four = six("old", 1);
    const held = addrs("10.1.0.1", "fd01::1");
    const first = { priority: 9 };
    assert.equal(
      served(viewOf({ pools: [old, six("new", 2, first)] }), { ownAddresses: held }),
      "10.1.0.1, fd01::1",
    );
    const dual = poolRecord("new", ["10.2.0.0/29", "fd02::/126"], first);
    assert.equal(served(viewOf({ pools: [four, dual] }), { ownAddresses: addrs("10.1.0.1") }), "10.1.0.1");
    assert.equal(
      served(viewOf({ pools: [four, poolRecord("new", "fd02::/126", first)] }), {
        ownAddresses: addrs("10.1.0.1"),
      }),
      "10.1.0.1",
    );
  });
});

describe("limits", () => {
  const held = (n: number, namespace = "shop") => {
    const addresses = Array.from({ length: n }, (_, i) => `10.1.0.${i + 1}`);
    return reservationsOf(
      claimRecord({ namespace, name: "other", nonce: "n2", addresses: addrs(...addresses) }),
      "a",
    );
  };
  const limited = (perNamespace: number, n: number, namespace?: string) =>
    viewOf({ pools: [six("a", 1, { limits: { perNamespace } })], reservations: held(n, namespace) });
  const reached = (n: number, limit: number) =>
    `LIMIT_REACHED: namespace shop holds ${n} of the ${limit} address${limit === 1 ? "" : "es"} that pool "a" allows one namespace; release one, or ask for a higher limits.perNamespace`;

  it("count what the namespace has, and only that", () => {
    assert.equal(served(limited(2, 1)), "a");
    assert.equal(served(limited(2, 2)), reached(2, 2));
    assert.equal(served(limited(2, 2, "bank")), "a");
    assert.equal(served(limited(2, 2), { addresses: addrs("10.1.0.6") }), reached(2, 2));
  });

  it("leave the other pools", () => {
    const pools = [six("a", 1, { limits: { perNamespace: 1 } }), six("b", 2)];
    const view = viewOf({ pools, reservations: held(1) });
    assert.equal(served(view), "b");
    assert.equal(served(view, { pools: ["a"] }), reached(1, 1));
  });

  it("count both families of one pool", () => {
    const pools = [poolRecord("a", ["10.1.0.0/29", "fd01::/126"], { limits: { perNamespace: 3 } })];
    assert.equal(served(viewOf({ pools, reservations: held(1) })), "a, a");
    assert.equal(served(viewOf({ pools, reservations: held(2) })), reached(2, 3));
    const addresses = addrs("10.1.0.6", "fd01::1");
    assert.equal(served(viewOf({ pools, reservations: held(1) }), { addresses }), "a, a");
    assert.equal(served(viewOf({ pools, reservations: held(2) }), { addresses }), reached(2, 3));
  });

  it("count what cools with what is held, up to twice as much as one namespace may hold", () => {
    const cooled = (n: number) =>
      held(5)
        .slice(5 - n)
        .map((record) => ({ ...record, releasedAt: 1 }));
    const limitedTo2 = (holds: number, cools: number) =>
      viewOf({
        pools: [six("a", 1, { limits: { perNamespace: 2 } })],
        reservations: [...held(holds), ...cooled(cools)],
      });
    const words =
      'LIMIT_REACHED: namespace shop holds 1 address of pool "a", which allows one namespace twice its limits.perNamespace, 4, with those that cool, and 3 more cool after their release; try again when they have cooled';
    assert.equal(served(limitedTo2(1, 2)), "a");
    assert.equal(served(limitedTo2(1, 3)), words);
    assert.equal(served(limitedTo2(1, 3), { namespace: "bank" }), "a");
    const again = { name: "other", addresses: addrs("10.1.0.5") };
    assert.equal(served(limitedTo2(1, 3), { ...again, name: "another" }), words);
  });

  it("do not count what the identity has itself", () => {
    const view = limited(2, 2);
    assert.equal(served(view, { ownAddresses: addrs("10.1.0.1") }), "10.1.0.1");
    assert.equal(served(view, { addresses: addrs("10.1.0.1"), ownAddresses: addrs("10.1.0.1") }), "10.1.0.1");
    assert.equal(served(view, { addresses: addrs("10.1.0.6"), ownAddresses: addrs("10.1.0.1") }), "a");
    const pools = [poolRecord("a", ["10.1.0.0/29", "fd01::/126"], { limits: { perNamespace: 2 } })];
    const own = viewOf({ pools, reservations: held(1) });
    const more = { addresses: addrs("10.1.0.1", "fd01::1"), ownAddresses: addrs("10.1.0.1") };
    assert.equal(served(own, more), "10.1.0.1, a");
  });

  it("that were lowered take nothing away", () => {
    assert.equal(served(limited(1, 3), { ownAddresses: addrs("10.1.0.1") }), "10.1.0.1");
    assert.equal(
      served(limited(1, 3), { addresses: addrs("10.1.0.1"), ownAddresses: addrs("10.1.0.1") }),
      "10.1.0.1",
    );
  });
});
