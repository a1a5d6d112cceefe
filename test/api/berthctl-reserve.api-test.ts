// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { Client } from "../../kube/api/client.ts";
import { CLAIMS } from "../../kube/api/resource.ts";
import { eventually } from "../support/eventually.ts";
import { addrs, reservationRecord } from "../support/fixtures.ts";
import { BerthctlCluster } from "./berthctl-cluster.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { POLICIES, POLICY_BINDINGS, VALIDATING_WEBHOOKS } from "./cluster-resources.ts";

if (havePartsOrSkip(["etcd", "kube-apiserver", "kubectl"])) {
  describe("berthctl reserve in a cluster", () => {
    let cluster: BerthctlCluster;

    before(async () => {
      cluster = await BerthctlCluster.start();
    });
    after(() => cluster?.close());

    /** What the controller does once the claim is there. */
    async function grant(name: string, address: string): Promise<void> {
      const seen = await eventually(`claim ${name}`, () => cluster.store.get("claim", `shop/${name}`));
      const [granted = ""] = addrs(address);
      const nonce = `nonce-of-${name}`;
      const claim = { namespace: "shop", name };
      await cluster.store.create("reservation", reservationRecord(granted, { claim, nonce }));
      await cluster.store.replace("claim", seen, { ...seen.record, addresses: addrs(address), nonce });
    }

    it("waits for the addresses and prints them", async () => {
      const reserved = cluster.call("reserve", "vip", "--address", "10.20.0.90");
      await grant("vip", "10.20.0.90");
      assert.deepEqual(await reserved, {
        code: 0,
        stdout: "ipclaim/shop/vip created   10.20.0.90\n",
        stderr: "",
      });
      assert.deepEqual(await cluster.call("reserve", "shop/vip", "--address", "10.20.0.90"), {
        code: 0,
        stdout: "ipclaim/shop/vip unchanged   10.20.0.90\n",
        stderr: "",
      });
      assert.equal(
        (await cluster.call("reserve", "vip", "--address", "10.20.0.91")).stderr,
        "Error: ipclaim/shop/vip: it exists already and holds 10.20.0.90; release it first with: berthctl release shop/vip\n",
      );
    });

    it("says why the controller cannot, and that nobody has looked at it", async () => {
      const refused = cluster.call("reserve", "late", "--address", "10.20.0.70");
      await eventually("claim late", () => cluster.store.get("claim", "shop/late"));
      const condition = {
        type: "Ready",
        status: "False",
        reason: "AddressTaken",
        message: "address 10.20.0.70 is held",
        lastTransitionTime: new Date().toISOString(),
      };
      const body = { status: { conditions: [condition] } };
      const place = { namespace: "shop", name: "late" };
      await new Client(cluster.connection, CLAIMS).patch(place, { type: "merge", body }, "status");
      assert.deepEqual(await refused, {
        code: 1,
        stdout: "",
        stderr:
          "Error: ipclaim/shop/late: address 10.20.0.70 is held; the claim stays and gets its addresses when it can; " +
          "take it back with: kubectl delete ipclaim late -n shop\n",
      });
      assert.deepEqual(await cluster.call("reserve", "slow", "--pool", "db", "--timeout", "300ms"), {
        code: 2,
        stdout: "",
        stderr:
          "Error: ipclaim/shop/slow: created, and nobody has reserved its addresses within 0.3 s; is Berth's webhook running? " +
          "the claim stays and gets its addresses when it can; take it back with: kubectl delete ipclaim slow -n shop\n",
      });
    });

    /** A policy on claims that says "not this one". */
    async function enforce(name: string, expression: string, action: "Deny" | "Warn"): Promise<void> {
      const rule = {
        operations: ["CREATE"],
        apiGroups: ["berth.dev"],
        apiVersions: ["*"],
        resources: ["ipclaims"],
      };
      const validations = [{ expression, message: "not this one" }];
      const spec = { matchConstraints: { resourceRules: [rule] }, validations };
      const bound = { policyName: name, validationActions: [action] };
      await new Client(cluster.connection, POLICIES).create({ name }, { spec });
      await new Client(cluster.connection, POLICY_BINDINGS).create({ name }, { spec: bound });
    }

    it("refuses what admission refuses, in its words, and a namespace that is not there", async () => {
      await enforce("no-forbidden", "object.metadata.name != 'forbidden'", "Deny");
      const denied = await eventually("the policy to be in force", async () => {
        const tried = await cluster.call("reserve", "forbidden", "--pool", "db", "--dry-run");
        return tried.code === 1 ? tried : undefined;
      });
      assert.equal(denied.stderr, "Error: ipclaim/shop/forbidden: not this one\n");
      assert.deepEqual(await cluster.call("reserve", "nowhere/vip", "--pool", "db"), {
        code: 1,
        stdout: "",
        stderr: "Error: ipclaim/nowhere/vip: there is no namespace nowhere; create it first\n",
      });
    });

    it("says that Berth's webhook cannot be reached, and what to do", async () => {
      const rule = { operations: ["CREATE"], apiGroups: ["berth.dev"], apiVersions: ["*"] };
      const webhook = {
        name: "claims.berth.dev",
        clientConfig: { service: { namespace: "berth-system", name: "berth-webhook" } },
        rules: [{ ...rule, resources: ["ipclaims"] }],
        sideEffects: "None",
        admissionReviewVersions: ["v1"],
        matchConditions: [{ name: "away", expression: "object.metadata.name == 'away'" }],
      };
      await new Client(cluster.connection, VALIDATING_WEBHOOKS).create(
        { name: "away" },
        { webhooks: [webhook] },
      );
      const failed = await eventually("the webhook to be in force", async () => {
        const tried = await cluster.call("reserve", "away", "--pool", "db", "--dry-run");
        return tried.code === 2 ? tried : undefined;
      });
      assert.match(
        failed.stderr,
        /^Error: Berth's webhook, .*: service "berth-webhook" not found; .* kubectl get pods -n berth-system -l [a-z./]+=berth, and say the same again when one is ready; if one is already: docs\/troubleshooting\.md, `kubectl apply` hangs\n$/,
      );
    });

    it("passes on what admission warns of", async () => {
      await enforce("no-odd", "object.metadata.name != 'odd'", "Warn");
      const words = `Validation failed for ValidatingAdmissionPolicy 'no-odd' with binding 'no-odd': not this one`;
      const reported = await eventually("the policy to be in force", async () => {
        const tried = await cluster.call("reserve", "odd", "--address", "10.20.0.96", "--dry-run");
        return tried.stdout.includes("not this one") ? tried : undefined;
      });
      assert.deepEqual(reported, {
        code: 0,
        stdout: `ipclaim/shop/odd created (dry run)\n  claim shop/odd would get 10.20.0.96 from pool db\n  ${words}\n`,
        stderr: "",
      });
      const reserved = cluster.call("reserve", "odd", "--address", "10.20.0.96");
      await grant("odd", "10.20.0.96");
      assert.deepEqual(await reserved, {
        code: 0,
        stdout: "ipclaim/shop/odd created   10.20.0.96\n",
        stderr: `Warning: ${words}\n`,
      });
    });

    it("foretells on a dry run and writes nothing", async () => {
      assert.deepEqual(await cluster.call("reserve", "dry", "--address", "10.20.0.95", "--dry-run"), {
        code: 0,
        stdout: "ipclaim/shop/dry created (dry run)\n  claim shop/dry would get 10.20.0.95 from pool db\n",
        stderr: "",
      });
      assert.equal(await cluster.store.get("claim", "shop/dry"), undefined);
      assert.match(
        (await cluster.call("reserve", "dry", "--address", "10.20.0.70", "--dry-run")).stderr,
        /^Error: ipclaim\/shop\/dry: address 10\.20\.0\.70 in pool "db" is held by shop\/mysql-0/,
      );
    });
  });
}
