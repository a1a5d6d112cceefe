// SPDX-License-Identifier: Apache-2.0
// Who reaches the webhook, by what the chart finds in a cluster.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { merge } from "./agent-calls.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { CHART, helm, mustHelm, type Values } from "./chart-release.ts";
import type { ControlPlane } from "./plane.ts";
import { openControlPlane } from "./shared-plane.ts";

if (havePartsOrSkip(["etcd", "kube-apiserver", "helm"])) {
  describe("the chart", () => {
    let plane: ControlPlane | undefined;
    before(async () => {
      plane = await openControlPlane();
      const connection = plane.connect();
      await connection.call({
        method: "POST",
        path: "/api/v1/namespaces",
        body: { apiVersion: "v1", kind: "Namespace", metadata: { name: "berth-system" } },
      });
    });
    after(() => plane?.close());

    const texts = new Map<string, Promise<string>>(); // values -> what was printed, until there is another node

    /** Manifests and notes of an installation that is only tried. What is right by OpenAPI is for chart-admitted.api-test.ts. */
    async function tried(values: Values = {}): Promise<string> {
      const args = ["install", "berth", CHART, "--namespace", "berth-system", "--dry-run=server"];
      args.push("--disable-openapi-validation", "--take-ownership"); // Berth's definitions may be there
      const key = JSON.stringify(values);
      const text = texts.get(key) ?? mustHelm(args, { values, ...(plane === undefined ? {} : { plane }) });
      texts.set(key, text);
      return await text;
    }

    const sources = (text: string) =>
      [...text.matchAll(/ipBlock: \{ cidr: "(.*)" \}/g)].map(([, cidr]) => cidr);

    async function makeNode(name: string, labels: Readonly<Record<string, string>>): Promise<void> {
      texts.clear();
      const connection = (plane ?? assert.fail()).connect();
      const annotations = { "projectcalico.org/IPv4VXLANTunnelAddr": "10.1.7.1" };
      const node = {
        apiVersion: "v1",
        kind: "Node",
        metadata: { name, labels, annotations },
        spec: { podCIDRs: ["10.1.0.0/24"] },
      };
      assert.equal(
        (await connection.call({ method: "POST", path: "/api/v1/nodes", body: node })).status,
        201,
      );
      const addresses = [
        { type: "InternalIP", address: "192.0.2.7" },
        { type: "InternalIP", address: "2001:db8::7" },
        { type: "Hostname", address: name },
      ];
      const merged = merge(`/api/v1/nodes/${name}/status`, { status: { addresses } });
      assert.equal((await connection.call(merged)).status, 200);
    }

    it("warns where no control plane can be seen, and lets everybody in rather than nobody", async () => {
      await makeNode("worker", {});
      const text = await tried();
      assert.deepEqual(sources(text), []);
      assert.match(
        text,
        /WARNING: ANYBODY WHO REACHES PORT 8443 OF A POD OF THE WEBHOOK CAN SEND IT REVIEWS/,
      );
      assert.doesNotMatch(text, /BERTH_REVIEWERS_BY/);
    });

    it("names the control plane's addresses where it is seen", async () => {
      await makeNode("control", { "node-role.kubernetes.io/control-plane": "" });
      const text = await tried();
      const found = sources(text);
      for (const cidr of ["192.0.2.7/32", "2001:db8::7/128", "10.1.0.0/24", "10.1.7.1/32"])
        assert.ok(found.includes(cidr), `${cidr}: ${found.join(" ")}`);
      assert.doesNotMatch(text, /WARNING/);
      assert.match(text, /BERTH_REVIEWERS_BY, value: NetworkPolicy/);
    });

    it("warns where a policy would not count, and is content with a client certificate", async () => {
      const open = /WARNING: ANYBODY WHO REACHES PORT 8443 OF A NODE OF THE WEBHOOK CAN SEND IT REVIEWS/;
      assert.match(await tried({ webhook: { hostNetwork: true } }), open);
      const clientCA = "-----BEGIN CERTIFICATE-----\nMII=\n-----END CERTIFICATE-----\n";
      const text = await tried({ webhook: { hostNetwork: true, clientCA, clientNames: ["a", "b"] } });
      assert.doesNotMatch(text, /WARNING/);
      assert.match(text, /BERTH_CLIENT_NAMES, value: "a,b"/);
      assert.match(text, /whose CN is one of a, b,\nand whose O is one of berth\.dev:reviewers, /);
    });

    it("lets nobody reach the issuer, which has nothing to say", async () => {
      const policy = /kind: NetworkPolicy\nmetadata:\n {2}name: berth-issuer\n.*?\n {2}ingress: \[\]\n/s;
      assert.match(await tried(), policy);
      const secret = { mode: "secret", secret: { name: "tls", caBundle: "-----BEGIN CERTIFICATE-----" } };
      for (const values of [{ networkPolicy: { enabled: false } }, { certificates: secret }])
        assert.doesNotMatch(await tried(values), /kind: NetworkPolicy\nmetadata:\n {2}name: berth-issuer/);
    });

    it("installs nothing where it must be said who sends reviews, and is not", async () => {
      const fails = async (values: Values) => {
        const given = { ...values, networkPolicy: { required: true, ...(values["networkPolicy"] ?? {}) } };
        const ended = await helm(["template", "berth", CHART], { values: given });
        return /nothing would say who sends reviews, and networkPolicy.required is set/.test(ended.stderr);
      };
      const clientCA = "-----BEGIN CERTIFICATE-----\nMII=\n-----END CERTIFICATE-----\n";
      const from = ["198.51.100.0/24"];
      assert.equal(await fails({}), true);
      assert.equal(await fails({ networkPolicy: { from, enabled: false } }), true);
      assert.equal(await fails({ networkPolicy: { from }, webhook: { hostNetwork: true } }), true);
      assert.equal(await fails({ networkPolicy: { from } }), false);
      assert.equal(await fails({ webhook: { clientCA, hostNetwork: true } }), false);
    });

    it("believes that something else closes the port, and says that it does not know", async () => {
      const values = { networkPolicy: { closedElsewhere: true, required: true } };
      const text = await tried({ ...values, webhook: { hostNetwork: true } });
      assert.doesNotMatch(text, /WARNING/);
      assert.match(text, /BERTH_REVIEWERS_BY, value: ClosedElsewhere/);
      assert.match(text, /You said that something else closes port 8443/);
    });

    it("says that the agents' metrics are open to the nodes' network, where they are", async () => {
      const open = /metrics are on port 9469 of each node's address, for whoever reaches it/;
      assert.doesNotMatch(await tried(), open);
      assert.match(await tried({ agent: { metricsOnNode: true } }), open);
    });

    it("takes scrapers that are everybody for no restriction", async () => {
      const open: Values[] = [
        { namespaceSelector: {} },
        { namespaceSelector: { matchLabels: {} }, podSelector: { matchLabels: { app: "prometheus" } } },
        { ipBlock: { cidr: "0.0.0.0/0" } },
        { ipBlock: { cidr: "::/0", except: ["fd00::/8"] } },
      ];
      const from = ["198.51.100.0/24"];
      const given = (scraper: Values, required: boolean) => ({
        networkPolicy: { from, required, scrapers: [{ podSelector: {} }, scraper] },
      });
      for (const scraper of open) {
        const text = await tried(given(scraper, false));
        assert.match(
          text,
          /WARNING: ANYBODY WHO REACHES PORT 8443 .*lets everybody in by networkPolicy\.scrapers: \{/s,
        );
        assert.doesNotMatch(text, /BERTH_REVIEWERS_BY/);
        const { rc, stderr } = await helm(["template", "berth", CHART], { values: given(scraper, true) });
        assert.equal(rc, 1);
        assert.match(stderr, /networkPolicy\.scrapers: \{.*\} is everybody, who could send reviews, too/);
      }
      for (const scraper of [
        { namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": "monitoring" } } },
        { podSelector: { matchLabels: { app: "prometheus" } } },
        { ipBlock: { cidr: "10.0.0.0/8" } },
      ])
        assert.match(await tried(given(scraper, true)), /BERTH_REVIEWERS_BY, value: NetworkPolicy/);
    });

    it("goes by what is given", async () => {
      const text = await tried({ networkPolicy: { from: ["198.51.100.0/24"] } });
      assert.deepEqual(sources(text), ["198.51.100.0/24"]);
    });
  });
}
