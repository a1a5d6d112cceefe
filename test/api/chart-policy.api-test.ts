// SPDX-License-Identifier: Apache-2.0
// What must hold of the manifests, whatever values they were rendered with.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { parse } from "yaml";
import { READ_ROWS } from "../../allocator/manifest/dialects.ts";
import { parseDialects, SYSTEM_NAMES } from "../../allocator/model/dialect.ts";
import { collectionPath } from "../../kube/api/resource.ts";
import { type Manifest, resourceOfManifest } from "./accounts.ts";
import { havePartsOrSkip } from "./binaries.ts";
import {
  CERTIFICATE,
  isForeign,
  NARROWED,
  rulesOf,
  templateNamed,
  templatesOf,
  VALUE_SETS,
} from "./chart-manifests.ts";
import { CHART, helm, mustHelm, only, render, type Values } from "./chart-release.ts";
import { define, definitions, makeNamespaces } from "./crds.ts";
import { startControlPlane } from "./harness.ts";
import { definitionsOf } from "./operators.ts";
import type { ControlPlane } from "./plane.ts";
import { configuration } from "./webhooks.ts";

const CONFIGURATIONS = {
  mutating: "MutatingWebhookConfiguration",
  validating: "ValidatingWebhookConfiguration",
};

if (havePartsOrSkip(["helm"])) {
  describe("which requests berth answers, as the values have it", () => {
    interface Entry {
      readonly name: string;
      readonly failurePolicy: string;
      readonly timeoutSeconds: number;
      readonly namespaceSelector?: { readonly matchExpressions: readonly { readonly key: string }[] };
      readonly objectSelector?: unknown;
      readonly matchConditions?: readonly { readonly name: string; readonly expression: string }[];
    }
    const CALICO = ["ipAddrs", "ipv4pools", "ipv6pools"].map((key) => `'cni.projectcalico.org/${key}'`);
    const entriesOf = (manifests: readonly Manifest[]) =>
      Object.values(CONFIGURATIONS).flatMap((kind) => only(manifests, kind)["webhooks"] as readonly Entry[]);
    const condition = (entries: readonly Entry[], name: string, of: string) =>
      entries.find((entry) => entry.name === name)?.matchConditions?.find((one) => one.name === of)
        ?.expression ?? assert.fail(name);
    const asksOf = (manifests: readonly Manifest[]) =>
      JSON.stringify(only(manifests, "ValidatingAdmissionPolicy", "pods.berth.dev").spec);
    const has = (text: string) => CALICO.map((key) => text.includes(key));

    it("in Calico's words: those for its own pools, all, or none", async () => {
      for (const [calico, [opted, elsewhere, policy]] of Object.entries({
        own: [true, false, false],
        all: [true, false, true],
        none: [false, true, false],
      })) {
        const manifests = await render({ dialects: { calico } });
        const entries = entriesOf(manifests);
        const thrice = (is = false) => [is, is, is];
        assert.deepEqual(has(condition(entries, "pods.berth.dev", "opted-in")), thrice(opted), calico);
        const told = condition(entries, "foreign.pods.berth.dev", "asks-elsewhere");
        assert.deepEqual(has(told), thrice(elsewhere), calico);
        // a template is looked at either way, for there it is told
        assert.deepEqual(has(condition(entries, "workloads.berth.dev", "opted-in")), thrice(true), calico);
        assert.deepEqual(has(asksOf(manifests)), thrice(policy), calico);
        for (const name of ["berth-webhook", "berth-agent"]) {
          const [container] = templateNamed(manifests, name).spec.containers;
          const variable = container?.env.find((one) => one.name === "BERTH_DIALECTS");
          const { calico: chosen, ...others } = parseDialects(variable?.value ?? "") ?? {};
          assert.deepEqual([chosen, new Set(Object.values(others))], [calico, new Set(["own"])], name);
        }
      }
    });

    it("in every other system's words, too", async () => {
      const key = (system: string) =>
        READ_ROWS.find((row) => row.system === system && row.containing === undefined);
      const choices = Object.fromEntries(SYSTEM_NAMES.map((system) => [system, "none"]));
      const without = entriesOf(await render({ dialects: choices }));
      const all = await render({
        dialects: Object.fromEntries(SYSTEM_NAMES.map((system) => [system, "all"])),
      });
      for (const system of SYSTEM_NAMES) {
        const quoted = `'${key(system)?.key}'`;
        if (system === "multus") continue; // which asks with some values only, and by no key
        assert.ok(!condition(without, "pods.berth.dev", "opted-in").includes(quoted), system);
        assert.ok(condition(without, "foreign.pods.berth.dev", "asks-elsewhere").includes(quoted), system);
        assert.ok(condition(entriesOf(all), "pods.berth.dev", "opted-in").includes(quoted), system);
        if (system !== "kubeOvn") assert.ok(asksOf(all).includes(quoted), system);
      }
      const spaces = (entries: readonly Entry[]) =>
        condition(entries, "foreign.namespaces.berth.dev", "asks-elsewhere");
      assert.equal(spaces(without), spaces(entriesOf(all)));
    });

    it("of the namespaces and pods that they select, and no longer than they say", async () => {
      const manifests = await render(NARROWED);
      const entries = entriesOf(manifests);
      const limits = Object.fromEntries(entries.map(({ name, timeoutSeconds }) => [name, timeoutSeconds]));
      // of any workload: nobody is to wait for that
      const { "scale.workloads.berth.dev": scale, ...others } = limits;
      assert.deepEqual([scale, [...new Set(Object.values(others))]], [2, [5]]);
      for (const entry of entries) {
        const keys = entry.namespaceSelector?.matchExpressions.map(({ key }) => key);
        if (keys !== undefined)
          assert.deepEqual([keys[0], keys.at(-1)], ["kubernetes.io/metadata.name", "berth"]);
        const pods = /pods\.berth\.dev$/.test(entry.name);
        assert.deepEqual(entry.objectSelector, pods ? { matchLabels: { net: "berth" } } : undefined);
        const closed = !pods || entry.name === "changes.pods.berth.dev";
        const preview = /workloads\.berth\.dev$|^labels\./.test(entry.name);
        // foreignRequests: refuse, of a namespace; a pod follows failurePolicy
        assert.equal(entry.failurePolicy, closed && !preview ? "Fail" : "Ignore", entry.name);
      }
      const policy = asksOf(manifests);
      assert.ok(policy.includes('"net":"berth"') && policy.includes('"key":"berth"'));
      const binding = only(manifests, "ValidatingAdmissionPolicyBinding", "pods.berth.dev");
      assert.deepEqual((binding.spec as { validationActions: unknown }).validationActions, ["Warn"]);
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

  describe("the chart", () => {
    it("passes helm lint --strict with every set of values", async () => {
      for (const values of Object.values(VALUE_SETS)) await mustHelm(["lint", "--strict", CHART], { values });
    });

    it("names the release's namespace wherever the files name theirs", async () => {
      for (const values of Object.values(VALUE_SETS)) {
        const elsewhere = JSON.stringify(await render(values, "network"));
        assert.ok(!elsewhere.includes("berth-system"));
        assert.equal(
          elsewhere.replaceAll(/\bnetwork\b/g, ""),
          JSON.stringify(await render(values)).replaceAll(/\b(berth-system|network)\b/g, ""),
        );
      }
    });

    it("puts agents, and nothing else, into a namespace of their own where that is said", async () => {
      const values = { ...VALUE_SETS["everything"], agent: { namespace: "nodes" } };
      const manifests = await render(values);
      const there = manifests.filter(({ metadata }) => metadata.namespace === "nodes");
      assert.deepEqual(there.map(({ kind, metadata }) => `${kind} ${metadata.name}`).sort(), [
        "ConfigMap berth-conflist",
        "DaemonSet berth-agent",
        "PodMonitor berth-agent",
        "ServiceAccount berth-agent",
      ]);
      const { labels } = only(manifests, "Namespace", "nodes").metadata as {
        labels?: Record<string, string>;
      };
      assert.equal(labels?.["pod-security.kubernetes.io/enforce"], "privileged");
      const text = JSON.stringify(manifests);
      assert.ok(!text.includes("berth-system:berth-agent"), "its account is known by its own namespace");
      assert.ok(text.includes("system:serviceaccount:nodes:berth-agent"));
      const excluded =
        text.match(/"kubernetes.io\/metadata.name","operator":"NotIn","values":\[[^\]]*\]/g) ?? [];
      assert.ok(excluded.length > 5);
      for (const one of excluded) assert.ok(one.endsWith('["kube-system","berth-system","nodes"]'), one);
      const bindings = manifests.filter(({ kind }) => kind === "ClusterRoleBinding");
      const subjects = bindings.flatMap(
        ({ subjects }) => subjects as readonly { name: string; namespace: string }[],
      );
      for (const { name, namespace } of subjects)
        assert.equal(namespace, name === "berth-agent" ? "nodes" : "berth-system");
      const given = await render({ agent: { namespace: "nodes", createNamespace: false } });
      assert.ok(!given.some(({ kind }) => kind === "Namespace"));
    });

    it("mounts the certificates for etcd where they are named, and no agent waits for them", async () => {
      const agentOf = async (values: Values) => only(await render(values), "DaemonSet").spec;
      const text = JSON.stringify(await agentOf({ agent: { etcdSecret: "etcd-client" } }));
      const secret = { secretName: "etcd-client", defaultMode: 0o400, optional: true };
      assert.ok(text.includes(JSON.stringify({ name: "etcd", secret })), text);
      assert.ok(
        text.includes(JSON.stringify({ name: "etcd", mountPath: "/etc/berth/etcd", readOnly: true })),
        text,
      );
      const variable = { name: "BERTH_ETCD_CERTIFICATES", value: "/etc/berth/etcd" };
      assert.ok(text.includes(JSON.stringify(variable)), text);
      assert.ok(!JSON.stringify(await agentOf({})).includes("etcd"));
    });

    it("names the agents' namespace after the release's, or has them in that one where it is said", async () => {
      const longest = "n".repeat(63);
      for (const [release, agents] of [
        ["berth-system", "berth-system-agents"],
        [longest, `${"n".repeat(56)}-agents`],
      ] as const) {
        const { metadata } = only(await render({}, release), "DaemonSet");
        assert.equal(metadata.namespace, agents);
      }
      const together = await render({ agent: { namespace: "berth-system" } });
      assert.equal(only(together, "DaemonSet").metadata.namespace, "berth-system");
      assert.ok(!together.some(({ kind }) => kind === "Namespace"));
      assert.ok(!JSON.stringify(together).includes("berth-system-agents"));
    });

    it("has alerts and dashboard as the files have them", async () => {
      const manifests = await render(VALUE_SETS["everything"]);
      const file = (name: string) => readFileSync(join(CHART, "files", name), "utf8");
      assert.deepEqual(only(manifests, "PrometheusRule")["spec"], parse(file("alerts.yaml")));
      const dashboard = only(manifests, "ConfigMap", "berth-dashboard")["data"];
      assert.deepEqual(dashboard, { "berth.json": file("dashboard.json") });
    });

    it("has the definitions of the files, kept when it is uninstalled", async () => {
      const rendered = (await render()).filter(({ kind }) => kind === "CustomResourceDefinition");
      assert.deepEqual(
        rendered.map(({ metadata, spec }) => [metadata.name, spec]).sort(),
        definitions().map(({ metadata, spec }) => [metadata.name, spec]),
      );
      for (const { metadata } of rendered) {
        const { annotations } = metadata as { annotations?: Readonly<Record<string, string>> };
        assert.equal(annotations?.["helm.sh/resource-policy"], "keep");
      }
    });

    for (const [what, values, words] of [
      [
        "a misspelt value",
        { webhook: { replica: 3 } },
        "at '/webhook': additional properties 'replica' not allowed",
      ],
      ["a misspelt group", { webhok: {} }, "additional properties 'webhok' not allowed"],
      ["a wrong type", { webhook: { replicas: "3" } }, "at '/webhook/replicas': got string, want integer"],
      [
        "an unknown mode",
        { certificates: { mode: "own" } },
        "at '/certificates/mode': value must be one of 'self'",
      ],
      [
        "a long departure",
        { webhook: { departSeconds: 61 } },
        "at '/webhook/departSeconds': maximum: got 61, want 60",
      ],
      [
        "a relative path",
        { cni: { binDir: "cni/bin" } },
        "at '/cni/binDir': 'cni/bin' does not match pattern",
      ],
      [
        "another capability",
        { agent: { capabilities: ["SYS_ADMIN"] } },
        "at '/agent/capabilities/0': value must be one of",
      ],
      ["a conflist that is no JSON", { cni: { conflist: "[" } }, "cni.conflist: it is no JSON object"],
      [
        "a single plugin",
        { cni: { conflist: '{"type":"bridge"}' } },
        "cni.conflist: a network configuration list has",
      ],
      [
        "a Secret without a name",
        { certificates: { mode: "secret", secret: { caBundle: CERTIFICATE } } },
        "certificates.secret.name: with certificates.mode",
      ],
      [
        "a Secret of nobody's",
        { certificates: { mode: "secret", secret: { name: "own" } } },
        "certificates.secret.caBundle: with certificates.mode",
      ],
    ] as const) {
      it(`is refused in words with ${what}`, async () => {
        const { rc, stderr } = await helm(["template", "berth", CHART], { values });
        assert.equal(rc, 1);
        assert.ok(stderr.includes(words), stderr);
      });
    }
  });
}

if (havePartsOrSkip(["helm", "etcd", "kube-apiserver"])) {
  describe("the manifests of the chart, before a real API server", () => {
    let plane: ControlPlane;
    before(async () => {
      plane = await startControlPlane(); // without Berth's definitions, which are judged too
      await makeNamespaces(plane.connect(), ["berth-system", "berth-system-agents"]);
      const labels = { "pod-security.kubernetes.io/enforce": "restricted" };
      const body = { apiVersion: "v1", kind: "Namespace", metadata: { name: "strict", labels } };
      await plane.connect().call({ method: "POST", path: "/api/v1/namespaces", body });
    });
    after(async () => await plane?.close());

    /** What it says to an object that is not made. */
    async function judged(object: Manifest): Promise<string> {
      const path = collectionPath(resourceOfManifest(object), object.metadata.namespace);
      const query = { dryRun: "All", fieldValidation: "Strict" };
      const answer = await plane.connect().call({ method: "POST", path, query, body: object });
      return answer.status === 201 ? "" : String((answer.body as { message?: string }).message);
    }

    /** What Pod Security says to a pod in a namespace where it enforces `restricted`. */
    async function security(component: string, values = {}): Promise<string> {
      const { metadata, spec } = templateNamed(await render(values), component);
      const place = { name: component, namespace: "strict" };
      return await judged({ apiVersion: "v1", kind: "Pod", metadata: { ...metadata, ...place }, spec });
    }

    for (const [title, values] of Object.entries({ ...VALUE_SETS, narrowed: NARROWED })) {
      it(`are taken without a field that it does not know: ${title}`, async () => {
        const manifests = await render(values);
        for (const manifest of manifests.filter((each) => !isForeign(each))) {
          const { kind, metadata } = manifest;
          // that of the agents is there, for what is in it
          const isThere = kind === "Namespace";
          const object = isThere ? { ...manifest, metadata: { ...metadata, name: "another" } } : manifest;
          assert.equal(await judged(object), "", `${kind} ${metadata.name}`);
        }
      });
    }

    it("are taken by the kinds of cert-manager and of the Prometheus operator", async (t) => {
      const wanted = [definitionsOf("cert-manager"), definitionsOf("prometheus-operator")];
      const found = await Promise.all(wanted).catch((error: Error) => {
        if (process.env["CI"] === "true") throw error;
        t.skip(error.message);
      });
      if (found === undefined) return;
      await define(plane.connect(), found.flat());
      const foreign = (await render(VALUE_SETS["everything"])).filter(isForeign);
      for (const manifest of foreign)
        assert.equal(await judged(manifest), "", `${manifest.kind} ${manifest.metadata.name}`);
      const kinds = ["Certificate", "Issuer", "PodMonitor", "PrometheusRule", "ServiceMonitor"];
      assert.deepEqual([...new Set(foreign.map(({ kind }) => kind))].sort(), kinds);
    });

    it("have a webhook that meets Pod Security's restricted, and one on the host's network but for that", async () => {
      assert.equal(await security("berth-webhook"), "");
      assert.equal(await security("berth-webhook", VALUE_SETS["what others make"]), "");
      assert.equal(
        (await security("berth-webhook", { webhook: { hostNetwork: true } })).split(
          'restricted:latest": ',
        )[1],
        'host namespaces (hostNetwork=true), hostPort (container "webhook" uses hostPort 8443)',
      );
    });

    it("have no pod in the release's namespace that Pod Security's restricted refuses", async () => {
      const manifests = await render();
      const own = manifests.filter(({ metadata }) => metadata.namespace === "berth-system");
      const names = [...templatesOf(own).keys()];
      assert.deepEqual(names.sort(), ["berth-issuer", "berth-webhook"]);
      for (const name of names) assert.equal(await security(name), "");
    });

    it("have an issuer that meets it, where Berth is its own authority, and none elsewhere", async () => {
      assert.equal(await security("berth-issuer"), "");
      const others = await render(VALUE_SETS["what others make"]);
      assert.ok(!JSON.stringify(others).includes("berth-issuer"));
      assert.ok(!others.some(({ metadata }) => metadata.name === "trust.berth.dev"));
    });

    it("have an agent that breaks it in what it needs, and nothing else", async () => {
      const breaks = [
        "host namespaces (hostNetwork=true)",
        'hostPort (container "agent" uses hostPort 9469)',
        'probe or lifecycle host (container "agent" uses probe or lifecycle host "127.0.0.1")',
        'restricted volume types (volumes "run", "data", "netns", "cni-results", "cni-bin" use restricted volume type "hostPath")',
        'runAsNonRoot != true (pod or container "agent" must set securityContext.runAsNonRoot=true)',
        "runAsUser=0 (pod must not set runAsUser=0)",
      ];
      assert.equal((await security("berth-agent")).split('restricted:latest": ')[1], breaks.join(", "));
    });
  });
}
