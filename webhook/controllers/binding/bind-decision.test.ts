// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Address } from "../../../allocator/ip/address.ts";
import type { BindingEvidence } from "../../../allocator/lifecycle/bind.ts";
import {
  ASSIGNED_ADDRESSES,
  ASSIGNED_CLAIM,
  ASSIGNED_TOKEN,
} from "../../../allocator/manifest/annotations.ts";
import type { Claim } from "../../../allocator/model/claim.ts";
import type { WorkloadRef, WorkloadState } from "../../../allocator/model/cluster-state.ts";
import { type Dialects, OWN_OF_EACH } from "../../../allocator/model/dialect.ts";
import {
  attachmentOf,
  bindingTo,
  claimRecord,
  DB_POOL,
  NOW,
  poolRecord,
  viewOf,
} from "../../../test/support/fixtures.ts";
import type { ObservedPod } from "../../cluster-state/observed-objects.ts";
import { type BindDecision, decideBinding, RESOLVE_TOKEN_AFTER_MS } from "./bind-decision.ts";

const WEB_POOL = poolRecord("web", "10.30.0.0/24");
const NONE: BindingEvidence = { fenced: false, holdExpired: false };
const POD: ObservedPod = {
  ...{ namespace: "shop", name: "mysql-0", uid: "u1", node: "x" },
  ...{
    labels: {},
    annotations: { "berth.dev/sticky": "true" },
    phase: "Pending",
    up: false,
    deleting: false,
    exempt: false,
    ended: false,
  },
};
const TOKENED: ObservedPod = {
  ...POD,
  name: "web-5d9c7b-abcde",
  annotations: { [ASSIGNED_CLAIM]: "c-1", [ASSIGNED_TOKEN]: "t1", [ASSIGNED_ADDRESSES]: "10.20.0.70" },
};
const hold = (since: number) => bindingTo("", "", { token: "t1", podUID: "", since });
const held = claimRecord({ name: "c-1", binding: hold(NOW) });

/** Its ordinals begin at 3. */
const LATE: WorkloadState = {
  ...{ apiVersion: "apps/v1", kind: "StatefulSet", namespace: "shop", name: "late", uid: "s2" },
  ...{ replicas: 3, start: 3, annotations: {}, hostNetwork: false },
};
const inventory = { workload: async ({ name }: WorkloadRef) => (name === "late" ? LATE : undefined) };

interface Circumstances {
  readonly facts?: BindingEvidence;
  readonly now?: number;
  readonly dialects?: Dialects;
}

async function look(
  pod: ObservedPod,
  claims: readonly Claim[],
  { facts = NONE, now = NOW, dialects = OWN_OF_EACH }: Circumstances = {},
): Promise<BindDecision> {
  const view = viewOf({ claims, pools: [DB_POOL, WEB_POOL] });
  return await decideBinding(pod, {
    view,
    dialects,
    inventory,
    cachedEvidence: async () => facts,
    now,
  });
}

/** The outcome in a word or two. */
async function outcome(pod: ObservedPod, claims: readonly Claim[], facts = NONE, now = NOW): Promise<string> {
  const seen = await look(pod, claims, { facts, now });
  if (seen.kind === "waits") return `waits: ${seen.refusal.code}`;
  return seen.kind === "early" ? `early: ${seen.afterMs}` : seen.kind;
}

describe("lookAt", () => {
  const own = claimRecord();
  const asksNothing = { ...POD, annotations: {} };
  const asking = (ipAddrs: string) => ({
    ...POD,
    annotations: { "cni.projectcalico.org/ipAddrs": ipAddrs },
  });
  const forged = claimRecord({ identity: { kind: "Pod", apiVersion: "v1", name: "mysql-0" } });
  const used = { ...forged.status, attachment: attachmentOf("mysql-0", { detached: true }) };
  const elsewhere = claimRecord({ binding: bindingTo("mysql-0", "y") });
  const rows: readonly (readonly [
    string,
    string,
    ObservedPod,
    readonly Claim[],
    BindingEvidence?,
    number?,
  ])[] = [
    ["due", "scheduled, its claim free", POD, [own]],
    [
      "settled",
      "scheduled, bound already",
      POD,
      [claimRecord({ binding: bindingTo("mysql-0", "x", { podUID: "u1" }) })],
    ],
    [
      "due",
      "its predecessor was on the same node",
      POD,
      [claimRecord({ binding: bindingTo("mysql-0", "x") })],
    ],
    ["waits: CLAIM_BUSY", "its predecessor was on another node", POD, [elsewhere]],
    ["due", "that node may be fenced", POD, [elsewhere], { ...NONE, fenced: true }],
    ["waits: CLAIM_RELEASING", "its claim is given back", POD, [claimRecord({ releasing: true })]],
    [
      "waits: CLAIM_MISSING",
      "its claim was made by hand and is not reserved",
      POD,
      [claimRecord({ nonce: "", addresses: [] })],
    ],
    ["settled", "it never asked for anything", POD, []],
    [
      "settled",
      "its name has a slot of a set",
      POD,
      [claimRecord({ identity: { ...own.identity, slot: 0 } })],
    ],
    ["settled", "not scheduled, its claim kept for its name", { ...POD, node: "" }, [own]],
    ["settled", "exempt", { ...POD, exempt: true }, [own]],
    ["settled", "being deleted", { ...POD, deleting: true }, [own]],
    ["settled", "it asks for nothing and was given none", { ...POD, annotations: {} }, [own]],
    ["settled", "it asks another system and was given none", asking('["172.31.9.9"]'), [own]],
    ["due", "it asks for an address of a pool in another system's words", asking('["10.20.0.70"]'), [own]],
    [
      "settled",
      "it asks for nothing, and a review alone has made the claim of its name",
      asksNothing,
      [forged],
    ],
    [
      "due",
      "it asks for nothing, and somebody made the claim of its name",
      asksNothing,
      [{ ...forged, handMade: true }],
    ],
    [
      "due",
      "it asks for nothing, and a pod of its name had the claim before",
      asksNothing,
      [{ ...forged, status: used }],
    ],
    ["settled", "succeeded", { ...POD, ended: true }, [own]],
    ["settled", "failed, without a claim", { ...POD, ended: true }, []],
    ["due", "running, and not bound: it was when the binder could not", { ...POD, phase: "Running" }, [own]],

    ["due", "by token, scheduled", TOKENED, [held]],
    ["waits: CLAIM_MISSING", "by token, the claim not there", TOKENED, []],
    [
      "waits: CLAIM_MISSING",
      "by token, held for another by now",
      TOKENED,
      [claimRecord({ name: "c-1", binding: { ...hold(NOW), token: "t2" } })],
    ],
    [
      "waits: CLAIM_CHANGED",
      "by token, admitted with another address",
      { ...TOKENED, annotations: { ...TOKENED.annotations, [ASSIGNED_ADDRESSES]: "10.20.0.71" } },
      [held],
    ],
    ["early: 10000", "by token, not scheduled, just admitted", { ...TOKENED, node: "" }, [held]],
    [
      "early: 1",
      "by token, not scheduled, a while ago",
      { ...TOKENED, node: "" },
      [held],
      NONE,
      NOW + RESOLVE_TOKEN_AFTER_MS - 1,
    ],
    [
      "due",
      "by token, not scheduled, for longer",
      { ...TOKENED, node: "" },
      [held],
      NONE,
      NOW + RESOLVE_TOKEN_AFTER_MS,
    ],
    [
      "early: 10000",
      "by token, not scheduled, held by a clock that is ahead",
      { ...TOKENED, node: "" },
      [held],
      NONE,
      NOW - 60_000,
    ],
    [
      "settled",
      "by token, not scheduled, met already",
      { ...TOKENED, node: "" },
      [claimRecord({ name: "c-1", binding: bindingTo(TOKENED.name, "", { token: "t1", podUID: "u1" }) })],
    ],
  ];
  const plain: ObservedPod = { ...POD, annotations: {} };
  const byHand = claimRecord({
    handMade: true,
    identity: { kind: "Pod", apiVersion: "v1", name: "mysql-0" },
  });
  for (const [expected, title, pod, claims] of [
    ["due", "asks for nothing and is not up yet: a claim made by hand", plain, [byHand]],
    [
      "settled",
      "is up with an address from elsewhere: a claim made by hand",
      { ...plain, up: true },
      [byHand],
    ],
    [
      "settled",
      "is up with it: a claim made by hand",
      { ...plain, up: true },
      [{ ...byHand, binding: bindingTo("mysql-0", "x", { podUID: "u1" }) }],
    ],
    ["due", "is up and asks: a claim made by hand", { ...POD, up: true }, [byHand]],
    [
      "due",
      "is up and was given it: a claim made by hand",
      { ...plain, up: true, annotations: { [ASSIGNED_CLAIM]: "mysql-0" } },
      [byHand],
    ],
  ] as const) {
    it(`a pod that ${title}: ${expected}`, async () => assert.equal(await outcome(pod, claims), expected));
  }

  for (const [expected, title, pod, claims, facts, now] of rows) {
    it(`${title}: ${expected}`, async () => assert.equal(await outcome(pod, claims, facts, now), expected));
  }

  it("binds on the nodes of an address's pool, and waits on any other, whose labels are known", async () => {
    const spec = { ...DB_POOL.spec, nodeSelector: { matchLabels: { zone: "a" } } };
    const on = async (labels: Record<string, string> | undefined, claim = claimRecord(), pod = POD) =>
      await decideBinding(pod, {
        view: viewOf({ claims: [claim], pools: [{ ...DB_POOL, spec }] }),
        inventory,
        nodeLabels: (node) => (node === "x" ? labels : undefined),
        cachedEvidence: async () => NONE,
        now: NOW,
      });
    assert.deepEqual([(await on({ zone: "a" })).kind, (await on(undefined)).kind], ["due", "due"]);
    const seen = await on({ zone: "b" });
    assert.ok(seen.kind === "waits");
    assert.deepEqual(
      [seen.claims, seen.refusal.code, seen.settles],
      [["shop/mysql-0"], "NODE_MISMATCH", false],
    );
    assert.equal(
      seen.refusal.message,
      `address ${claimRecord().addresses[0]}, which is kept for this pod, is of pool "db", for nodes with zone=a, and the pod is on node x, which is none of them: it was not reviewed by Berth, or labels were changed since; delete the pod so that it is created again, or label the node`,
    );
    const bound = claimRecord({ binding: bindingTo("mysql-0", "x", { podUID: "u1" }) });
    assert.equal((await on({ zone: "b" }, bound)).kind, "settled", "what it has it keeps");
    const upWith = async (addresses: string) =>
      (await on({ zone: "b" }, claimRecord(), { ...POD, up: true, addresses })).kind;
    assert.equal(await upWith("10.20.0.70"), "due", "it is up with it");
    assert.equal(await upWith("fd00::1,10.20.0.70"), "due", "beside another");
    assert.equal(await upWith("172.31.9.9"), "waits", "it is up with an address from elsewhere");
  });

  it("says who is to be bound with what, and by what it was seen", async () => {
    const seen = await look(TOKENED, [held]);
    assert.ok(seen.kind === "due");
    assert.equal(seen.claim.key, "shop/c-1");
    assert.deepEqual(seen.target, {
      ...{ name: TOKENED.name, uid: "u1", node: "x", token: "t1", assigned: ["10.20.0.70"] },
    });
  });

  const asks = (annotations: Record<string, string>, more: Partial<ObservedPod> = {}) => ({
    ...POD,
    annotations,
    ...more,
  });
  const ips = (list: string, more?: Partial<ObservedPod>) => asks({ "berth.dev/ips": list }, more);
  const owner = (name: string) => ({
    ...{ name, owner: { apiVersion: "apps/v1", kind: "StatefulSet", name: name.slice(0, -2), uid: "s2" } },
  });
  const onNet1 = claimRecord({ interfaces: { net1: ["10.20.0.70" as Address] } });
  const unreviewed: readonly (readonly [string, string, ObservedPod, Claim?, Dialects?])[] = [
    ["due", "for the address that the claim has", ips("10.20.0.70")],
    ["waits: CLAIM_CHANGED", "for another", ips("10.20.0.99")],
    ["waits: CLAIM_CHANGED", "for another, and has no node", ips("10.20.0.99", { node: "" })],
    ["waits: REQUEST_INVALID", "for what nobody can read, and has no node", ips("10.20.0.7O", { node: "" })],
    ["settled", "for the address that the claim has, and has no node", ips("10.20.0.70", { node: "" })],
    ["waits: CLAIM_CHANGED", "for one more", ips("10.20.0.70,fd00::7")],
    ["waits: CLAIM_CHANGED", "for another in another system's words", asking('["10.20.0.99"]')],
    ["settled", "another system for another of its own", asking('["172.31.9.9"]')],
    [
      "waits: CLAIM_CHANGED",
      "for any address, where all words are Berth's",
      asking('["172.31.9.9"]'),
      own,
      {},
    ],
    ["waits: REQUEST_INVALID", "for what nobody can read", ips("10.20.0.7O")],
    ["due", "for the entry of its ordinal", ips("10.20.0.70; 10.20.0.71", owner("mysql-0"))],
    [
      "waits: CLAIM_CHANGED",
      "for a list whose entry of its ordinal is another",
      ips("10.20.0.70; 10.20.0.71", owner("mysql-1")),
    ],
    ["due", "for a list that begins with its ordinal", ips("10.20.0.70; 10.20.0.71", owner("late-3"))],
    ["waits: LIST_TOO_SHORT", "for a list that ends before it", ips("10.20.0.70", owner("late-4"))],
    ["due", "for another, or any", asks({ "berth.dev/ips": "10.20.0.99", "berth.dev/fallback": "any" })],
    [
      "due",
      "for another, and is up with that of the claim",
      ips("10.20.0.99", { up: true, addresses: "10.20.0.70" }),
    ],
    [
      "waits: CLAIM_CHANGED",
      "for another, and is up with that",
      ips("10.20.0.99", { up: true, addresses: "10.20.0.99" }),
    ],
    ["due", "for an address of the pool", asks({ "berth.dev/pools": "db" })],
    ["waits: CLAIM_CHANGED", "for an address of another pool", asks({ "berth.dev/pools": "web" })],
    ["due", "for the address, wherever", ips("10.20.0.70"), onNet1],
    ["due", "for the address on the interface", ips("10.20.0.70@net1"), onNet1],
    ["waits: CLAIM_CHANGED", "for the address on another interface", ips("10.20.0.70@eth0"), onNet1],
    ["due", "for the address on its first interface", ips("10.20.0.70@eth0")],
    ["waits: CLAIM_CHANGED", "for one on a further interface", asks({ "berth.dev/pools": "db@net1" })],
  ];
  for (const [expected, title, pod, claim = own, dialects] of unreviewed) {
    it(`a pod that no review has seen asks ${title}: ${expected}`, async () => {
      const seen = await look(pod, [{ ...claim, name: pod.name }], {
        ...(dialects && { dialects }),
      });
      assert.equal(seen.kind === "waits" ? `waits: ${seen.refusal.code}` : seen.kind, expected);
    });
  }

  it("says what to do where the claim of a pod's name is not what the pod asks for", async () => {
    const seen = await look(ips("10.20.0.99"), [own]);
    assert.ok(seen.kind === "waits");
    assert.deepEqual([seen.claims, seen.settles], [["shop/mysql-0"], false]);
    assert.equal(
      seen.refusal.message,
      "claim shop/mysql-0, which is kept for pods of this name, holds 10.20.0.70, and pod shop/mysql-0, which no review has seen, asks for 10.20.0.99; delete the pod and create it again, so that it is reviewed, or ask for what the claim holds",
    );
    const pinned = await look(ips("10.20.0.70"), [own]);
    assert.deepEqual(pinned.kind === "due" && pinned.target.assigned, ["10.20.0.70"], "and nothing else");
  });

  it("waits for every claim that may be its own", async () => {
    const seen = await look(TOKENED, []);
    assert.ok(seen.kind === "waits");
    assert.deepEqual(seen.claims, ["shop/c-1", `shop/${TOKENED.name}`]);
    assert.equal(
      seen.refusal.message,
      `claim shop/c-1, with which pod ${TOKENED.name} was admitted, is gone or kept for another pod by now; delete the pod and create it again`,
    );
    const named = await look({ ...POD, annotations: { [ASSIGNED_CLAIM]: "mysql-0" } }, []);
    assert.deepEqual(named.kind === "waits" && named.claims, ["shop/mysql-0"]);
  });
});
