// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import type { Claim } from "../../allocator/model/claim.ts";
import { addrs, bindingTo, claimRecord, DB_POOL, reservationsOf } from "../../test/support/fixtures.ts";
import { type Json, ownedBy, pod } from "../../test/support/objects.ts";
import type { Backend } from "../backend/backend.ts";
import { withBackend } from "../backend/open-backend.ts";
import { Folder } from "../testing/folder.ts";
import { checkBackend } from "./consistency-check.ts";
import { factsOfPod } from "./pod-facts.ts";
import { explainPod } from "./render.ts";

const claim = claimRecord({
  name: "web",
  identity: { kind: "Pod", apiVersion: "v1", name: "web" },
  addresses: addrs("10.20.0.70"),
  request: { addresses: addrs("10.20.0.70") },
});
const CHANGED =
  "pod shop/web asks for 10.20.0.99 and was given 10.20.0.70 at its admission: its request was changed after berth was asked; write the request into the pod itself";
const WEBHOOKS =
  "another mutating webhook changes it after Berth's review; see which there are: kubectl get mutatingwebhookconfigurations";

/** The pod as it was let in: it was assigned the claim, and asks for this. */
function asking(annotations: Readonly<Record<string, string>>, over: Parameters<typeof pod>[1] = {}): Json {
  const assigned = { "berth.dev/claim": "web", "berth.dev/addresses": "10.20.0.70" };
  return pod("web", { uid: "u1", ...over, annotations: { ...assigned, ...annotations } });
}

/** What `check` finds of it, and what `explain` says of it. */
async function saidOf(t: TestContext, object: Json, kept: Claim = claim): Promise<[string, string]> {
  const contents = {
    pools: [DB_POOL],
    claims: [kept],
    reservations: reservationsOf(kept),
    objects: [object],
  };
  const data = await Folder.of(t, contents);
  return await withBackend(data.context(), "read", async (embedded) => {
    const backend: Backend = { ...embedded, place: "cluster" };
    const { findings } = await checkBackend(backend, data.clock);
    const found = findings.filter(({ kind }) => kind === "changed-request");
    const facts = await factsOfPod(backend, { namespace: "shop", name: "web" }, data.clock.now());
    const text = facts?.pod === undefined ? "" : explainPod(facts.pod, facts).text;
    return [found.map(({ message }) => message).join(), text];
  });
}

describe("a pod whose request was changed after its review", () => {
  it("is told so by check and explain, with what to do", async (t) => {
    const [found, text] = await saidOf(t, asking({ "berth.dev/ips": "10.20.0.99" }));
    assert.equal(
      found,
      `${CHANGED}; it waits; ${WEBHOOKS}; let that leave it alone, and write what is to hold into the pod itself; then delete the pod, and create it again with that: kubectl delete pod web -n shop`,
    );
    assert.ok(text.startsWith(`pod/shop/web waits: ${CHANGED}\n`), text);
    assert.ok(text.includes(`\n-> ${WEBHOOKS}\n-> let that leave it alone`), text);
  });

  it("is told where its owner has the request", async (t) => {
    const owner = ownedBy("StatefulSet", "web");
    const kept = {
      ...claim,
      name: "web",
      identity: { kind: "StatefulSet", apiVersion: "apps/v1", name: "we", ordinal: 0 },
    };
    const [found] = await saidOf(t, asking({ "berth.dev/ips": "10.20.0.99" }, { owner }), kept);
    assert.match(
      found,
      /into the template of its workload; then delete the pod, so that StatefulSet web makes it again: /,
    );
  });

  it("is not told to be deleted where it is already", async (t) => {
    const waits = asking({ "berth.dev/ips": "10.20.0.99" });
    const going = { ...(waits["metadata"] as Json), deletionTimestamp: "2026-01-01T00:00:00Z" };
    const [found, text] = await saidOf(t, { ...waits, metadata: going });
    assert.equal(found, "");
    assert.match(
      text,
      /^pod\/shop\/web is being deleted, and Berth does not bind it to its claim any more\n/,
    );
    assert.doesNotMatch(text, /kubectl delete|within seconds/);
  });

  it("is told so where it is up with an address from elsewhere, with which the binder does not take it for the claim's", async (t) => {
    const status = { phase: "Running", podIPs: [{ ip: "10.99.0.1" }] };
    const [found, text] = await saidOf(t, { ...asking({ "berth.dev/ips": "10.20.0.99" }), status });
    assert.ok(found.startsWith(`${CHANGED}; it waits; `), found);
    assert.ok(text.startsWith(`pod/shop/web waits: ${CHANGED}\n`), text);
  });

  for (const [what, object, kept] of [
    ["asks for what it was assigned", asking({ "berth.dev/ips": "10.20.0.70" }), claim],
    ["may have any", asking({ "berth.dev/ips": "10.20.0.99", "berth.dev/fallback": "any" }), claim],
    ["asks for any of a pool", asking({ "berth.dev/pools": "db" }), claim],
    [
      "is up with what it was assigned",
      {
        ...asking({ "berth.dev/ips": "10.20.0.99" }),
        status: { phase: "Running", podIPs: [{ ip: "10.20.0.70" }] },
      },
      claim,
    ],
    [
      "is up with that by its addresses, which is what the binder goes by, while its sandbox is made again",
      {
        ...asking({ "berth.dev/ips": "10.20.0.99" }),
        status: {
          phase: "Running",
          podIPs: [{ ip: "10.20.0.70" }],
          conditions: [{ type: "PodReadyToStartContainers", status: "False" }],
        },
      },
      claim,
    ],
    [
      "has its claim already",
      asking({ "berth.dev/ips": "10.20.0.99" }),
      { ...claim, binding: bindingTo("web", "node-a", { podUID: "u1" }) },
    ],
  ] as const) {
    it(`is none that ${what}`, async (t) => {
      const [found, text] = await saidOf(t, object, kept);
      assert.deepEqual([found, text.includes("its request was changed")], ["", false], text);
    });
  }
});
