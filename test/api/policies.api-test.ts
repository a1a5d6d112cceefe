// SPDX-License-Identifier: Apache-2.0
// What the policies refuse while no webhook is there, and what they let pass: nothing here but the API server decides.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { OWN_REQUESTS } from "../../allocator/manifest/own-keys.ts";
import { collectionPath, itemPath, PODS } from "../../kube/api/resource.ts";
import { eventually } from "../support/eventually.ts";
import { type Json, pod, poolObject } from "../support/objects.ts";
import { BERTH_NAMESPACE } from "./accounts.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { ASKING, SYSTEM, WARNS } from "./chart-policies.ts";
import { PolicyBench } from "./policy-bench.ts";
import { makeNamespace } from "./replica-objects.ts";

if (havePartsOrSkip(["etcd", "kube-apiserver", "kubectl"])) {
  describe("the policies of pods, with no webhook there", () => {
    let bench: PolicyBench;
    const create = (...args: Parameters<PolicyBench["create"]>) => bench.create(...args);
    const patch = (...args: Parameters<PolicyBench["patch"]>) => bench.patch(...args);

    before(async () => {
      bench = await PolicyBench.start();
      const opted = { "berth.dev/admission": "enabled" };
      for (const [name, metadata] of Object.entries({
        opted: { labels: opted },
        pooled: { labels: opted, annotations: { "berth.dev/pools": "db" } },
        sticky: { labels: opted, annotations: { "berth.dev/sticky": "true" } },
        mute: { annotations: { "berth.dev/pools": "db" } },
        bank: { labels: { team: "bank" } },
      })) {
        await makeNamespace(bench.admin, name, metadata);
      }
    });
    after(() => bench?.close());

    describe("of pods", () => {
      const made = (namespace: string, annotations: Readonly<Record<string, string>>, spec: Json = {}) =>
        create(pod("", { generateName: "x-", namespace, annotations, spec }));
      const unclaimed =
        "pods.berth.dev: the pod asks for an address and no claim was made for it: berth's MutatingWebhookConfiguration is missing, or another webhook asked for it after berth was asked";

      it("warn of one on its node's network that asks, and of no other", async () => {
        const warningsOf = async (namespace: string, annotations: Readonly<Record<string, string>>) => {
          const body = pod("", { generateName: "x-", namespace, annotations, spec: { hostNetwork: true } });
          const path = collectionPath(PODS, namespace);
          const { status, warnings = [] } = await bench.admin.call({
            ...{ method: "POST", path, query: { dryRun: "All" }, body },
          });
          assert.equal(status, 201);
          return warnings.filter((words) => words.includes(WARNS));
        };
        for (const key of [...OWN_REQUESTS, "berth.dev/ip"]) {
          const [words = "", ...more] = await warningsOf("shop", { [key]: "10.20.0.70" });
          assert.match(words, /annotations berth\.dev\/\.\.\. ask for nothing beside hostNetwork/, key);
          assert.deepEqual(more, []);
        }
        assert.deepEqual(await warningsOf("shop", { app: "web" }), []);
        assert.deepEqual(await warningsOf("kube-system", { "berth.dev/ips": "10.20.0.70" }), []);
      });

      it("warn of pods and workloads of kube-system that ask, and of no others", async () => {
        const warningsOf = async (namespace: string, annotations: Readonly<Record<string, string>>) => {
          const body = pod("", { generateName: "x-", namespace, annotations });
          const call = { method: "POST", query: { dryRun: "All" } } as const;
          const first = await bench.admin.call({ ...call, path: collectionPath(PODS, namespace), body });
          assert.equal(first.status, 201);
          const template = { metadata: { labels: { app: "x" }, annotations }, spec: body["spec"] };
          const spec = { selector: { matchLabels: { app: "x" } }, template };
          const set = { apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "x", namespace }, spec };
          const path = `/apis/apps/v1/namespaces/${namespace}/deployments`;
          const second = await bench.admin.call({ ...call, path, body: set });
          assert.equal(second.status, 201);
          const all = [...(first.warnings ?? []), ...(second.warnings ?? [])];
          return all.filter((words) => words.includes(SYSTEM));
        };
        for (const key of ["berth.dev/ips", "berth.dev/sticky"]) {
          const reported = await warningsOf("kube-system", { [key]: "10.20.0.70" });
          assert.equal(reported.length, 2, key);
          for (const words of reported)
            assert.match(words, /get no address in this namespace: berth reserves none for its pods/);
        }
        assert.deepEqual(await warningsOf("kube-system", { "berth.dev/pools": "db", app: "dns" }), []);
      });

      it("refuse one that asks and has no claim, in every dialect and by its namespace", async () => {
        const values: Readonly<Record<string, string>> = {
          "berth.dev/sticky": "true",
          "berth.dev/families": "IPv4",
          "berth.dev/fallback": "any",
          "berth.dev/when-deleted": "Retain",
          "berth.dev/when-scaled": "Retain",
          "berth.dev/ttl": "1h",
        };
        for (const key of [...OWN_REQUESTS, ...ASKING.map((row) => row.key)]) {
          const asks = !["families", "fallback", "mac", "when-deleted", "when-scaled", "ttl"].some((word) =>
            key.endsWith(word),
          );
          assert.equal(
            await made("shop", { [key]: values[key] ?? "10.20.0.70" }),
            asks ? unclaimed : "",
            key,
          );
          // with a claim it passes: which one it is says the claim, not the pod
          assert.equal(await made("shop", { [key]: "10.20.0.70", "berth.dev/claim": "x" }), "", key);
        }
        assert.equal(await made("pooled", {}), unclaimed);
        assert.equal(await made("sticky", {}), unclaimed);
        assert.equal(await made("pooled", { "berth.dev/sticky": "false" }), unclaimed);
        assert.equal(await made("mute", { "berth.dev/ttl": "1h" }), unclaimed);
      });

      it("let those pass that ask for nothing, or are none of Berth's business", async () => {
        for (const namespace of ["shop", "opted", "mute"]) assert.equal(await made(namespace, {}), "");
        assert.equal(await made("shop", { "berth.dev/sticky": "false" }), "");
        assert.equal(await made("sticky", { "berth.dev/sticky": "false" }), "");
        for (const { key } of ASKING) {
          assert.equal(await made("shop", { [key]: "" }), "", `${key} says nothing`);
          assert.equal(await made("shop", { [key]: "[ ]" }), "", `${key} lists nothing`);
        }
        const asks = { "berth.dev/ips": "10.20.0.70" };
        assert.equal(await made("shop", asks, { hostNetwork: true }), "");
        assert.equal(await made("kube-system", asks), "");
        assert.equal(await made(BERTH_NAMESPACE, asks), "");
        assert.equal(await create(pod("rehearsed", { annotations: asks }), { dryRun: "All" }), "");
      });

      it("keep what Berth wrote as it is, by whatever way somebody comes", async () => {
        const annotations = {
          "berth.dev/ips": "10.20.0.70",
          "berth.dev/claim": "kept",
          "berth.dev/token": "t",
        };
        assert.equal(await create(pod("kept", { annotations })), "");
        const path = itemPath(PODS, { namespace: "shop", name: "kept" });
        const words =
          "changes.pods.berth.dev: the annotations berth.dev/claim, berth.dev/addresses, berth.dev/token and berth.dev/reviewed of a pod are written by berth when the pod is created and stay, and a Binding brings no request for addresses; leave them as they are";
        for (const change of [
          { "berth.dev/claim": "another" },
          { "berth.dev/claim": null },
          { "berth.dev/token": "stolen" },
          { "berth.dev/addresses": "10.20.0.99" },
        ]) {
          const body = { metadata: { annotations: change } };
          for (const to of [path, `${path}/status`]) assert.equal(await patch(to, body), words);
          assert.equal(await patch(path, body), words);
        }
        const named =
          "changes.pods.berth.dev: annotation berth.dev/ips is read when the pod is created, and a change would do nothing; keep it, and what berth wrote beside it (berth.dev/claim, berth.dev/addresses, berth.dev/token, berth.dev/reviewed); change it in the template that the pod is made from, or delete the pod and create it again";
        for (const ips of [null, "10.20.0.71"]) {
          const body = { metadata: { annotations: { "berth.dev/ips": ips, "berth.dev/claim": null } } };
          for (const to of [path, `${path}/status`]) assert.equal(await patch(to, body), named);
        }
        assert.equal(await patch(path, { metadata: { annotations: null } }), named);
        const target = { kind: "Node", name: "node-a" };
        const binding = {
          apiVersion: "v1",
          kind: "Binding",
          metadata: { name: "kept", annotations: { "berth.dev/claim": "x" } },
        };
        const bound = await bench.admin.call({
          method: "POST",
          path: `${path}/binding`,
          body: { ...binding, target },
        });
        assert.equal(bench.outcome(bound), words);
        assert.equal(
          await patch(path, { metadata: { annotations: { mine: "x", "berth.dev/ips": null } } }),
          "",
        );
        assert.equal(await patch(`${path}/status`, { status: { phase: "Running" } }), "");
      });
    });

    describe("of guarded pools", () => {
      const assigned = (namespace: string, addresses: string, account = "default") =>
        create(
          pod("", {
            ...{ generateName: "x-", namespace, spec: { serviceAccountName: account } },
            annotations: { "berth.dev/claim": "x", "berth.dev/addresses": addresses },
          }),
        );

      before(async () => {
        const namespaceSelector = {
          matchLabels: { team: "bank" },
          matchExpressions: [
            { key: "kubernetes.io/metadata.name", operator: "NotIn", values: ["shop"] },
            { key: "team", operator: "Exists" },
          ],
        };
        const guarded = { "berth.dev/guarded": "true" };
        for (const [name, labels, spec] of [
          [
            "vault",
            guarded,
            {
              ranges: [{ cidr: "10.50.0.0/24" }, { cidr: "fd00:50::/64" }],
              ...{ namespaceSelector, blockSize: {} },
            },
          ],
          ["keyed", guarded, { ranges: [{ cidr: "10.51.0.0/24" }], authorization: "ServiceAccount" }],
          ["plain", {}, { ranges: [{ cidr: "10.52.0.0/24" }], namespaceSelector, blockSize: {} }],
          [
            "part",
            guarded,
            {
              ranges: [
                { cidr: "10.53.0.0/16", from: "10.53.0.50", to: "10.53.2.9" },
                { cidr: "fd00:53::/32", from: "fd00:53::ff", to: "fd00:53:1::a" },
                { cidr: "fd00:54::/64", to: "fd00:54::9" },
                { cidr: "fd00:55::/64", from: "fd00:55:0:0:8000::" },
              ],
              ...{ namespaceSelector, blockSize: {} },
            },
          ],
        ] as const) {
          const object = poolObject(name, spec);
          assert.equal(await create({ ...object, metadata: { name, labels } }), "");
        }
        for (const args of [
          ["serviceaccount", "teller"],
          ["rolebinding", "use", "--clusterrole=berth-pool-admin", "--serviceaccount=bank:teller"],
        ]) {
          const { rc, stderr } = await bench.plane.kubectl(["create", ...args, "-n", "bank"]);
          assert.equal(rc, 0, stderr);
        }
        await eventually("guarded pools are known", async () =>
          (await assigned("shop", "10.50.0.7")) === "" ? undefined : true,
        );
        await eventually("and the role", async () =>
          (await assigned("bank", "10.51.0.7", "teller")) === "" ? true : undefined,
        );
      });

      it("none is used from a namespace that it is not open to", async () => {
        const words = "pool-access.berth.dev: pool vault is not open to namespace shop";
        assert.equal(await assigned("shop", "10.50.0.7"), words);
        assert.equal(await assigned("shop", "10.20.0.7,fd00:50::7"), words);
        assert.equal(await assigned("shop", "10.20.0.7@eth0,10.50.0.7@net1"), words);
        assert.equal(await assigned("bank", "10.50.0.7,fd00:50::7"), "");
        assert.equal(await assigned("shop", "10.20.0.7"), "");
        assert.equal(await assigned("shop", "10.52.0.7"), "", "who has no label is the webhook's to guard");
      });

      for (const [which, addresses] of [
        [
          "below",
          ["10.53.0.9", "10.53.0.49", "fd00:53::", "fd00:53::fe", "fd00:55::1", "fd00:55:0:0:7fff::"],
        ],
        ["above", ["10.53.2.10", "10.53.10.1", "10.53.100.1", "fd00:53:1::b", "fd00:53:10::", "fd00:54::a"]],
      ] as const)
        it(`another pool's part of their CIDR is not theirs: ${which}`, async () => {
          for (const address of addresses) assert.equal(await assigned("shop", address), "", address);
        });

      it("their own part of a CIDR is, however an address is written", async () => {
        const within = ["10.53.0.50", "10.53.0.100", "10.53.1.1", "10.53.2.9", "fd00:53::ff", "fd00:53::1:0"];
        const written = ["fd00:53:0001:0:0:0:0:000A", "FD00:53:1::", "fd00:54::", "fd00:55:0:0:ffff:0:0:1"];
        for (const address of [...within, ...written, "192.0.2.1,10.53.0.49,10.53.0.50"])
          assert.equal(
            await assigned("shop", address),
            "pool-access.berth.dev: pool part is not open to namespace shop",
            address,
          );
      });

      it("none that is for service accounts is used by one without the verb", async () => {
        const words =
          "pool-access.berth.dev: pool keyed is only for service accounts with the verb use on it; ask its administrator for a role";
        assert.equal(await assigned("bank", "10.51.0.7"), words);
        assert.equal(await assigned("shop", "10.51.0.7", "teller"), words);
        assert.equal(await assigned("bank", "10.51.0.7", "teller"), "");
      });

      it("nonsense in the annotation is no error of the policy", async () => {
        assert.equal(await assigned("shop", "nonsense,,10.50.0.0/24,::ffff:10.50.0.7"), "");
      });
    });
  });
}
