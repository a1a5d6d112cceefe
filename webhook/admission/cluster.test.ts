// SPDX-License-Identifier: Apache-2.0
// What the handlers decide where an API server keeps the objects.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { NamespaceState } from "../../allocator/model/cluster-state.ts";
import type { Store } from "../../allocator/store/store.ts";
import { addrs, DB_POOL, poolRecord } from "../../test/support/fixtures.ts";
import {
  annotationsOf,
  applied,
  claimObject,
  deniedAs,
  type Json,
  namespaceObject,
  pod,
  poolObject,
  review,
  statefulPod,
  workload,
} from "../../test/support/objects.ts";
import { createPod } from "../../test/support/reviewing.ts";
import { openWorld, type World } from "../../test/support/world.ts";
import type { AdmissionRequest, AdmissionResponse, Operation, Route } from "../review/admission-review.ts";
import type { AdmissionContext, ServiceAccount } from "./admission-context.ts";
import { createHandlers } from "./routes.ts";

const PIN = { "berth.dev/ips": "10.20.0.70" };
const POOLS = [
  DB_POOL,
  poolRecord("vault", "10.50.0.0/29", { authorization: "ServiceAccount" }),
  poolRecord("bank", "10.51.0.0/29", { authorization: "ServiceAccount" }),
];

type Sending = Partial<AdmissionRequest> & {
  readonly operation?: Operation;
  readonly admission?: Partial<AdmissionContext>;
};

async function send(
  world: World,
  route: Route,
  object: Json,
  over: Sending = {},
): Promise<AdmissionResponse> {
  const { embedded: _, ...admission } = world.admission;
  const { operation = "CREATE", admission: more, ...rest } = over;
  const handler = createHandlers({ ...admission, ...more })[route];
  const response = await handler(review(object, operation, rest), new AbortController().signal);
  await world.settle();
  return response;
}

/** What comes of it in words: nothing, warnings, or a refusal. */
async function said(world: World, route: Route, object: Json, over: Sending = {}): Promise<string> {
  const response = await send(world, route, object, over);
  return response.allowed ? (response.warnings ?? []).join(" | ") : deniedAs(response);
}

async function store(world: World, key: string, change: Json = {}): Promise<Json> {
  const seen = await world.realStore.get("claim", key);
  assert.ok(seen);
  const { namespace: _, name, status: __, ...spec } = seen.record;
  return claimObject(name, { ...spec, ...change });
}

describe("the guard over pods in a cluster", () => {
  it("refuses a pod that asks and has no claim, but not a rehearsal, which is given none", async () => {
    await using world = await openWorld({ pools: POOLS });
    const late = pod("a", { annotations: PIN });
    assert.equal(
      await said(world, "/validate/pods", late),
      "CLAIM_MISSING: pod shop/a asks for an address and no claim was made for it; another webhook added the annotation after Berth was asked; write it into the pod itself",
    );
    assert.equal(await said(world, "/validate/pods", late, { dryRun: true }), "");
    const made = applied(late, await send(world, "/mutate/pods", late));
    assert.equal(await said(world, "/validate/pods", made), "");
    assert.equal(await said(world, "/validate/pods", pod("b")), "");
    assert.equal(
      await said(world, "/validate/pods", pod("c", { annotations: PIN, spec: { hostNetwork: true } })),
      "",
    );
  });

  it("refuses a pod that asks for nothing and was given what its claim had before, by a copy that was behind", async () => {
    await using world = await openWorld({ pools: POOLS });
    await createPod(world, pod("a", { annotations: PIN }), "a");
    const reported = { "berth.dev/claim": "a", "berth.dev/addresses": "10.20.0.71" };
    const plain = pod("a", { annotations: reported, uid: "uid-2" });
    assert.equal(
      await said(world, "/validate/pods", plain),
      "CLAIM_CHANGED: claim shop/a holds 10.20.0.70 now, and this pod was given 10.20.0.71 while another one of its name was on its way; create it again",
    );
    const asTold = { ...reported, "berth.dev/addresses": "10.20.0.70" };
    assert.equal(await said(world, "/validate/pods", pod("a", { annotations: asTold })), "");
    // the copy that is behind is this one
    const seen = (await world.realStore.get("claim", "shop/a")) ?? assert.fail();
    const moved = { ...seen, record: { ...seen.record, addresses: addrs("10.20.0.71") } };
    const store: Store = Object.create(world.store, { get: { value: async () => moved } });
    const admission = { context: { ...world.context, store } };
    assert.equal(await said(world, "/validate/pods", plain, { admission }), "");
  });

  it("keeps what berth wrote into a pod as it is, and lets everything else change", async () => {
    await using world = await openWorld({ pools: POOLS });
    const own = { ...PIN, "berth.dev/claim": "a", "berth.dev/addresses": "10.20.0.70" };
    const before = pod("a", { annotations: own });
    const change = async (annotations: Record<string, string>, over: Sending = {}) =>
      await said(world, "/validate/pods", pod("a", { annotations }), {
        operation: "UPDATE",
        oldObject: before,
        ...over,
      });
    assert.equal(await change({ ...own, note: "x" }), "");
    assert.match(
      await change({ ...own, "berth.dev/ips": "10.20.0.71" }),
      /delete the pod and create it again/,
    );
    const words = (key: string) =>
      `OBJECT_INVALID: annotation ${key} of pod shop/a is written by berth when the pod is created and stays; leave it as it is`;
    assert.equal(await change({ ...own, "berth.dev/claim": "b" }), words("berth.dev/claim"));
    assert.equal(await change({ ...PIN, "berth.dev/claim": "a" }), words("berth.dev/addresses"));
    assert.equal(await change({ ...own, "berth.dev/token": "t" }), words("berth.dev/token"));
    for (const subResource of ["status", "ephemeralcontainers"]) {
      assert.equal(
        await change({ ...own, "berth.dev/claim": "b" }, { subResource }),
        words("berth.dev/claim"),
      );
      assert.match(
        await change({ ...own, "berth.dev/ips": "10.20.0.71" }, { subResource }),
        /delete the pod and create it again/,
      );
      assert.equal(await change({ ...own, note: "x" }, { subResource }), "");
    }
    assert.equal(await said(world, "/validate/pods", before, { operation: "DELETE" }), "");
  });
});

describe("a claim that people change in a cluster", () => {
  const resolved = (request: Json, more: Json = {}) => claimObject("licence", { request, ...more });

  it("is judged when it is made, with a word about pods that berth does not see", async () => {
    await using world = await openWorld({ pools: POOLS });
    const before = world.dump();
    const hint =
      "a pod licence that asks for nothing is bound to this claim, but may start before that, with another address: ask for these with berth.dev/ips in the pod, or label namespace shop berth.dev/admission=enabled";
    assert.equal(await said(world, "/validate/claims", resolved({ addresses: ["10.20.0.70"] })), hint);
    assert.equal(
      await said(world, "/validate/claims", resolved({ addresses: ["10.20.0.70"] }), { dryRun: true }),
      `${hint} | claim shop/licence would get 10.20.0.70 from pool db`,
    );
    const inventory = {
      ...bound(world),
      namespace: async (name: string) => ({
        name,
        labels: { "berth.dev/admission": "enabled" },
        annotations: {},
      }),
    };
    assert.equal(
      await said(world, "/validate/claims", resolved({ addresses: ["10.20.0.70"] }), {
        admission: { inventory },
      }),
      "",
    );
    assert.match(
      await said(world, "/validate/claims", resolved({ addresses: ["192.0.2.1"] })),
      /^ADDRESS_OUTSIDE: /,
    );
    assert.equal(
      await said(world, "/validate/claims", resolved({ pools: ["db"] }, { nonce: "n", addresses: [] })),
      "REQUEST_INVALID: spec.addresses is written by Berth; leave it out",
    );
    assert.equal(world.dump(), before);
  });

  it("keeps berth's own fields, which come along with every change", async () => {
    await using world = await openWorld({ pools: POOLS });
    await send(world, "/mutate/pods", pod("licence", { annotations: { "berth.dev/ips": "10.20.0.70" } }));
    const oldObject = await store(world, "shop/licence", { handMade: true });
    const now = async (change: Json) => {
      const next = { ...(oldObject["spec"] as Json), ...change };
      const spec = Object.fromEntries(Object.entries(next).filter(([, value]) => value !== null));
      return await said(world, "/validate/claims", claimObject("licence", spec), {
        operation: "UPDATE",
        oldObject,
      });
    };
    assert.equal(await now({}), "");
    assert.equal(await now({ retention: { whenDeleted: "Retain", ttl: "48h" } }), "");
    assert.equal(await now({ request: { addresses: ["10.20.0.71"] } }), "");
    assert.match(await now({ request: { addresses: ["192.0.2.1"] } }), /^ADDRESS_OUTSIDE: /);
    assert.match(
      await now({ identity: { kind: "Deployment", name: "web", slot: 0 } }),
      /identity\.slot is given/,
    );
    const words = (field: string) => `REQUEST_INVALID: spec.${field} is written by berth; leave it as it is`;
    const forged = {
      addresses: ["10.20.0.71"],
      nonce: null,
      binding: { token: "", podName: "x", podUID: "u", node: "n", since: 0 },
      retained: { since: 0, because: "deleted" },
      admittedAt: 5,
      handMade: false,
      releasing: true,
    };
    for (const [field, value] of Object.entries(forged)) {
      assert.equal(await now({ [field]: value }), words(field));
    }
  });

  it("of a slot may be changed as any that berth made: its slot comes along", async () => {
    await using world = await openWorld({ pools: POOLS });
    const identity = { kind: "Deployment", apiVersion: "apps/v1", name: "web", slot: 0 };
    const claim = (more: Json) => claimObject("web-slot-0", { identity, nonce: "n1", ...more });
    const oldObject = claim({ request: { addresses: ["10.20.0.70"] } });
    const next = claim({ request: { addresses: ["10.20.0.71"] } });
    const over: Sending = { operation: "UPDATE", oldObject };
    assert.equal(await said(world, "/validate/claims", oldObject, over), "");
    assert.match(await said(world, "/validate/claims", next, over), /^claim shop\/web-slot-0 was made for /);
  });

  it("that berth made stays what it is for, and people are told that its pod overrules them", async () => {
    await using world = await openWorld({ pools: POOLS });
    await send(world, "/mutate/pods", statefulPod("mysql", 0, { annotations: { "berth.dev/pools": "db" } }));
    const oldObject = await store(world, "shop/mysql-0");
    const over: Sending = { operation: "UPDATE", oldObject };
    assert.equal(await said(world, "/validate/claims", oldObject, over), "");
    const retained = await store(world, "shop/mysql-0", { retention: { whenDeleted: "Retain" } });
    assert.equal(
      await said(world, "/validate/claims", retained, over),
      "claim shop/mysql-0 was made for StatefulSet mysql, ordinal 0; when its pod is created again, what the pod asks for is written over this",
    );
    const stolen = await store(world, "shop/mysql-0", {
      identity: { kind: "Pod", apiVersion: "v1", name: "x" },
    });
    assert.equal(
      await said(world, "/validate/claims", stolen, over),
      "REQUEST_INVALID: spec.identity is written by berth; leave it as it is",
    );
  });
});

describe("a namespace in which nothing can be created", () => {
  const knowing = (world: World, facts: NamespaceState | undefined): Sending => ({
    admission: { inventory: { ...bound(world), namespace: async () => facts } },
  });

  it("has no pod reserve anything, if it is not there or is being deleted", async () => {
    await using world = await openWorld({ pools: POOLS });
    const asking = pod("a", { annotations: PIN });
    const before = world.dump();
    const facts = { name: "shop", labels: {}, annotations: {} };
    for (const dryRun of [false, true]) {
      assert.equal(
        await said(world, "/mutate/pods", asking, { dryRun, ...knowing(world, undefined) }),
        "CLAIM_REFUSED: namespace shop does not exist; create it first",
      );
      assert.equal(
        await said(world, "/mutate/pods", asking, {
          dryRun,
          ...knowing(world, { ...facts, terminating: true }),
        }),
        "CLAIM_REFUSED: namespace shop is being deleted; create the pod in another one",
      );
    }
    assert.equal(world.dump(), before);
    assert.equal(await said(world, "/mutate/pods", pod("b"), knowing(world, undefined)), "");
    assert.equal(await said(world, "/mutate/pods", asking, knowing(world, facts)), "");
  });
});

describe("pools that need the verb use", () => {
  const asking = (may: (account: ServiceAccount, pool: string) => boolean) => {
    const asked: string[] = [];
    const mayUse = async (account: ServiceAccount, pool: string) => {
      asked.push(`${account.namespace}/${account.name} ${pool}`);
      return may(account, pool);
    };
    return { asked, access: { mayUse } };
  };

  it("are open to the pod's service account when it has it, and only they are asked about", async () => {
    await using world = await openWorld({ pools: POOLS });
    const { asked, access } = asking(({ name }) => name === "teller");
    const claimed = async (name: string, annotations: Record<string, string>, spec: Json = {}) => {
      const object = pod(name, { annotations, spec });
      const response = await send(world, "/mutate/pods", object, { admission: { access } });
      return response.allowed
        ? annotationsOf(applied(object, response))["berth.dev/addresses"]
        : deniedAs(response);
    };
    assert.equal(await claimed("a", PIN), "10.20.0.70");
    assert.deepEqual(asked, []);
    const teller = { serviceAccountName: "teller" };
    assert.equal(await claimed("b", { "berth.dev/ips": "10.50.0.2" }, teller), "10.50.0.2");
    assert.match((await claimed("c", { "berth.dev/pools": "bank" }, teller)) ?? "", /^10\.51\.0\./);
    assert.equal(
      await claimed("d", { "berth.dev/pools": "vault" }),
      'POOL_FORBIDDEN: pool "vault" is only for service accounts with the verb "use" on it; ask its administrator for a role',
    );
    assert.deepEqual(asked, ["shop/teller vault", "shop/teller bank", "shop/default vault"]);
  });

  it("are judged for a template by its own service account", async () => {
    await using world = await openWorld({ pools: POOLS });
    const { asked, access } = asking(({ name }) => name === "teller");
    const set = (serviceAccountName: string) =>
      workload("StatefulSet", "mysql", {
        replicas: 1,
        spec: {
          template: {
            metadata: { annotations: { "berth.dev/pools": "vault" } },
            spec: { serviceAccountName },
          },
        },
      });
    assert.equal(await said(world, "/validate/workloads", set("teller"), { admission: { access } }), "");
    assert.match(
      await said(world, "/validate/workloads", set("other"), { admission: { access } }),
      /^POOL_FORBIDDEN: pod mysql-0: pool "vault" is only/,
    );
    assert.deepEqual(asked, ["shop/teller vault", "shop/other vault"]);
    assert.deepEqual(await world.holdings(), {});
  });
});

describe("what stays as it is in a cluster", () => {
  it("is not judged anew: labels and finalizers of a pool, a workload or a namespace may always change", async () => {
    await using world = await openWorld({ pools: POOLS });
    const overlapping = poolObject("db2", DB_POOL.spec as unknown as Json);
    assert.match(await said(world, "/validate/pools", overlapping), /^POOL_OVERLAPS: /);
    const same: Sending = { operation: "UPDATE", oldObject: overlapping };
    assert.equal(await said(world, "/validate/pools", overlapping, same), "");
    const set = workload("StatefulSet", "mysql", { replicas: 3, annotations: PIN });
    assert.match(await said(world, "/validate/workloads", set), /^LIST_TOO_SHORT: /);
    assert.equal(await said(world, "/validate/workloads", set, { operation: "UPDATE", oldObject: set }), "");
  });

  it("says that defaults of a namespace need its label", async () => {
    await using world = await openWorld({ pools: POOLS });
    const defaults = { "berth.dev/pools": "db" };
    const route = "/validate/namespaces";
    assert.equal(
      await said(world, route, namespaceObject("shop", defaults)),
      "annotation berth.dev/pools has no effect on pods without annotations of their own until the namespace has the label berth.dev/admission=enabled",
    );
    const label = { "berth.dev/admission": "enabled" };
    assert.equal(await said(world, route, namespaceObject("shop", defaults, label)), "");
    assert.equal(await said(world, route, namespaceObject("shop", defaults), { operation: "DELETE" }), "");
  });
});

function bound({ objects }: World) {
  return {
    pod: objects.pod.bind(objects),
    workload: objects.workload.bind(objects),
    namespace: objects.namespace.bind(objects),
    fenced: objects.fenced.bind(objects),
  };
}
