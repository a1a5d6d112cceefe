// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { bindingTo, claimRecord, DB_POOL, reservationsOf } from "../../test/support/fixtures.ts";
import { ownedBy, pod } from "../../test/support/objects.ts";
import { withBackend } from "../backend/open-backend.ts";
import { Folder } from "../testing/folder.ts";
import { checkBackend } from "./consistency-check.ts";

const ASKS = { annotations: { "berth.dev/sticky": "true" } };
const claim = claimRecord({ name: "web", identity: { kind: "Pod", apiVersion: "v1", name: "web" } });

/** What is found of pods that nobody reviewed, in a cluster whose webhook has these dialects. */
async function unreviewedIn(
  t: TestContext,
  objects: readonly unknown[],
  claims: (typeof claim)[] = [],
  dialects = "calico=own",
): Promise<readonly string[]> {
  const webhook = {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { namespace: "berth-system", name: "berth-webhook" },
    spec: { template: { spec: { containers: [{ env: [{ name: "BERTH_DIALECTS", value: dialects }] }] } } },
  };
  const reservations = claims.flatMap((one) => reservationsOf(one));
  const contents = { pools: [DB_POOL], claims, reservations, objects: [webhook, ...objects] };
  const data = await Folder.of(t, contents);
  return await withBackend(data.context(), "read", async (backend) => {
    const { findings } = await checkBackend({ ...backend, place: "cluster" }, data.clock);
    return findings.filter(({ kind }) => kind === "unreviewed").map(({ message }) => message);
  });
}

const LABELS = { "app.kubernetes.io/name": "berth", "app.kubernetes.io/component": "webhook" };
const WHEN =
  "it was created while Berth's webhook did not answer (webhook.failurePolicy: Ignore), or before Berth was installed";

describe("berthctl check of pods that came in while nobody reviewed", () => {
  it("names those that ask themselves, with what, and says what to do", async (t) => {
    const objects = [
      pod("web", ASKS),
      pod("mysql-0", { annotations: { "berth.dev/pools": "db" }, owner: ownedBy("StatefulSet", "mysql") }),
      { ...pod("up", ASKS), status: { phase: "Running", podIPs: [{ ip: "172.31.9.9" }] } },
    ];
    assert.deepEqual((await unreviewedIn(t, objects)).toSorted(), [
      `pod shop/mysql-0 asks by berth.dev/pools, and no review has seen that: no address is kept for it, and it cannot start in a network of Berth's; ${WHEN}; delete it, so that StatefulSet mysql makes it again: kubectl delete pod mysql-0 -n shop`,
      `pod shop/up asks by berth.dev/sticky, and no review has seen that: it runs with 172.31.9.9, which is not kept for it; ${WHEN}; delete it and create it again: kubectl delete pod up -n shop`,
      `pod shop/web asks by berth.dev/sticky, and no review has seen that: no address is kept for it, and it cannot start in a network of Berth's; ${WHEN}; delete it and create it again: kubectl delete pod web -n shop`,
    ]);
  });

  it("says nothing of one that has the claim of its name, or gets it", async (t) => {
    const asking = pod("web", { ...ASKS, uid: "u2" });
    assert.deepEqual(await unreviewedIn(t, [asking], [claim]), []);
    const used = { ...claim, binding: bindingTo("web", "x", { podUID: "u1" }) };
    assert.deepEqual(await unreviewedIn(t, [asking], [used]), [], "its predecessor had it");
    const its = { ...claim, binding: bindingTo("web", "x", { podUID: "u2" }) };
    assert.deepEqual(await unreviewedIn(t, [asking], [its]), []);
    const slot = { ...claim, identity: { ...claim.identity, kind: "Deployment", slot: 0 } };
    assert.equal((await unreviewedIn(t, [asking], [slot])).length, 1, "a slot that is called like it");
  });

  it("says of one for whose name another address is kept than it asks for that it does not get it", async (t) => {
    const asking = pod("web", { annotations: { "berth.dev/ips": "10.20.0.99" }, uid: "u2" });
    assert.deepEqual(await unreviewedIn(t, [asking], [claim]), [
      `pod shop/web asks by berth.dev/ips, and no review has seen that: claim shop/web of its name holds 10.20.0.70, which is not what it asks for, and it cannot start in a network of Berth's; ${WHEN}; delete it and create it again: kubectl delete pod web -n shop`,
    ]);
    const its = { ...claim, binding: bindingTo("web", "x", { podUID: "u2" }) };
    assert.deepEqual(await unreviewedIn(t, [asking], [its]), [], "it has it already");
  });

  it("says nothing of pods that ask nothing, were told a claim, ended, are going, or have the host's network", async (t) => {
    const going = pod("going", ASKS);
    const metadata = { ...(going["metadata"] as object), deletionTimestamp: "2026-01-01T00:00:00Z" };
    const objects = [
      pod("plain"),
      pod("told", { annotations: { ...ASKS.annotations, "berth.dev/claim": "told" } }),
      { ...pod("done", ASKS), status: { phase: "Failed" } },
      { ...going, metadata },
      pod("host", { ...ASKS, spec: { hostNetwork: true } }),
    ];
    assert.deepEqual(await unreviewedIn(t, objects), []);
  });

  it("goes by what the webhook reads of other systems' words", async (t) => {
    const asking = (ip: string) =>
      pod("web", { annotations: { "cni.projectcalico.org/ipAddrs": `["${ip}"]` } });
    const count = async (ip: string, dialects: string) =>
      (await unreviewedIn(t, [asking(ip)], [], dialects)).length;
    assert.deepEqual(
      [await count("10.20.0.70", "calico=own"), await count("172.31.9.9", "calico=own")],
      [1, 0],
    );
    assert.deepEqual(
      [await count("172.31.9.9", "calico=all"), await count("10.20.0.70", "calico=none")],
      [1, 0],
    );
  });

  it("says of one that the API server sends no review of that its namespace or labels are left out", async (t) => {
    const rest = { key: "berth.dev/admission", operator: "NotIn", values: ["enabled"] };
    const fixed = { key: "berth.dev/ips", operator: "In", values: ["yes"] };
    const configured = (namespaces: object, pods: object, path = "/mutate/pods") => ({
      apiVersion: "admissionregistration.k8s.io/v1",
      kind: "MutatingWebhookConfiguration",
      metadata: { name: "berth", labels: LABELS },
      webhooks: [
        {
          ...{ name: "pods.berth.dev", clientConfig: { service: { path } } },
          ...{ namespaceSelector: namespaces, objectSelector: pods },
        },
      ],
    });
    const namespace = { apiVersion: "v1", kind: "Namespace", metadata: { name: "shop" } };
    const isLeftOut = async (...of: Parameters<typeof configured>) => {
      const [said = ""] = await unreviewedIn(t, [pod("web", ASKS), namespace, configured(...of)]);
      assert.match(said, /^pod shop\/web asks by berth\.dev\/sticky, and no review has seen that: /);
      assert.notEqual(said.includes("take the annotation away"), said.includes("kubectl delete"), said);
      return said.includes("webhook.namespaceSelector, webhook.objectSelector of the chart");
    };
    const named = (operator: string) => ({ key: "kubernetes.io/metadata.name", operator, values: ["shop"] });
    assert.equal(await isLeftOut({ matchExpressions: [rest, fixed] }, {}), true);
    assert.equal(await isLeftOut({ matchExpressions: [rest, named("NotIn")] }, {}), true);
    assert.equal(await isLeftOut({ matchExpressions: [rest, named("In")] }, {}), false);
    assert.equal(await isLeftOut({ matchExpressions: [rest] }, { matchLabels: { fixed: "yes" } }), true);
    assert.equal(await isLeftOut({ matchExpressions: [rest] }, {}), false);
    assert.equal(await isLeftOut({ matchExpressions: [fixed] }, {}, "/mutate/pools"), false);
  });

  it("is told in one line, and is no defect", async (t) => {
    const data = await Folder.of(t, { pools: [DB_POOL], objects: [pod("web", ASKS), pod("db", ASKS)] });
    const { code, stdout } = await data.call("check");
    assert.equal(code, 0);
    assert.match(stdout, /\nok, but 2 pods ask and were not reviewed: 1 pool, /);
    assert.match(stdout, /; delete it with: berthctl delete pod\/shop\/web, and apply it again\n/);
  });
});
