// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { BerthError } from "../../allocator/base/errors.ts";
import type { Claim } from "../../allocator/model/claim.ts";
import {
  addrs,
  attachmentOf,
  bindingTo,
  claimRecord,
  DB_POOL,
  reservationsOf,
} from "../../test/support/fixtures.ts";
import { pod, workload } from "../../test/support/objects.ts";
import { allOf } from "../backend/embedded-backend.ts";
import { withBackend } from "../backend/open-backend.ts";
import { Folder } from "../testing/folder.ts";
import { nodesOnce } from "./nodes-once.ts";
import { ownIn } from "./own-requests.ts";
import { surveyPods } from "./pod-survey.ts";
import { unneeded } from "./unneeded-claims.ts";

const ADDRESS = { addresses: addrs("10.20.0.70") };
const ENDED = {
  status: { phase: "Detached", attachment: attachmentOf("web-a", { detached: true }) },
} as const;
/** What was leaked once: of a Deployment's pod that asked by pool, without a slot. */
const LEAKED = claimRecord({
  ...ADDRESS,
  ...ENDED,
  name: "c-0123456789ab",
  identity: { kind: "Deployment", apiVersion: "apps/v1", name: "web" },
  binding: bindingTo("web-a", "node-a"),
});
const ORDINAL = claimRecord({ ...ADDRESS, name: "mysql-2", identity: ordinalOf(2) });
const RELEASING = { whenDeleted: "Release", whenScaled: "Release", ttlMs: null } as const;

function ordinalOf(ordinal: number): Claim["identity"] {
  return { kind: "StatefulSet", apiVersion: "apps/v1", name: "mysql", ordinal };
}

/** The pod as it is kept, with its phase. */
function podObject(name: string, phase: string, uid = `uid-of-${name}`): unknown {
  return { ...pod(name, { uid }), status: { phase } };
}

/** What `check` says of the claim alone, when it has stood for a while. */
async function checked(
  t: TestContext,
  claim: Claim,
  objects: readonly unknown[] = [],
  ageMs = 200_000,
): Promise<string> {
  const data = await Folder.of(t, {
    ...{ pools: [DB_POOL], claims: [claim], reservations: reservationsOf(claim), objects },
  });
  data.clock.advance(ageMs);
  const { code, stdout, stderr } = await data.call("check");
  assert.deepEqual([code, stderr], [0, ""]);
  return stdout;
}

const SOUND = "ok: 1 pool, 1 claim, 1 reservation, 0 attachments\n";
const web = workload("Deployment", "web", { replicas: 2 });

describe("berthctl check of who needs a claim", () => {
  it("finds an anonymous claim of a living Deployment whose pod is gone, with what to do", async (t) => {
    assert.equal(
      await checked(t, LEAKED, [web]),
      "pending   unneeded   claim shop/c-0123456789ab (Deployment web) holds 10.20.0.70, which nobody needs: pod web-a is gone or has ended; Berth lets it go within 60 s; if it does not, look at the log of its webhook, or: berthctl release shop/c-0123456789ab\n" +
        "ok, but 1 claim is needed by nobody: 1 pool, 1 claim, 1 reservation, 0 attachments\n",
    );
  });

  it("finds one whose pod has ended, or has another UID", async (t) => {
    assert.match(await checked(t, LEAKED, [web, podObject("web-a", "Failed")]), /^pending +unneeded /);
    assert.match(
      await checked(t, LEAKED, [web, podObject("web-a", "Running", "other")]),
      /^pending +unneeded /,
    );
    assert.equal(await checked(t, LEAKED, [web, podObject("web-a", "Running")]), SOUND);
  });

  it("says nothing where the next pod of the name was admitted with the claim, and is not scheduled yet", async (t) => {
    const named = { ...LEAKED, name: "web-a", identity: { kind: "Pod", apiVersion: "v1", name: "web-a" } };
    const next = (claim: string) => ({
      ...pod("web-a", { uid: "next", annotations: { "berth.dev/claim": claim } }),
      status: { phase: "Pending" },
    });
    assert.equal(await checked(t, named, [next("web-a")]), SOUND);
    assert.match(await checked(t, named, [next("c-another")]), /^pending +unneeded /);
  });

  it("finds the claim of a pod's name that the pod does without, having another", async (t) => {
    const { binding: _, ...rest } = LEAKED;
    const named = { ...rest, name: "web-a", identity: { kind: "Pod", apiVersion: "v1", name: "web-a" } };
    const having = (claim: string) => ({
      ...pod("web-a", { uid: "uid-of-web-a", annotations: { "berth.dev/claim": claim } }),
      status: { phase: "Running" },
    });
    assert.match(await checked(t, named, [having("c-0123456789ab")]), /^pending +unneeded /);
    assert.equal(await checked(t, named, [having("web-a")]), SOUND);
  });

  it("finds an ordinal that is scaled away or whose set has another size, unless it is to be retained", async (t) => {
    const set = workload("StatefulSet", "mysql", { replicas: 2 });
    const released = { ...ORDINAL, retention: RELEASING };
    assert.match(
      await checked(t, released, [set]),
      /^pending +unneeded .* no pod of it is there; Berth lets it go/,
    );
    assert.equal(await checked(t, ORDINAL, [set]), SOUND, "whenScaled: Retain");
    assert.equal(await checked(t, released, [workload("StatefulSet", "mysql", { replicas: 3 })]), SOUND);
  });

  it("says who has to speak where a sandbox may be alive", async (t) => {
    const { status: _, ...rest } = LEAKED;
    const attached = { phase: "Attached", attachment: attachmentOf("web-a") } as const;
    assert.match(
      await checked(t, { ...rest, status: attached }, [web]),
      /: pod web-a is gone or has ended; node node-a has not said that the sandbox is gone; see: berthctl explain claim\/shop\/c-0123456789ab\n/,
    );
  });

  it("says nothing of what is held, made by hand, retained, or of an owner that it does not know", async (t) => {
    assert.equal(await checked(t, LEAKED, [web], 60_000), SOUND);
    assert.equal(await checked(t, { ...LEAKED, handMade: true }, [web]), SOUND);
    const retained = { since: 0, because: "deleted" } as const;
    assert.equal(await checked(t, { ...LEAKED, retained }, [web]), SOUND);
    assert.equal(await checked(t, ORDINAL), SOUND);
    assert.match(
      await checked(t, { ...ORDINAL, retention: RELEASING }),
      /^pending +unneeded +claim shop\/mysql-2 /,
    );
  });

  it("finds an ordinal whose next pod was given none, because the template does not ask any more", async (t) => {
    const had = { ...ORDINAL, ...ENDED, retention: RELEASING, binding: bindingTo("mysql-2", "node-a") };
    const next = podObject("mysql-2", "Running", "next");
    const set = (annotations: Readonly<Record<string, string>>) =>
      workload("StatefulSet", "mysql", { replicas: 1, annotations, spec: { ordinals: { start: 2 } } });
    assert.match(await checked(t, had, [set({}), next]), /^pending +unneeded +claim shop\/mysql-2 /);
    assert.equal(await checked(t, had, [set({ "berth.dev/pools": "db" }), next]), SOUND);
    assert.equal(await checked(t, had, [set({})]), SOUND, "no pod came without it yet");
  });
});

/** Subjects of what is found in a cluster whose chart has these dialects. */
async function unneededIn(t: TestContext, dialects: string, objects: readonly unknown[]) {
  const webhook = {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { namespace: "berth-system", name: "berth-webhook" },
    spec: { template: { spec: { containers: [{ env: [{ name: "BERTH_DIALECTS", value: dialects }] }] } } },
  };
  const identity = { kind: "Deployment", apiVersion: "apps/v1", name: "web", slot: 0 };
  const slot = claimRecord({ ...ADDRESS, ...ENDED, name: "web-slot-0", identity, retention: RELEASING });
  const data = await Folder.of(t, {
    ...{ pools: [DB_POOL], claims: [slot], reservations: reservationsOf(slot) },
    objects: [webhook, ...objects],
  });
  data.clock.advance(200_000);
  return await withBackend(data.context(), "read", async (backend) => {
    const { pods = [] } = (await surveyPods(backend.world)) ?? {};
    const claims = await backend.claims();
    const cluster = { ...backend, place: "cluster" } as const;
    const { most: own } = await ownIn(await allOf(backend.store, "pool"), cluster);
    const { findings } = await unneeded({ own, claims, pods, now: data.clock.now() }, cluster);
    return findings.map(({ subject }) => subject);
  });
}

describe("berthctl check of an entry of a list", () => {
  const asking = (ipAddrs: string) =>
    workload("Deployment", "web", {
      replicas: 1,
      annotations: { "cni.projectcalico.org/ipAddrs": `["${ipAddrs}"]` },
    });

  it("finds one that its template has given up, by asking another system", async (t) => {
    assert.deepEqual(await unneededIn(t, "calico=own", [asking("192.168.5.5")]), ["shop/web-slot-0"]);
    assert.deepEqual(await unneededIn(t, "calico=none", [asking("10.20.0.70")]), ["shop/web-slot-0"]);
  });

  it("finds none for which a pod waits that asks, which no review saw", async (t) => {
    const had = claimRecord({
      ...{ ...ADDRESS, name: "mysql-0", identity: ordinalOf(0), retention: RELEASING },
      binding: bindingTo("mysql-0", "node-a", { podUID: "u1" }),
      status: { attachment: attachmentOf("mysql-0", { podUID: "u1", detached: true }) },
    });
    const next = pod("mysql-0", { uid: "u2", annotations: { "berth.dev/sticky": "true" } });
    assert.match(
      await checked(t, had, [pod("mysql-0", { uid: "u2" })]),
      /^pending +unneeded +claim shop\/mysql-0 /,
    );
    assert.equal(await checked(t, had, [next]), SOUND);
  });

  it("finds none that Berth answers", async (t) => {
    assert.deepEqual(await unneededIn(t, "calico=own", [asking("10.20.0.70")]), []);
    assert.deepEqual(await unneededIn(t, "calico=all", [asking("192.168.5.5")]), []);
  });

  it("finds the others where this user may not read namespaces, and says that it is not all", async (t) => {
    const identity = { kind: "Deployment", apiVersion: "apps/v1", name: "web", slot: 0 };
    const slot = claimRecord({
      ...{ ...ENDED, name: "web-slot-0", nonce: "n2", identity, retention: RELEASING },
      addresses: addrs("10.20.0.71"),
    });
    const claims = [LEAKED, slot];
    const data = await Folder.of(t, {
      ...{ pools: [DB_POOL], claims, reservations: claims.flatMap((one) => reservationsOf(one)) },
      objects: [workload("Deployment", "web", { annotations: { "berth.dev/ips": "10.20.0.71" } })],
    });
    data.clock.advance(200_000);
    const seen = await withBackend(data.context(), "read", async (backend) => {
      const refuse = () => Promise.reject(new BerthError("STORE_READ_ONLY", "may not read namespaces"));
      const world = { ...nodesOnce(backend.world), namespace: refuse };
      const { most: own } = await ownIn([], backend);
      const records = { own, claims: await backend.claims(), pods: [], now: data.clock.now() };
      return await unneeded(records, { ...backend, world, place: "cluster" });
    });
    assert.deepEqual(
      [seen.findings.map(({ subject }) => subject), seen.isPart],
      [["shop/c-0123456789ab"], true],
    );
  });
});
