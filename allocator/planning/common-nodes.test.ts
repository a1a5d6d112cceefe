// SPDX-License-Identifier: Apache-2.0
// A pod with several interfaces runs on one node: their pools must have nodes in common.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { addr, parsed, poolRecord } from "../../test/support/fixtures.ts";
import { runsOf } from "../../test/support/runs.ts";
import { openWorld } from "../../test/support/world.ts";
import { isRefusal } from "../base/errors.ts";
import type { RecordReader } from "../cache/reader.ts";
import type { InterfacePools } from "../model/interfaces.ts";
import { planAddresses } from "./address-plan.ts";
import { haveCommonNodes } from "./node-fit.ts";
import type { AddressConstraints } from "./plan.ts";

const of = (name: string, third: number, labels?: Record<string, string>) =>
  poolRecord(name, `10.20.${third}.0/28`, labels && { nodeSelector: { matchLabels: labels } });
const ALL = [
  of("rack-1", 1, { rack: "1" }),
  of("rack-2", 2, { rack: "2" }),
  of("far-1", 3, { rack: "1", zone: "far" }),
  of("far", 4, { zone: "far" }),
  of("near", 5, { zone: "near" }),
  of("any", 6),
];

function asking(interfacePools: InterfacePools, more: Partial<AddressConstraints> = {}): AddressConstraints {
  const who = { namespace: "shop", name: "a", namespaceLabels: {}, podLabels: {} };
  return { ...who, interfacePools, ...more };
}

/** The pool of each interface; a refusal in its words. */
function poolsOf(view: RecordReader, ask: AddressConstraints): string {
  const plan = planAddresses(view, ask);
  if (isRefusal(plan)) return plan.message;
  const taken = plan.familyPlans.map(({ interface: name, candidates }) => {
    const [first] = candidates;
    return `${name} ${first?.pool}`;
  });
  return taken.toSorted().join(", ");
}

describe("the pools of a pod's interfaces", () => {
  it("are those that have nodes in common, though others come first", async () => {
    await using world = await openWorld({ pools: ALL });
    const { view } = world.admission.context;
    const rows: readonly (readonly [InterfacePools, string])[] = [
      [{ eth0: ["rack-1", "rack-2"], net1: ["rack-2"] }, "eth0 rack-2, net1 rack-2"],
      [{ eth0: ["rack-1", "rack-2"], net1: ["rack-2", "rack-1"] }, "eth0 rack-1, net1 rack-1"],
      [{ eth0: ["near", "far"], net1: ["rack-1"], net2: ["far-1"] }, "eth0 far, net1 rack-1, net2 far-1"],
      [{ eth0: ["rack-1"], net1: ["far"], net2: ["any"] }, "eth0 rack-1, net1 far, net2 any"],
    ];
    for (const [pools, taken] of rows) assert.equal(poolsOf(view, asking(pools)), taken);
  });

  it("are named in a refusal where no node is of all", async () => {
    await using world = await openWorld({ pools: ALL });
    const { view } = world.admission.context;
    assert.equal(
      poolsOf(view, asking({ eth0: ["rack-1"], net1: ["rack-2"] })),
      'pool "rack-1" is for nodes with rack=1, pool "rack-2" is for nodes with rack=2, and no node is of both; name addresses or pools of the same nodes',
    );
    const nodes = { terms: [[{ key: "rack", operator: "In", values: ["1"], of: "labels" }]] } as const;
    assert.match(
      poolsOf(view, asking({ eth0: ["far"], net1: ["rack-2"] }, { nodes })),
      /"rack-2" is for nodes with rack=2, where this pod cannot run/,
    );
    const named = {
      addresses: [addr("10.20.1.1"), addr("10.20.5.1")],
      interfaces: { eth0: [addr("10.20.1.1")], net1: [addr("10.20.5.1")] },
    };
    assert.match(
      poolsOf(view, asking({ net2: ["far-1"] }, named)),
      /"near" is for nodes with zone=near, pool "far-1" is for nodes with rack=1,zone=far, and no node is of both/,
    );
    const apart = {
      addresses: [addr("10.20.1.1"), addr("10.20.2.1")],
      interfaces: { eth0: [addr("10.20.1.1")], net1: [addr("10.20.2.1")] },
    };
    assert.match(poolsOf(view, asking({ net2: ["any"] }, apart)), /no node is of both/);
  });

  it("are others where those are full", async () => {
    const ranges = [{ cidr: "10.20.7.0/30", exclude: ["10.20.7.1-10.20.7.2"] }];
    const full = poolRecord("full", [], { ranges, nodeSelector: { matchLabels: { rack: "1" } } });
    await using world = await openWorld({ pools: [...ALL, full] });
    const { view } = world.admission.context;
    const pools = { eth0: ["rack-1", "rack-2"], net1: ["full", "rack-2"] };
    assert.equal(poolsOf(view, asking(pools)), "eth0 rack-2, net1 rack-2");
  });

  it("are planned if and only if some choice of one for each has a node", async () => {
    await using world = await openWorld({ pools: ALL });
    const { view } = world.admission.context;
    const names = fc.uniqueArray(fc.constantFrom(...ALL.map(({ name }) => name)), {
      minLength: 1,
      maxLength: 3,
    });
    const pool = new Map(ALL.map((record) => [record.name, parsed(record)]));
    fc.assert(
      fc.property(names, names, names, (eth0, net1, net2) => {
        const plan = planAddresses(view, asking({ eth0, net1, net2 }));
        const choices = eth0.flatMap((a) => net1.flatMap((b) => net2.map((c) => [a, b, c])));
        const isPossible = choices.some((choice) =>
          haveCommonNodes(
            undefined,
            choice.flatMap((name) => pool.get(name) ?? []),
          ),
        );
        assert.equal(!isRefusal(plan), isPossible);
        if (isRefusal(plan)) return;
        const offered = plan.familyPlans.map(({ candidates }) => [...candidates].map((one) => one.pool));
        const used = [...new Set(offered.flat())].flatMap((name) => pool.get(name) ?? []);
        assert.ok(haveCommonNodes(undefined, used));
      }),
      { numRuns: runsOf(300, 100) },
    );
  });
});
