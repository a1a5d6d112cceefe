// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { addressInBlock } from "../../allocator/planning/refusal-messages.ts";
import { addr, DB_POOL } from "../../test/support/fixtures.ts";
import { deniedAs, poolObject, review } from "../../test/support/objects.ts";
import { openWorld, type World } from "../../test/support/world.ts";
import { BLOCKS, CLAIMS_OF_BANK, CONTROLLER, POOLS, toldTo } from "../testing/told-refusals.ts";
import { type ReadAccess, type Subject, withheld } from "./disclosure.ts";
import { createHandlers } from "./routes.ts";

const GITOPS = {
  username: "system:serviceaccount:argocd:argocd-application-controller",
  uid: "3",
  groups: ["system:serviceaccounts", "system:serviceaccounts:argocd"],
};

const OF_NODE = {
  ...{ cidr: "10.20.0.80/29", pool: "db", node: "rack-7", nodeUID: "u" },
  ...{ holes: [], granted: true },
};

async function worldWithBlock(): Promise<World> {
  const world = await openWorld({
    pools: [{ ...DB_POOL, spec: { ...DB_POOL.spec, blockSize: { ipv4: 29 } } }],
  });
  await world.realStore.create("block", OF_NODE);
  await world.settle();
  return world;
}

describe("what a refusal tells of nodes", () => {
  const asks = { namespace: "shop", ips: "10.20.0.83" };

  it("names node and block of an address to who may list blocks, and to nobody else", async () => {
    await using world = await worldWithBlock();
    for (const may of ["all", [BLOCKS]] as const) {
      assert.match(
        await toldTo(world, may, asks),
        /^ADDRESS_TAKEN: address 10\.20\.0\.83 in pool "db" is in block 10\.20\.0\.80\/29 of node rack-7/,
      );
    }
    const words =
      /^ADDRESS_TAKEN: address 10\.20\.0\.83 in pool "db" is for pods that need no fixed address; free nearby: [0-9., ]+; or ask whoever runs the network$/;
    for (const may of [[], [POOLS, CLAIMS_OF_BANK]]) assert.match(await toldTo(world, may, asks), words);
    assert.match(await toldTo(world, "all", { ...asks, user: CONTROLLER }), words);
  });

  it("nor does it in events and conditions of a namespace", async () => {
    await using world = await worldWithBlock();
    const { view } = world.context;
    const pool = view.pool("db");
    assert.ok(pool);
    const refusal = addressInBlock(view, pool, addr("10.20.0.83"), OF_NODE);
    assert.match(refusal.message, /rack-7/);
    assert.doesNotMatch(JSON.stringify(withheld(view, refusal, "shop")), /rack-7|10\.20\.0\.80/);
  });

  it("names the nodes of a pool that is to go to who may list blocks, and to nobody else", async () => {
    await using world = await worldWithBlock();
    const gone = async (may: readonly Subject[]) => {
      const readAccess: ReadAccess = {
        mayRead: async (_, subject) => may.some((one) => JSON.stringify(one) === JSON.stringify(subject)),
      };
      const oldObject = poolObject("db", { ranges: [{ cidr: "10.20.0.0/24" }] });
      const request = review(oldObject, "DELETE", { namespace: "", oldObject });
      const handle = createHandlers({ ...world.admission, readAccess })["/validate/pools"];
      return deniedAs(await handle(request, new AbortController().signal));
    };
    assert.equal(
      await gone([{ verb: "list", resource: "ipclaims", namespace: "" }, POOLS]),
      "POOL_IN_USE: pool db is in use: nodes have blocks of what would go; set disabled: true and wait",
    );
    assert.match(await gone([BLOCKS]), /nodes have 10\.20\.0\.80\/29 \(rack-7\)/);
  });

  it("asks for a GitOps controller's own rights, for it is who asks", async () => {
    await using world = await worldWithBlock();
    assert.match(await toldTo(world, [BLOCKS], { ...asks, user: GITOPS }), /of node rack-7/);
    assert.doesNotMatch(await toldTo(world, [], { ...asks, user: GITOPS }), /rack-7/);
  });
});
