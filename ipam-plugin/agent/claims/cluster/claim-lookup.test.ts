// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { BerthError, isRefusal } from "../../../../allocator/base/errors.ts";
import { ManualClock } from "../../../../test/support/clock.ts";
import { ask, NODE, NodeWorld, noticeOf, podOf } from "../../testing/node-world.ts";
import { NodeClaims } from "./node-claims.ts";

let node: NodeWorld;

/** Around the tests of a suite: not of the whole file, whose process others may share. */
function setUp(): void {
  beforeEach(async () => {
    node = await NodeWorld.open();
  });
  afterEach(() => node.close());
}

const NEVER = new AbortController().signal;
const admitted = { "berth.dev/claim": "a" };

/** What `find` gives, after 5 s if need be: time is no matter here. */
async function found(request = ask("a")): Promise<string> {
  try {
    const got = await node.claims.find(request, NEVER);
    if (got.kind === "found") return `found ${got.claim}`;
    return isRefusal(got) ? `${got.code}: ${got.message}` : got.kind;
  } catch (error) {
    return error instanceof BerthError ? `${error.code}: ${error.message}` : String(error);
  }
}

const SUCCEEDED =
  "CLAIM_BUSY: the pod shop/a that this sandbox is for is deleted, and another one has its name and its claim";
const NOT_LOADED =
  "NOT_READY: the claims of node node-a are not loaded: the API server has not answered since the agent started; try again";
const UNKNOWN =
  "NOT_READY: pod shop/a is not known on node node-a: the API server has not told of it in 5 s; try again";
const NOT_BOUND =
  "CLAIM_BUSY: claim shop/a is not bound to pod shop/a on node node-a in 5 s; the events of the pod say why, unless no Berth webhook runs; try again";
const MISSING =
  "CLAIM_MISSING: pod shop/a asks for a fixed address and has no claim: its claim was given back, or it did not pass the Berth webhook; delete it and create it again";

describe("the claim of a pod", () => {
  setUp();

  it("is the one that was bound to its UID, whatever its annotations say", async () => {
    await node.assign("a", "10.20.0.70");
    assert.equal(await found(), "found shop/a");
    assert.equal(await found(ask("a", { annotations: { "berth.dev/claim": "b" } })), "found shop/a");
    const other = ask("a", { pod: { namespace: "shop", name: "a", uid: "uid-0" } });
    assert.equal(await found(other), SUCCEEDED);
  });

  it("is for the interface of its pool's network, and none for the others; without such an interface it is refused", async () => {
    const db = await node.world.realStore.get("pool", "db");
    assert.ok(db);
    const spec = { ...db.record.spec, networks: ["shop/vlan10"] };
    await node.world.realStore.replace("pool", db, { ...db.record, spec });
    await node.assign("a", "10.20.0.70");
    const words =
      'POOL_FORBIDDEN: pool "db" is for networks shop/vlan10, and net is none of them (its networks)';
    assert.equal(await found(), words);
    const annotations = { "k8s.v1.cni.cncf.io/networks": "vlan10" };
    node.see(podOf("a", { annotations }));
    const further = { network: "any", containerID: "box-a", interface: "net1" };
    assert.equal(await found(), "unclaimed");
    assert.equal(await found(ask("a", { attachment: further })), "found shop/a");
    node.forget("a");
    assert.equal(await found(ask("a", { annotations })), "unclaimed");
    assert.equal(await found(), UNKNOWN);
  });

  it("is for the interfaces that it names, each with its own addresses, and for no other", async () => {
    await node.assign("a", "10.20.0.70");
    const seen = (await node.world.realStore.get("claim", "shop/a")) ?? assert.fail();
    const [address] = seen.record.addresses;
    assert.ok(address);
    const request = { ...seen.record.request, interfaces: { net1: [address] } };
    await node.world.realStore.replace("claim", seen, { ...seen.record, request });
    await node.hear("a");
    const on = (name: string) =>
      ask("a", { attachment: { network: "net", containerID: "box-a", interface: name } });
    assert.equal(await found(on("net1")), "found shop/a");
    assert.equal(await found(on("eth0")), "unclaimed");
    const got = await node.claims.attach({ kind: "found", claim: "shop/a", token: "" }, on("net1"), NEVER);
    assert.deepEqual(got.kind === "claimed" && got.addresses.map((one) => one.address), [address]);
    const reported = { kind: "found", claim: "shop/a", token: "", assigned: ["10.20.0.70"] } as const;
    const refused = await node.claims.attach(reported, on("net1"), NEVER);
    assert.equal(isRefusal(refused) && refused.code, "CLAIM_CHANGED", "it was told of no interface");
  });

  it("is none for a pod that asks for nothing where a pool has blocks, also before anything is loaded", async () => {
    node.blockPools.add("db6");
    const request = ask("a", { annotations: {}, pools: ["db", "db6"] });
    for (const isSynced of [true, false]) {
      node.view.isSynced = isSynced;
      assert.equal(await found(request), "unclaimed");
    }
    assert.equal(await found({ ...request, annotations: admitted }), NOT_LOADED);
  });

  it("is not another interface's for what the sandbox of an earlier pod has, where the runtime says no UID", async () => {
    const nameless = { namespace: "shop", name: "a", uid: "" };
    await node.assign("a", "10.20.0.70", "uid-2");
    const bound = await node.world.realStore.get("claim", "shop/a");
    const since = bound?.record.binding?.since ?? assert.fail();
    const former = noticeOf("a", "box-old");
    const attachment = { ...former.attachment, interface: "net1" };
    const told = { ...former, pod: nameless, attachment };
    const eth0 = { network: "net", containerID: "box-new", interface: "eth0" };
    await node.claims.attached({ ...told, attachedAt: since - 60_000 });
    assert.match(await node.said(ask("a", { pod: nameless, attachment: eth0 })), /^10\.20\.0\.70 /);
    node.claims = node.another();
    await node.claims.attached({ ...told, attachedAt: since + 60_000 });
    assert.equal(await node.said(ask("a", { pod: nameless, attachment: eth0 })), "unclaimed");
  });

  it("is found for a runtime that says no UID by the pod that is seen, unless its annotations differ", async () => {
    await node.assign("a", "10.20.0.70");
    const nameless = { namespace: "shop", name: "a", uid: "" };
    assert.equal(await found(ask("a", { pod: nameless })), "found shop/a");
    assert.equal(await found(ask("a", { pod: nameless, annotations: admitted })), SUCCEEDED);
    node.forget("a");
    assert.equal(await found(ask("a", { pod: nameless })), UNKNOWN);
  });

  it("is waited for while the pod is not seen, and then left to the API server", async () => {
    await node.assign("a", "10.20.0.70");
    node.forget("a");
    assert.equal(await found(), "found shop/a");
    assert.ok(node.world.clock.monotonic() >= 5_000);
  });

  it("of several is the one that its annotations name", async () => {
    await node.assign("a", "10.20.0.70");
    await node.pin("b", "10.20.0.71");
    const seen = await node.world.realStore.get("claim", "shop/b");
    const { binding } = node.view.claim("shop/a")?.record ?? {};
    assert.ok(seen && binding);
    const record = { ...seen.record, binding: { ...binding, token: "t" } };
    await node.world.realStore.replace("claim", seen, record);
    await node.hear("b");
    assert.equal(await found(), "found shop/a");
    const named = { "berth.dev/claim": "b", "berth.dev/token": "t" };
    assert.equal(await found(ask("a", { annotations: named })), "found shop/b");
  });
});

describe("a pod without a claim", () => {
  setUp();

  for (const { what, annotations, over = {}, is } of [
    { what: "asks for nothing", annotations: { team: "data" }, is: "unclaimed" },
    { what: "was given a claim at admission", annotations: admitted, is: NOT_BOUND },
    { what: "asks and was given none", annotations: { "berth.dev/sticky": "true" }, is: MISSING },
    {
      what: "asks in another system's annotations alone, and may have been left to it",
      annotations: { "cni.projectcalico.org/ipAddrs": '["10.244.0.5"]' },
      is: "CLAIM_MISSING: pod shop/a asks in another system's annotations for what no pool of Berth has, or did not pass the Berth webhook; write berth.dev/ips or berth.dev/pools, and create it again",
    },
    {
      what: "asks for what cannot be read",
      annotations: { "berth.dev/ips": "10.20.0" },
      is: /^REQUEST_INVALID: annotation berth.dev\/ips/,
    },
    {
      what: "asks for nothing in a network of pools",
      annotations: {},
      over: { pools: ["db", "db6"] },
      is: "CLAIM_MISSING: pod shop/a asked for no address, and its network takes them from pools (db, db6), which have no blockSize and serve pods that ask: annotate the pod, or its namespace with the label berth.dev/admission=enabled, with berth.dev/pools: db,db6 and create the pod again; or have a pool with blockSize (32 and 128: one address at a time), which serves pods that ask for nothing; a pool gets it when it is made",
    },
  ] as const) {
    it(`that ${what}`, async () => {
      node.see(podOf("a", { annotations }));
      const got = await found(ask("a", over));
      if (typeof is === "string") assert.equal(got, is);
      else assert.match(got, is);
      node.forget("a");
      assert.equal(await found(ask("a", { ...over, annotations })), got, "by the runtime's word");
    });
  }

  it("that asks for nothing in a network of pools is told which of them is not there, once all are known", async () => {
    node.see(podOf("a", { annotations: {} }));
    const request = ask("a", { pools: ["db", "gone"] });
    assert.match(await found(request), /^CLAIM_MISSING: .*pools \(db, gone\)/);
    node.allPools = node.world.cache.pools();
    assert.equal(await found(request), 'POOL_UNKNOWN: there is no pool "gone"; name one of "db"');
    assert.match(await found(ask("a", { pools: ["db"] })), /^CLAIM_MISSING/);
  });

  it("that nobody has heard of", async () => {
    assert.equal(await found(), UNKNOWN);
  });

  it("of kube-system is none of Berth's business, and never waits", async () => {
    node.view.isSynced = false;
    const pod = { namespace: "kube-system", name: "dns", uid: "u" };
    assert.equal(await found(ask("dns", { pod, pools: ["db"], annotations: admitted })), "unclaimed");
    assert.equal(node.world.clock.monotonic(), 0);
  });

  it("that kubelet made of a file has another UID than its object", async () => {
    node.see(podOf("a", { uid: "of-the-mirror", annotations: { "kubernetes.io/config.mirror": "x" } }));
    assert.equal(await found(), "unclaimed");
  });

  it("is not judged before the claims are loaded, unless the runtime says that it asks for nothing", async () => {
    node.view.isSynced = false;
    for (const annotations of [undefined, admitted, { "berth.dev/sticky": "true" }, { "berth.dev/ips": "?" }])
      assert.equal(await found(ask("a", { annotations })), NOT_LOADED);
    assert.equal(await found(ask("a", { annotations: {}, pools: ["db"] })), NOT_LOADED);
    assert.equal(await found(ask("a", { annotations: {} })), "unclaimed");
  });
});

describe("an ADD that waits", () => {
  setUp();

  it("goes on when its claim comes, and takes no longer than it must", async () => {
    const clock = new ManualClock();
    const claims = new NodeClaims({
      ...{ node: NODE, view: node.view, clock },
      reports: node.reportsBy(clock),
      livePod: async () => undefined,
      checkAfter: () => {},
      log: node.world.context.log,
    });
    node.view.isSynced = false;
    const finding = claims.find(ask("a"), NEVER);
    const waits = async () => {
      for (let i = 0; i < 20 && node.view.waiting === 0; i++) await turn();
      assert.equal(node.view.waiting, 1);
    };
    await waits();
    clock.advance(4_999);
    node.view.isSynced = true;
    node.view.wake();
    await waits();
    clock.advance(4_999); // the time of loading does not count
    await waits();
    node.see(podOf("a", { annotations: admitted }));
    await waits();
    await node.assign("a", "10.20.0.70");
    assert.deepEqual(await finding, { kind: "found", claim: "shop/a", token: "" });
    const second = claims.find(ask("b"), NEVER);
    await waits();
    clock.advance(4_999);
    await turn();
    assert.equal(node.view.waiting, 1);
    clock.advance(1);
    await assert.rejects(second, /pod shop\/b is not known/);
  });
});
