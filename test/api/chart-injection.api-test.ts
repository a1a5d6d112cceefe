// SPDX-License-Identifier: Apache-2.0
// Values that say more than a value: whoever may set one, as an application's owner of a GitOps tool may, adds no object of his own.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { havePartsOrSkip } from "./binaries.ts";
import { render, type Values } from "./chart-release.ts";

const EVIL = "x\n---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: injected}\n---\n";
const CERTIFICATE = "-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n";
const EVIL_TEXTS = { "evil.example/key": EVIL };
const WORKLOAD = {
  priorityClassName: EVIL,
  podLabels: EVIL_TEXTS,
  podAnnotations: EVIL_TEXTS,
  nodeSelector: EVIL_TEXTS,
  env: { EVIL },
};

/** Every value that may be any text, in the forms of the chart that use it. */
const FORMS: Readonly<Record<string, Values>> = {
  "certificates of its own": {
    image: { tag: EVIL },
    apiServer: { host: EVIL, port: 6443 },
    webhook: {
      ...WORKLOAD,
      metricsSecret: EVIL,
      clientNames: [EVIL],
      clientOrganizations: [EVIL],
      clientCA: CERTIFICATE,
    },
    agent: { ...WORKLOAD, seLinuxOptions: { user: EVIL, role: EVIL, type: EVIL, level: EVIL } },
    monitoring: {
      serviceMonitor: { enabled: true, labels: EVIL_TEXTS },
      podMonitor: { enabled: true, labels: EVIL_TEXTS },
      alerts: { enabled: true, labels: EVIL_TEXTS },
      dashboard: { enabled: true, labels: EVIL_TEXTS, annotations: EVIL_TEXTS },
    },
  },
  "cert-manager's": {
    certificates: {
      mode: "cert-manager",
      certManager: { issuerRef: { name: EVIL, kind: EVIL, group: EVIL } },
    },
  },
  "those of a Secret": {
    certificates: {
      mode: "secret",
      secret: { name: EVIL, caBundle: CERTIFICATE + EVIL },
    },
  },
};

if (havePartsOrSkip(["helm"])) {
  describe("values with objects in them", () => {
    for (const [name, values] of Object.entries(FORMS)) {
      it(`stay values, with ${name}`, async () => {
        const honest = names(await render(textsOf(values, "x")));
        assert.deepEqual(names(await render(values)), honest);
      });
    }
  });
}

/** The same values with another text in the place of each. */
function textsOf(values: Values, text: string): Values {
  const replaced = JSON.stringify(values).replaceAll(JSON.stringify(EVIL).slice(1, -1), text);
  return JSON.parse(replaced) as Values;
}

function names(manifests: Awaited<ReturnType<typeof render>>): readonly string[] {
  return manifests.map(({ kind, metadata }) => `${kind} ${metadata.name}`).toSorted();
}
