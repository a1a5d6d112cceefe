// SPDX-License-Identifier: Apache-2.0
// docs/rights.md says what the chart's roles give: no more, no less, each with its reason.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { rightsDocument } from "../../scripts/rights-table.ts";

const ROOT = join(import.meta.dirname, "../..");
const FILES = ["webhook.yaml", "issuer.yaml", "agent.yaml", "people.yaml"];
const read = (name: string) => readFileSync(join(ROOT, name), "utf8");
const manifests = FILES.map((name) => read(`charts/berth/files/rbac/${name}`));
const template = (name: string) => read(`charts/berth/templates/${name}.yaml`);
const templates = {
  access: template("access"),
  agent: template("agent"),
  webhook: template("webhook"),
};

describe("docs/rights.md", () => {
  it("is what the chart's roles say", () => {
    assert.equal(
      read("docs/rights.md"),
      rightsDocument(manifests, templates),
      "node scripts/rights.ts --write",
    );
  });

  it("has no right without a reason", () => {
    const more = `${manifests[0]}\n---\nkind: ClusterRole\nmetadata: { name: berth-webhook }\nrules:\n  - { apiGroups: [""], resources: [configmaps], verbs: [get] }\n`;
    assert.throws(
      () => rightsDocument([more, ...manifests.slice(1)], templates),
      /nobody says why it has configmaps/,
    );
    const other = `kind: Role\nmetadata: { name: berth-other }\nrules:\n  - { apiGroups: [""], resources: [pods], verbs: [get] }\n`;
    assert.throws(() => rightsDocument([...manifests, other], templates), /why berth-other has its rights/);
  });

  it("has no reason without a right", () => {
    const less = manifests.map((text) => text.replace("subjectaccessreviews", "selfsubjectreviews"));
    assert.throws(
      () => rightsDocument(less, templates),
      /nobody says why it has selfsubjectreviews|no right to/,
    );
    const without = manifests.map((text) => text.replace(/^.*subjectaccessreviews.*$/m, ""));
    assert.throws(() => rightsDocument(without, templates), /no right to subjectaccessreviews/);
  });

  it("has every folder of the node and every Secret that pods mount, with its reason", () => {
    const agent = `${templates.agent}\n        - { name: etc, hostPath: { path: /etc } }\n`;
    assert.throws(
      () => rightsDocument(manifests, { ...templates, agent }),
      /nobody says why it has the volume etc/,
    );
    const webhook = templates.webhook.replace(/^.*name: metrics, secret.*$/m, "");
    assert.throws(
      () => rightsDocument(manifests, { ...templates, webhook }),
      /berth-webhook has no volume metrics/,
    );
    assert.match(
      rightsDocument(manifests, templates),
      /^\| berth-agent \| `\/run\/berth` of the node \| read, write \|/m,
    );
  });
});
