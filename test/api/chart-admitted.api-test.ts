// SPDX-License-Identifier: Apache-2.0
// What an API server, Pod Security and other operators' kinds say to the manifests of the chart.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { collectionPath } from "../../kube/api/resource.ts";
import { type Manifest, resourceOfManifest } from "./accounts.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { isForeign, NARROWED, templateNamed, templatesOf, UNREAD, VALUE_SETS } from "./chart-manifests.ts";
import { render } from "./chart-release.ts";
import { define, makeNamespaces } from "./crds.ts";
import { definitionsOf } from "./operators.ts";
import type { ControlPlane } from "./plane.ts";
import { openUndefinedPlane } from "./shared-plane.ts";

if (havePartsOrSkip(["helm", "etcd", "kube-apiserver"])) {
  describe("the manifests of the chart, before a real API server", () => {
    let plane: ControlPlane;
    before(async () => {
      plane = await openUndefinedPlane(); // without Berth's definitions, which are judged too
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

    for (const [title, values] of Object.entries({ ...VALUE_SETS, narrowed: NARROWED, unread: UNREAD })) {
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
