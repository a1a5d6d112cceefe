// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { BindingEvidence } from "../../../allocator/lifecycle/bind.ts";
import { ASSIGNED_ADDRESSES, ASSIGNED_CLAIM } from "../../../allocator/manifest/annotations.ts";
import type { Claim } from "../../../allocator/model/claim.ts";
import {
  attachmentOf,
  bindingTo,
  claimRecord,
  DB_POOL,
  NOW,
  viewOf,
} from "../../../test/support/fixtures.ts";
import type { ObservedPod } from "../../cluster-state/observed-objects.ts";
import { decideBinding, RESOLVE_TOKEN_AFTER_MS } from "./bind-decision.ts";
import { asking, held, hold, inventory, look, NONE, POD, TOKENED } from "./testing/decided-pods.ts";

/** The outcome in a word or two. */
async function outcome(pod: ObservedPod, claims: readonly Claim[], facts = NONE, now = NOW): Promise<string> {
  const seen = await look(pod, claims, { facts, now });
  if (seen.kind === "waits") return `waits: ${seen.refusal.code}`;
  return seen.kind === "early" ? `early: ${seen.afterMs}` : seen.kind;
}

describe("lookAt", () => {
  const own = claimRecord();
  const asksNothing = { ...POD, annotations: {} };
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
    ["due", "running, and not bound: it was when the binder could not", { ...POD, up: true }, [own]],

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
