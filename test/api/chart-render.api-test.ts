// SPDX-License-Identifier: Apache-2.0
// What the chart renders of its values: namespaces, files, alerts, definitions; and the values that it refuses.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { parseYaml } from "../support/yaml.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { CERTIFICATE, VALUE_SETS } from "./chart-manifests.ts";
import { CHART, helm, mustHelm, only, render, type Values } from "./chart-release.ts";
import { definitions } from "./crds.ts";

interface Egress {
  readonly ports: readonly { readonly port: number }[];
  readonly to?: unknown;
}

if (havePartsOrSkip(["helm"])) {
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

    for (const [release, agents] of [
      ["my-berth-system", ""],
      ["berth-system-prod", "berth-system-nodes"],
      ["network", "berth-system"],
      ["berth-system", "network"],
    ] as const) {
      it(`is right where it is in ${release}, and its agents in ${agents || "one of their own"}`, async () => {
        const manifests = await render({ agent: { namespace: agents } }, release);
        const there = agents || `${release}-agents`;
        const made = manifests.filter(({ metadata }) => metadata.name === "berth-agent");
        const places = made.map(({ metadata }) => metadata.namespace).filter((one) => one !== undefined);
        assert.deepEqual(places, [there, there], "account and DaemonSet");
        const text = JSON.stringify(manifests);
        const accounts = new Set(text.match(/(?<=serviceaccount:)[^:]*:berth-\w+/g));
        assert.deepEqual(
          [...accounts].sort(),
          [`${there}:berth-agent`, `${release}:berth-issuer`, `${release}:berth-webhook`].sort(),
        );
        const excluded = new Set(text.match(/(?<="operator":"NotIn","values":)\["kube-system"[^\]]*\]/g));
        assert.deepEqual([...excluded], [JSON.stringify(["kube-system", release, there])]);
        const bindings = manifests.filter(({ kind }) => kind === "ClusterRoleBinding");
        for (const { name, namespace } of bindings.flatMap(
          ({ subjects }) => subjects as readonly { name: string; namespace: string }[],
        ))
          assert.equal(namespace, name === "berth-agent" ? there : release);
      });
    }

    for (const [what, apiServer, ports, more] of [
      ["its Service", {}, [443, 6443], []],
      ["an address", { host: "10.0.0.9", port: 8443 }, [443, 6443, 8443], []],
      ["an address of IPv6", { host: "fd00::9", port: 443 }, [443, 6443], []],
      ["a name", { host: "api.example", port: 6443 }, [443, 6443], [[53, 53]]],
    ] as const) {
      it(`lets webhook and issuer reach an API server that is said by ${what}, and nothing else`, async () => {
        const manifests = await render({ apiServer, networkPolicy: { to: ["10.0.0.9/32"] } });
        for (const name of ["berth-webhook", "berth-issuer"]) {
          const { spec } = only(manifests, "NetworkPolicy", name) as unknown as {
            spec: { egress: Egress[] };
          };
          const [first, ...others] = spec.egress;
          assert.deepEqual(first?.to, [{ ipBlock: { cidr: "10.0.0.9/32" } }]);
          assert.deepEqual(
            first.ports.map(({ port }) => port),
            ports,
          );
          assert.deepEqual(
            others.map((rule) => rule.ports.map(({ port }) => port)),
            more,
          );
        }
      });
    }

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
      assert.deepEqual(only(manifests, "PrometheusRule")["spec"], parseYaml(file("alerts.yaml")));
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
      [
        "the plugin under a name that it cannot have",
        { cni: { aliases: ["dhcp"] } },
        "at '/cni/aliases/0': value must be one of",
      ],
      [
        "names for a plugin that nobody installs",
        { cni: { aliases: ["antrea"], install: false } },
        "cni.aliases: cni.install is off",
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
