// SPDX-License-Identifier: Apache-2.0
// Values that cannot be right: `helm template` says in words which, and what would be.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { havePartsOrSkip } from "./binaries.ts";
import { CERTIFICATE, templateNamed } from "./chart-manifests.ts";
import { CHART, helm, render, type Values } from "./chart-release.ts";

const network = (plugins: unknown): Values => ({
  cni: { conflist: JSON.stringify({ cniVersion: "1.0.0", name: "pods", plugins }) },
});
const from = (cidr: string): Values => ({ networkPolicy: { from: [cidr] } });
const NO_RANGE = (cidr: string) =>
  `networkPolicy.from: "${cidr}" is no address range; write it as 10.0.0.0/24 or fd00::/64`;
const OPEN = "is everybody, who could send reviews, too, and networkPolicy.required is set";
const scraping = (scraper: Values): Values => ({
  networkPolicy: { from: ["192.0.2.1/32"], required: true, scrapers: [scraper] },
});
const onNode = (ports: Values): Values => ({ webhook: { hostNetwork: true }, ...ports });

const REFUSED: readonly (readonly [what: string, values: Values, words: string])[] = [
  [
    "an ipam of somebody else's",
    network([{ type: "macvlan", ipam: { type: "host-local" } }, { type: "portmap" }]),
    'cni.conflist: no plugin has "ipam": {"type": "berth"} (there is host-local)',
  ],
  ["no ipam", network([{ type: "macvlan" }]), "(there is no ipam), so nothing would ask Berth"],
  ["an ipam without a type", network([{ type: "macvlan", ipam: { mode: "x" } }]), "(there is nothing)"],
  ["a plugin without a type", network([{ ipam: { type: "berth" } }]), "each of plugins has a type"],
  ["a plugin that is none", network([3]), "each of plugins has a type"],
  ["plugins that are no list", network({ type: "macvlan" }), "has cniVersion, name and plugins"],
  [
    "the agent's port for the webhook",
    { webhook: { hostNetwork: true, port: 9469 } },
    "agent.port and webhook.port are both 9469: with webhook.hostNetwork they are ports of the same node",
  ],
  [
    "the issuer's port for the webhook",
    { webhook: { hostNetwork: true, port: 9470 } },
    "certificates.issuer.port and webhook.port are both 9470",
  ],
  [
    "the issuer's port for the agent",
    onNode({ agent: { port: 9470 } }),
    "agent.port and certificates.issuer.port are both 9470",
  ],
  [
    "everybody as the source of reviews",
    { networkPolicy: { from: ["198.51.100.0/24", "0.0.0.0/0"] } },
    "networkPolicy.from: 0.0.0.0/0 is everybody",
  ],
  [
    "everybody of IPv6 as the source of reviews",
    { networkPolicy: { from: ["::/0"], required: true } },
    "networkPolicy.from: ::/0 is everybody",
  ],
  ...["128.0.0.0/1", "8.0.0.0/7", "2000::/3"].map(
    (cidr) =>
      [`a great part of everybody: ${cidr}`, from(cidr), `networkPolicy.from: ${cidr} is every`] as const,
  ),
  ...[
    { ipBlock: { cidr: "0.0.0.0/1" } },
    { namespaceSelector: { matchExpressions: [{ key: "kubernetes.io/metadata.name", operator: "Exists" }] } },
    { namespaceSelector: { matchExpressions: [{ key: "team", operator: "DoesNotExist" }] } },
    { namespaceSelector: { matchExpressions: [{ key: "team", operator: "NotIn", values: ["shop"] }] } },
  ].map(
    (scraper) =>
      [`a scraper that is everybody: ${JSON.stringify(scraper)}`, scraping(scraper), OPEN] as const,
  ),
  [
    "a variable that the chart sets",
    { webhook: { env: { BERTH_PORT: "1" } } },
    "webhook.env: BERTH_PORT is set by the chart (webhook.port)",
  ],
  [
    "certificates from where the chart knows nothing of",
    { agent: { env: { BERTH_ETCD_CERTIFICATES: "/x" } } },
    "agent.env: BERTH_ETCD_CERTIFICATES is set by the chart (agent.etcdSecret)",
  ],
  [
    "one of Kubernetes' that it sets",
    { agent: { env: { KUBERNETES_SERVICE_HOST: "x" } } },
    "agent.env: KUBERNETES_SERVICE_HOST is set by the chart (apiServer)",
  ],
  ...["NODE_COMPILE_CACHE", "MALLOC_ARENA_MAX", "MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_"].map(
    (name) =>
      [`its ${name}`, { agent: { env: { [name]: "4" } } }, `agent.env: ${name} is set by the chart`] as const,
  ),
  [
    "a variable that nobody reads",
    { agent: { env: { BERTH_DATADIR: "x" } } },
    "agent.env: Berth reads no variable BERTH_DATADIR; it has BERTH_CNI_ALIASES,",
  ],
  ...["10.0.0.0/33", "10.0.0.256/24", "10.0.0.1", "web", "::::/24", "fd00::/129", "1:2:3:4:5:6:7:8::/64"].map(
    (cidr) => [`the range ${cidr}`, from(cidr), NO_RANGE(cidr)] as const,
  ),
  ["a range to send to", { networkPolicy: { to: ["10.0.0.0/33"] } }, 'networkPolicy.to: "10.0.0.0/33" is'],
  [
    "a scraper's range",
    { networkPolicy: { scrapers: [{ ipBlock: { cidr: "10.0.0.0/8", except: ["10.1.0.0"] } }] } },
    'networkPolicy.scrapers: "10.1.0.0" is no address range',
  ],
  ["a scraper's range that is none", { networkPolicy: { scrapers: [{ ipBlock: {} }] } }, "cidr"],
  ...["name", "instance", "version", "component"].map((name) => {
    const label = `app.kubernetes.io/${name}`;
    const words = `webhook.podLabels: ${label} is set by the chart; podLabels is for other labels`;
    return [`the chart's label ${name}`, { webhook: { podLabels: { [label]: "x" } } }, words] as const;
  }),
  [
    "the chart's label on agents",
    { agent: { podLabels: { "app.kubernetes.io/component": "x" } } },
    "agent.podLabels: app.kubernetes.io/component is set by the chart",
  ],
  [
    "a certificate for seconds",
    { certificates: { leafLife: "59m59s" } },
    "certificates.leafLife: 59m59s is too short",
  ],
  [
    "an authority that ends too soon",
    { certificates: { leafLife: "1h30m", authorityLife: "4h29m" } },
    "certificates.authorityLife: 4h29m is too short; the authority lasts for three times certificates.leafLife",
  ],
  ...["leafLife", "authorityLife"].map(
    (name) =>
      [
        `a ${name} that no duration has`,
        { certificates: { authorityLife: "2562047h47m", [name]: "2562048h" } },
        `certificates.${name}: 2562048h is too long`,
      ] as const,
  ),
  ["a port of the agent's that needs a capability", { agent: { port: 1023 } }, "at '/agent/port': minimum"],
  [
    "names of no authority's clients",
    { webhook: { clientNames: ["kube-apiserver"] } },
    "say which certificates of webhook.clientCA are let in, and there is none",
  ],
  [
    "a tag in the repository",
    { image: { repository: "registry:5000/net/berth:1.2" } },
    'image.repository: "registry:5000/net/berth:1.2" has a tag or digest',
  ],
  ["a port in the host", { apiServer: { host: "api.example:6443" } }, "apiServer.host: "],
  ["an address of the web as host", { apiServer: { host: "https://api.example" } }, "apiServer.host: "],
];

const TAKEN: readonly (readonly [what: string, values: Values])[] = [
  ["the ports of pods", { webhook: { port: 9469 } }],
  [
    "an issuer's port where there is none",
    { ...onNode({ certificates: { mode: "cert-manager" } }), agent: { port: 9470 } },
  ],
  [
    "a delegate's ipam",
    network([{ type: "multus", delegates: [{ type: "macvlan", ipam: { type: "berth" } }] }]),
  ],
  [
    "other variables",
    { webhook: { env: { NODE_OPTIONS: "--a", BERTH_HOST: "::1" } }, agent: { env: { A: 1 } } },
  ],
  ...["fd00::/8", "2001:db8::1/128", "1:2:3:4:5:6:7:8/127", "1:2:3:4:5:6:7::/112"].map(
    (cidr) => [`the range ${cidr}`, from(cidr)] as const,
  ),
  ...[
    { ipBlock: { cidr: "10.0.0.0/8" } },
    { podSelector: {} },
    { namespaceSelector: { matchLabels: { team: "net" } } },
    { namespaceSelector: { matchExpressions: [{ key: "team", operator: "In", values: ["net"] }] } },
    { namespaceSelector: { matchExpressions: [{ key: "scrapes", operator: "Exists" }] } },
  ].map((scraper) => [`a scraper ${JSON.stringify(scraper)}`, scraping(scraper)] as const),
  ["a short life", { certificates: { leafLife: "1h30m", authorityLife: "4h30m" } }],
  ["the longest life", { certificates: { authorityLife: "2562047h47m16s" } }],
  ["clients of an authority", { webhook: { clientCA: CERTIFICATE, clientNames: ["kube-apiserver"] } }],
  ["a registry's port", { image: { repository: "registry:5000/net/berth" } }],
  ["an address as host", { apiServer: { host: "fd00::1" } }],
];

describe("Berth's own variables in the chart", () => {
  for (const [part, config] of [
    ["webhook", "webhook/config.ts"],
    ["agent", "ipam-plugin/agent/config.ts"],
  ] as const) {
    it(`of the ${part} are those of ${config}`, () => {
      const source = readFileSync(join(CHART, "../..", config), "utf8");
      const read = [...source.matchAll(/^ \* \| `(BERTH_[A-Z_]+)`/gm)].map(([, name]) => name);
      const checks = readFileSync(join(CHART, "templates/_checks.tpl"), "utf8");
      const [, own = ""] = new RegExp(`^${part}:\\n((?: {2}BERTH_.*\\n)+)`, "m").exec(checks) ?? [];
      assert.deepEqual(
        [...own.matchAll(/^ {2}(BERTH_[A-Z_]+):/gm)].map(([, name]) => name).sort(),
        read.sort(),
      );
    });
  }
});

if (havePartsOrSkip(["helm"])) {
  describe("the chart with values that cannot be right", () => {
    for (const [what, values, words] of REFUSED) {
      it(`is refused in words: ${what}`, async () => {
        const { rc, stderr } = await helm(["template", "berth", CHART], { values });
        assert.equal(rc, 1);
        assert.ok(stderr.includes(words), stderr);
      });
    }
    it("has variables as they were written, and each once", async () => {
      const env = { A: 1_048_576, B: 0.25, C: true, D: 'x "y" \\', E: 1_234_567.5, MALLOC_X: "1e6" };
      const manifests = await render({ agent: { env }, webhook: { env } });
      for (const name of ["berth-agent", "berth-webhook"]) {
        const set = templateNamed(manifests, name).spec.containers.flatMap((container) => container.env);
        assert.equal(new Set(set.map((one) => one.name)).size, set.length);
        for (const [key, value] of Object.entries(env))
          assert.equal(set.find((one) => one.name === key)?.value, String(value), key);
      }
    });

    for (const [what, values] of TAKEN) {
      it(`is taken with ${what}`, async () => {
        const { rc, stderr } = await helm(["template", "berth", CHART], { values });
        assert.equal(rc, 0, stderr);
      });
    }
  });
}
