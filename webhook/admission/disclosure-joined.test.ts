// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { DB_POOL, poolRecord } from "../../test/support/fixtures.ts";
import { deniedAs, deploymentPod, type Json, pod, poolObject, review } from "../../test/support/objects.ts";
import { createPod } from "../../test/support/reviewing.ts";
import { openWorld, type World } from "../../test/support/world.ts";
import type { Route, UserInfo } from "../review/admission-review.ts";
import type { Subject } from "./disclosure.ts";
import { createHandlers } from "./routes.ts";

const RACKS = poolRecord("racks", "10.79.0.0/24", { nodeSelector: { matchLabels: { rack: "vault-7" } } });
const NEVER = new AbortController().signal;
const TENANT = { username: "tenant", uid: "1", groups: ["system:authenticated"] };
const SET = { username: "system:serviceaccount:kube-system:replicaset-controller", uid: "2", groups: [] };

async function worldWithHolders(): Promise<World> {
  const world = await openWorld({ pools: [DB_POOL, RACKS] });
  for (const [name, ips] of [
    ["ledger", "10.20.0.70"],
    ["payroll", "10.20.0.71"],
  ] as const)
    await createPod(world, pod(name, { namespace: "bank", annotations: { "berth.dev/ips": ips } }), name);
  return world;
}

interface Asked {
  readonly object: Json;
  readonly route?: Route;
  readonly operation?: "CREATE" | "DELETE";
  readonly userInfo?: UserInfo;
  readonly may?: readonly Subject[] | "all";
}

/** What somebody is told who may read what `may` says. */
async function told(world: World, asked: Asked): Promise<string> {
  const { object, route = "/mutate/pods", operation = "CREATE", userInfo = TENANT, may = [] } = asked;
  const readAccess = {
    mayRead: async (_: unknown, subject: Subject) =>
      may === "all" || may.some((one) => JSON.stringify(one) === JSON.stringify(subject)),
  };
  const of = operation === "DELETE" ? { oldObject: object, namespace: "" } : {};
  const request = review(object, operation, { userInfo, dryRun: true, ...of });
  return deniedAs(await createHandlers({ ...world.admission, readAccess })[route](request, NEVER));
}

const inUse = (ips: string) => deploymentPod("web", { annotations: { "berth.dev/ips": ips } });

describe("a refusal that repeats others", () => {
  it("names no holder of a set's entries to who may not read its claims, nor in events", async () => {
    await using world = await worldWithHolders();
    const object = inUse("10.20.0.70;10.20.0.71");
    const words =
      /^SET_EXHAUSTED: all 2 entries of the list are in use: address 10\.20\.0\.70 in pool "db" is held in another namespace; .*address 10\.20\.0\.71 in pool "db" is held in another namespace; .*; add entries for replicas and maxSurge, or lower them$/;
    for (const userInfo of [TENANT, SET]) {
      const said = await told(world, { object, userInfo, may: userInfo === SET ? "all" : [] });
      assert.match(said, words);
      assert.doesNotMatch(said, /bank|ledger|payroll/);
    }
  });

  it("names them to who may read those claims", async () => {
    await using world = await worldWithHolders();
    const may: Subject[] = [{ verb: "get", resource: "ipclaims", namespace: "bank" }];
    const said = await told(world, { object: inUse("10.20.0.70;10.20.0.71"), may });
    assert.match(said, /held by bank\/ledger .*held by bank\/payroll /);
  });

  it("tells the labels of a pool's nodes to who may list pools alone, and says what is left once", async () => {
    await using world = await worldWithHolders();
    const annotations = { "berth.dev/ips": "10.79.0.5;10.79.0.6" };
    const object = deploymentPod("web", { annotations, spec: { nodeSelector: { rack: "other" } } });
    const said = await told(world, { object });
    assert.match(said, /^SET_EXHAUSTED: none of the 2 entries of the list can be used: what is asked for/);
    assert.equal(said.split("is for nodes where it cannot run").length, 2);
    assert.doesNotMatch(said, /racks|vault/);
    const may: Subject[] = [{ verb: "list", resource: "ippools", namespace: "" }];
    assert.match(await told(world, { object, may }), /pool "racks" is for nodes with rack=vault-7/);
  });

  it("names the nodes of a pool that claims are in, too, to who may list blocks alone", async () => {
    await using world = await openWorld({
      pools: [{ ...DB_POOL, spec: { ...DB_POOL.spec, blockSize: { ipv4: 29 } } }],
    });
    const block = {
      cidr: "10.20.0.80/29",
      pool: "db",
      node: "rack-7",
      nodeUID: "u",
      holes: [],
      granted: true,
    };
    await world.realStore.create("block", block);
    await createPod(
      world,
      pod("ledger", { namespace: "bank", annotations: { "berth.dev/ips": "10.20.0.70" } }),
      "ledger",
    );
    const object = poolObject("db", { ranges: [{ cidr: "10.20.0.0/24" }] });
    const claims: Subject = { verb: "list", resource: "ipclaims", namespace: "" };
    const blocks: Subject = { verb: "list", resource: "ipblocks", namespace: "" };
    const asks = { route: "/validate/pools", object, operation: "DELETE" } as const;
    const byClaims = await told(world, { ...asks, may: [claims] });
    assert.match(byClaims, /^POOL_IN_USE: .*bank\/ledger.*nodes have blocks of what would go/);
    assert.doesNotMatch(byClaims, /rack-7/);
    const byNodes = await told(world, { ...asks, may: [blocks] });
    assert.match(byNodes, /^POOL_IN_USE: .*reservations stand in what would go.*rack-7/);
    assert.doesNotMatch(byNodes, /bank|ledger/);
  });
});
