// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { parseCidr } from "../../allocator/ip/address.ts";
import type { Occupied } from "../../allocator/planning/occupied.ts";
import { addr } from "../../test/support/fixtures.ts";
import { type Json, poolObject, review } from "../../test/support/objects.ts";
import { openWorld } from "../../test/support/world.ts";
import type { AdmissionContext } from "./admission-context.ts";
import { createHandlers } from "./routes.ts";

const ROUTE = "/validate/pools";

describe("a pool over addresses that others have", () => {
  const pool = (spec: Json = {}) => poolObject("lan", { ranges: [{ cidr: "10.9.0.0/28" }], ...spec });
  const OTHERS: readonly Occupied[] = [
    [addr("10.9.0.1"), { kind: "node", namespace: "", name: "node-a" }],
    [addr("10.9.0.5"), { kind: "pod", namespace: "kube-system", name: "coredns-1" }],
    [addr("10.9.0.6"), { kind: "pod", namespace: "shop", name: "web" }],
    [addr("10.9.1.1"), { kind: "pod", namespace: "shop", name: "elsewhere" }],
  ];
  const services = async () => ({
    networks: [parseCidr("10.9.0.0/16")].flatMap((one) => one ?? []),
    occupied: [[addr("10.9.0.10"), { kind: "service", namespace: "default", name: "kubernetes" }]] as const,
    isPart: false,
  });

  async function toldOf(spec: Json, facts: Partial<AdmissionContext>): Promise<readonly string[]> {
    await using world = await openWorld({});
    const handle = createHandlers({ ...world.admission, ...facts })[ROUTE];
    const response = await handle(review(pool(spec), "CREATE"), new AbortController().signal);
    assert.equal(response.allowed, true);
    return response.warnings ?? [];
  }

  it("is told which, and what to do, and stands", async () => {
    const reported = await toldOf({}, { occupants: () => OTHERS, services });
    assert.deepEqual(reported, [
      "pool lan has 4 addresses that are in use, and not from Berth: 10.9.0.1 (node node-a), 10.9.0.5 (pod kube-system/coredns-1), 10.9.0.6 (pod shop/web) and 1 more",
      "exclude them from spec.ranges; a pod's is Berth's to give once the pod has gone; see berthctl check",
      "pool lan has addresses of 10.9.0.0/16, from which the cluster's Services get theirs: what is sent to them may never reach a pod; take them out of spec.ranges",
    ]);
    assert.deepEqual(
      reported.filter((one) => Buffer.byteLength(one) > 256),
      [],
      "the API server cuts longer ones",
    );
  });

  it("is told no more of whose they are than whoever makes it may read", async () => {
    const asked: string[] = [];
    const readAccess: AdmissionContext["readAccess"] = {
      mayRead: async ({ username }, { verb, resource, namespace }) => {
        asked.push(`${username} ${verb} ${resource} ${namespace}`);
        return namespace === "shop";
      },
    };
    const facts = { occupants: () => OTHERS.slice(1), services, readAccess };
    const [first] = await toldOf({}, facts);
    assert.equal(
      first,
      "pool lan has 3 addresses that are in use, and not from Berth: 10.9.0.5, 10.9.0.6 (pod shop/web), 10.9.0.10",
    );
    const [node] = await toldOf(
      { ranges: [{ cidr: "10.9.0.0/30" }] },
      { occupants: () => OTHERS, readAccess },
    );
    assert.match(node ?? "", /1 address that is in use, and not from Berth: 10\.9\.0\.1$/);
    const { username } = review(pool(), "CREATE").userInfo;
    assert.deepEqual(asked, [
      `${username} get pods kube-system`,
      `${username} get pods shop`,
      `${username} get services default`,
      `${username} list nodes `,
    ]);
  });

  it("hears nothing of what it excludes", async () => {
    const ranges = [{ cidr: "10.9.0.0/28", from: "10.9.0.2", exclude: ["10.9.0.5-10.9.0.6"] }];
    assert.deepEqual(await toldOf({ ranges }, { occupants: () => OTHERS }), []);
  });

  it("for other networks is told so beside", async () => {
    const [, , next] = await toldOf({ networks: ["vlan7"] }, { occupants: () => OTHERS.slice(1, 2) });
    assert.equal(
      next,
      "Berth gives it once the pod has gone; exclude it if another system goes on giving it, unless the pool's networks are others; see berthctl check",
    );
  });

  it("of this host alone is told to exclude it", async () => {
    const own = [[addr("10.9.0.1"), { kind: "host", namespace: "", name: "eth0" }]] as const;
    assert.deepEqual(await toldOf({}, { occupants: () => own }), [
      "pool lan has 1 address that is in use, and not from Berth: 10.9.0.1 (this host (eth0))",
      "exclude it from spec.ranges; see berthctl check",
    ]);
  });

  it("that is applied again as it is hears nothing", async () => {
    await using world = await openWorld({});
    const handle = createHandlers({ ...world.admission, occupants: () => OTHERS })[ROUTE];
    const again = review(pool(), "UPDATE", { oldObject: pool() });
    assert.equal((await handle(again, new AbortController().signal)).warnings, undefined);
  });
});
