// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { noopLogger } from "../../allocator/base/ports.ts";
import { RecordCache } from "../../allocator/cache/cache.ts";
import { OUT_OF_SERVICE } from "../../allocator/manifest/node-fence.ts";
import type { Claim } from "../../allocator/model/claim.ts";
import { type KubeItem, NODES, PODS, type Resource } from "../../kube/api/resource.ts";
import { eventLoopTurns } from "../../kube/testing/event-loop-turns.ts";
import { ScriptedConnection } from "../../kube/testing/scripted-connection.ts";
import { Reflector } from "../../kube/watch/reflector.ts";
import { ManualClock } from "../../system/testing/manual-clock.ts";
import { bindingTo, claimRecord, storedAs } from "../../test/support/fixtures.ts";
import { observedNode, observedPod } from "../cluster-state/projections.ts";
import { startGcTriggers } from "./gc-triggers.ts";

interface Event {
  readonly type: "ADDED" | "MODIFIED" | "DELETED";
  readonly object: object;
}

interface Script {
  readonly pods?: readonly Event[];
  /** What becomes of claims; undefined: mysql-0 is gone. */
  readonly claims?: readonly (Claim | undefined)[];
  readonly nodes?: readonly Event[];
}

let revisions = 0;

function event(type: Event["type"], name: string, more: Readonly<Record<string, unknown>> = {}): Event {
  revisions++;
  const { uid = `uid-of-${name}`, namespace = "shop", ...rest } = more;
  const of = namespace === "" ? {} : { namespace };
  return { type, object: { metadata: { name, uid, ...of, resourceVersion: String(revisions) }, ...rest } };
}

const SYNCED = {
  type: "BOOKMARK",
  object: { metadata: { resourceVersion: "0", annotations: { "k8s.io/initial-events-end": "true" } } },
};

const node = (type: Event["type"], name: string, spec = {}) => event(type, name, { namespace: "", spec });

/** Names of the claims that are suspected while the script is played, and then while the clock moves on. */
async function suspected(claims: readonly Claim[], script: Script, ...advances: readonly number[]) {
  const cache = new RecordCache(noopLogger);
  for (const claim of claims) cache.apply("claim", { type: "put", stored: storedAs("claim", claim) });
  const clock = new ManualClock();
  const stop = new AbortController();
  const random = { fraction: () => 0, token: () => "t" };
  const reflector = <P>(resource: Resource, events: readonly Event[], project: (item: KubeItem) => P) => {
    const connection = new ScriptedConnection({ lines: [SYNCED, ...events], after: "is silent" });
    return new Reflector<P>({ connection, resource, clock, random, log: noopLogger, project });
  };
  const informers = {
    pods: reflector(PODS, script.pods ?? [], observedPod),
    nodes: reflector(NODES, script.nodes ?? [], observedNode),
  };
  const found: string[] = [];
  const enqueueForGc = ({ name }: Claim) => void found.push(name);
  const triggers = startGcTriggers({ cache, watches: informers, clock, enqueueForGc });
  const ended = [informers.pods, informers.nodes].map((one) => one.run(stop.signal));
  for (const claim of script.claims ?? []) {
    if (claim === undefined) cache.apply("claim", { type: "gone", key: "shop/mysql-0" });
    else cache.apply("claim", { type: "put", stored: storedAs("claim", claim) });
  }
  await eventLoopTurns();
  const reported = [found.splice(0).join(" ")];
  for (const ms of advances) {
    clock.advance(ms);
    await eventLoopTurns();
    reported.push(found.splice(0).join(" "));
  }
  await triggers.close();
  stop.abort();
  await Promise.all(ended);
  assert.equal(clock.sleeping, 0);
  return reported;
}

const BOUND = claimRecord({ binding: bindingTo("mysql-0", "node-a") });

describe("what is queued for the garbage collector: the claims", () => {
  it("of a pod that is gone, or is another one", async () => {
    const claims = [BOUND, claimRecord({ name: "web-slot-0", binding: bindingTo("web-x", "node-a") })];
    assert.deepEqual(
      await suspected(claims, {
        pods: [event("ADDED", "mysql-0"), event("ADDED", "web-x"), event("DELETED", "web-x")],
      }),
      ["web-slot-0"],
    );
    const replaced = [event("ADDED", "mysql-0"), event("MODIFIED", "mysql-0", { uid: "other" })];
    assert.deepEqual(await suspected(claims, { pods: replaced }), ["mysql-0"]);
    const runs = [event("ADDED", "mysql-0"), event("MODIFIED", "mysql-0", { status: { phase: "Running" } })];
    assert.deepEqual(await suspected(claims, { pods: runs }), [""]);
  });

  it("that were deleted and are not gone yet, at each change of them", async () => {
    const doomed = { ...BOUND, deleting: true };
    const detached = { ...doomed, status: { message: "detached" } } as const;
    const changes = [BOUND, claimRecord({ name: "mysql-1" }), doomed, detached];
    assert.deepEqual(await suspected([BOUND], { claims: changes }), ["mysql-0 mysql-0"]);
    assert.deepEqual(await suspected([doomed], { claims: [undefined] }), [""]);
  });

  it("on a node that comes to be fenced", async () => {
    const claims = [BOUND, claimRecord({ name: "mysql-1", binding: bindingTo("mysql-1", "node-b") })];
    const taints = [{ key: OUT_OF_SERVICE, effect: "NoExecute" }];
    const nodes = [node("ADDED", "node-a"), node("ADDED", "node-b")];
    assert.deepEqual(await suspected(claims, { nodes }), [""]);
    const fenced = [...nodes, node("MODIFIED", "node-a", { taints })];
    assert.deepEqual(await suspected(claims, { nodes: fenced }), ["mysql-0"]);
    const still = [...fenced, node("MODIFIED", "node-a", { taints, unschedulable: true })];
    assert.deepEqual(await suspected(claims, { nodes: still }), ["mysql-0"]);
    assert.deepEqual(await suspected(claims, { nodes: [node("ADDED", "node-a", { taints })] }), ["mysql-0"]);
  });

  it("on a node that was deleted, when its grace is over and it did not come back", async () => {
    const gone = [node("ADDED", "node-a"), node("DELETED", "node-a")];
    assert.deepEqual(await suspected([BOUND], { nodes: gone }, 45_000, 500), ["", "", "mysql-0"]);
    const back = [...gone, node("ADDED", "node-a", { providerID: "again" })];
    assert.deepEqual(await suspected([BOUND], { nodes: back }, 45_500), ["", ""]);
  });
});
