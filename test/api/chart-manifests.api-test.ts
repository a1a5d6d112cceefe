// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { before, describe, it } from "node:test";
import type { Manifest } from "./accounts.ts";
import { havePartsOrSkip } from "./binaries.ts";
import {
  CERTIFICATE,
  CONFIGURATIONS,
  rulesOf,
  templateNamed,
  templatesOf,
  VALUE_SETS,
} from "./chart-manifests.ts";
import { only, render } from "./chart-release.ts";
import { configuration } from "./webhooks.ts";

/** The paths of all fields that are null. */
function nullsIn(value: unknown, path: string): readonly string[] {
  if (value === null) return [path];
  if (typeof value !== "object") return [];
  return Object.entries(value).flatMap(([key, inner]) => nullsIn(inner, `${path}.${key}`));
}

if (havePartsOrSkip(["helm"])) {
  describe("the chart with other names of the plugin", () => {
    it("tells the agents, and gives them the file that whereabouts' networks rely on", async () => {
      const ipam = { type: "antrea" };
      const conflist = JSON.stringify({
        cniVersion: "1.0.0",
        name: "n",
        plugins: [{ type: "macvlan", ipam }],
      });
      for (const aliases of [["antrea"], ["antrea", "whereabouts"]]) {
        const { spec } = templateNamed(await render({ cni: { aliases, conflist } }), "berth-agent");
        const [{ env } = { env: [] }] = spec.containers;
        const value = (name: string) => env.find((one) => one.name === name)?.value;
        assert.deepEqual(
          [value("BERTH_CNI_ALIASES"), value("BERTH_CNI_REPLACE")],
          [aliases.join(","), "false"],
        );
        const isMounted = JSON.stringify(spec).includes('"mountPath":"/etc/cni/net.d/whereabouts.d"');
        assert.equal(isMounted, aliases.includes("whereabouts"));
      }
    });
  });

  for (const [title, values] of Object.entries(VALUE_SETS)) {
    describe(`the manifests of the chart: ${title}`, () => {
      let manifests: readonly Manifest[];
      before(async () => {
        manifests = await render(values);
      });

      it("let every container write nowhere but into its volumes, and gain nothing", () => {
        for (const { spec } of templatesOf(manifests).values()) {
          for (const { securityContext: context } of spec.containers) {
            assert.equal(context?.readOnlyRootFilesystem, true);
            assert.equal(context?.allowPrivilegeEscalation, false);
            assert.deepEqual(context?.capabilities?.drop, ["ALL"]);
          }
        }
      });

      it("give every container requests, a limit of memory, and three probes", () => {
        for (const { spec } of templatesOf(manifests).values()) {
          for (const { resources, startupProbe, livenessProbe, readinessProbe } of spec.containers) {
            assert.ok(resources?.["requests"]?.["cpu"] && resources["requests"]["memory"]);
            assert.ok(resources["limits"]?.["memory"]);
            assert.equal(startupProbe?.httpGet?.path, "/healthz");
            assert.equal(livenessProbe?.httpGet?.path, "/healthz");
            assert.equal(readinessProbe?.httpGet?.path, "/readyz");
          }
        }
      });

      it("leave out what has no value", () => {
        for (const { kind, metadata, ...manifest } of manifests)
          assert.deepEqual(nullsIn(manifest, `${kind} ${metadata.name}`), []);
      });

      it("have one image, which the values name", () => {
        const images = [...templatesOf(manifests).values()].flatMap(({ spec }) =>
          spec.containers.map((c) => c.image),
        );
        const given =
          values["image"] === undefined
            ? "berth:0.1.0"
            : `registry.example/berth:9.9.9@sha256:${"a".repeat(64)}`;
        assert.deepEqual([...new Set(images)], [given]);
      });

      it("leave the webhook the time that it needs to depart", () => {
        const { spec } = templateNamed(manifests, "berth-webhook");
        const depart = spec.containers[0]?.env.find(({ name }) => name === "BERTH_DEPART")?.value ?? "";
        assert.match(depart, /^\d+s$/);
        assert.ok(spec.terminationGracePeriodSeconds > Number.parseInt(depart, 10) + 15);
      });

      it("have no wildcard in a role, and no Secret but Berth's own where Berth is its own authority", () => {
        const rules = rulesOf(manifests);
        assert.ok(rules.length > 0);
        const words = rules.flatMap(({ apiGroups, resources, verbs }) => [
          ...apiGroups,
          ...resources,
          ...verbs,
        ]);
        assert.ok(!words.some((word) => word.includes("*")));
        const secrets = rules.filter(({ resources }) => resources.some((name) => name.startsWith("secrets")));
        const isSelf = values["certificates"] === undefined;
        assert.deepEqual(
          secrets.map(({ resourceNames }) => resourceNames),
          isSelf ? [["berth-webhook-ca", "berth-webhook-tls"], ["berth-webhook-tls"]] : [],
        );
        const caBundles = rules.filter(({ resources }) =>
          resources.includes("mutatingwebhookconfigurations"),
        );
        assert.deepEqual(
          caBundles.map(({ resourceNames }) => resourceNames),
          isSelf ? [["berth"], ["berth"]] : [],
        );
      });

      it("let agents get a node only where their conflist asks for the node's range, and watch their own for pools that select nodes", () => {
        const agents = manifests.filter(
          ({ kind, metadata }) => kind === "ClusterRole" && metadata.name.startsWith("berth-agent"),
        );
        const nodes = rulesOf(agents).filter(({ resources }) => resources.includes("nodes"));
        const asks = JSON.stringify(values["cni"] ?? {}).includes("usePodCidr");
        const verbs = nodes.map((rule) => rule.verbs.join()).sort();
        assert.deepEqual(verbs, asks ? ["get", "list,watch"] : ["list,watch"]);
      });

      it("let the webhook read ReplicaSets only where it is to check owners, and tell it so", () => {
        const checks = (values["webhook"] as { checkOwners?: boolean } | undefined)?.checkOwners === true;
        const owned = manifests.filter(({ metadata }) => metadata.name.startsWith("berth-webhook"));
        const rules = rulesOf(owned).filter(({ resources }) => resources.includes("replicasets"));
        assert.deepEqual(
          rules.map(({ verbs }) => verbs.join()),
          checks ? ["get"] : [],
        );
        const deployment = owned.find(({ kind }) => kind === "Deployment");
        assert.equal(JSON.stringify(deployment).includes("BERTH_CHECK_OWNERS"), checks);
      });

      it("let the webhook touch CiliumNodes only where it is to give them addresses, and tell it in which mode", () => {
        const { ipam = "" } = (values["cilium"] ?? {}) as { ipam?: string };
        const owned = manifests.filter(({ metadata }) => metadata.name.startsWith("berth-webhook"));
        const rules = rulesOf(owned).filter(({ apiGroups }) => apiGroups.includes("cilium.io"));
        assert.deepEqual(
          rules.map(({ resources }) => resources.join()),
          ipam === "" ? [] : ["ciliumnodes", "ciliumnodes/status"],
        );
        const deployment = JSON.stringify(owned.find(({ kind }) => kind === "Deployment"));
        assert.equal(deployment.includes("BERTH_CILIUM_IPAM"), ipam !== "");
      });

      it("let the webhook patch Nodes only where it is to give them CIDRs, and tell it which", () => {
        const { families = [] } = (values["nodeCIDRs"] ?? {}) as { families?: readonly string[] };
        const owned = manifests.filter(({ metadata }) => metadata.name.startsWith("berth-webhook"));
        const rules = rulesOf(owned).filter(({ resources }) => resources.includes("nodes"));
        const patching = rules.filter(({ verbs }) => verbs.includes("patch"));
        assert.deepEqual(
          patching.map(({ resources, verbs }) => [resources.join(), verbs.join()]),
          families.length > 0 ? [["nodes", "patch"]] : [],
        );
        const deployment = JSON.stringify(owned.find(({ kind }) => kind === "Deployment"));
        assert.equal(deployment.includes('"IPv4,IPv6"'), families.length > 0);
      });

      it("have the webhook configurations of the files, and in each entry where the webhook is", () => {
        const isGiven = title === "what others make";
        for (const [name, kind] of Object.entries(CONFIGURATIONS)) {
          const { webhooks } = configuration(name as keyof typeof CONFIGURATIONS);
          const filled = webhooks.map((entry) => {
            const { path } = entry.clientConfig.service;
            const service = { name: "berth-webhook", namespace: "berth-system", port: 443, path };
            const caBundle = Buffer.from(CERTIFICATE).toString("base64");
            return { ...entry, clientConfig: { service, ...(isGiven ? { caBundle } : {}) } };
          });
          // the files know no agents that are apart
          const agents = ',"berth-system-agents"]';
          const rendered = JSON.stringify(only(manifests, kind)["webhooks"]);
          assert.ok(rendered.includes(agents));
          assert.deepEqual(JSON.parse(rendered.replaceAll(agents, "]")), filled);
        }
      });

      it("have the chart's labels on every object, and a place in no namespace but the release's and the agents'", () => {
        for (const { metadata, kind } of manifests as readonly (Manifest & {
          metadata: { labels?: object };
        })[]) {
          const labels: Readonly<Record<string, unknown>> = { ...metadata.labels };
          assert.equal(labels["app.kubernetes.io/name"], "berth", `${kind} ${metadata.name}`);
          assert.equal(labels["app.kubernetes.io/managed-by"], "Helm", `${kind} ${metadata.name}`);
          const isAgents = metadata.name === "berth-agent" || metadata.name === "berth-conflist";
          const own = isAgents ? "berth-system-agents" : "berth-system";
          assert.ok([undefined, own].includes(metadata.namespace), `${kind} ${metadata.name}`);
        }
      });
    });
  }
}
