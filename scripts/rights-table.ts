// SPDX-License-Identifier: Apache-2.0
import { parse, parseAllDocuments } from "yaml";
import { mountsSection } from "./rights-mounts.ts";
import { REASONS } from "./rights-reasons.ts";

/** Of the chart. */
interface Templates {
  readonly access: string;
  readonly agent: string;
  readonly webhook: string;
}

interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly resourceNames?: readonly string[];
  readonly verbs: readonly string[];
}

interface Role {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
  readonly rules?: readonly Rule[];
}

interface Right {
  readonly role: string;
  readonly scope: string;
  /** `ipclaims.berth.dev/status`, with the name it is for. */
  readonly what: string;
  readonly verbs: readonly string[];
}

const HEAD = `<!-- SPDX-License-Identifier: Apache-2.0 -->
# Every right, and why

Written by \`node scripts/rights.ts --write\` from the chart's roles. One test compares them; another one shows, on a real API server, that each
right is used (\`test/api/access-life.api-test.ts\`, \`test/api/access-seldom.api-test.ts\`, \`test/api/issuer.api-test.ts\`). A role can name only kinds and objects;
[policies](../charts/berth/files/policies/README.md) restrict accounts further, as the text above each table says. No account may
write pods, read Secrets other than those named here, create tokens, or change roles or policies.
`;

const TAIL = `
Berth binds \`berth-view\` and \`berth-edit\` to nobody: Kubernetes adds them to its roles view, edit and admin. \`berth-pool-admin\`
is for the people to whom you bind it.
`;

/** The document; throws for a right without a reason, and for a reason without its right. */
export function rightsDocument(manifests: readonly string[], templates: Templates): string {
  const roles = manifests.flatMap((text) => parseAllDocuments(text).map((one) => one.toJS() as Role));
  const rights = [...roles.flatMap(rightsOf), ...rightsByValue(templates.access)];
  const used = new Set<string>();
  const sections = Object.entries(REASONS).map(([role, { title, narrowed, why }]) => {
    const rows = rights
      .filter((right) => right.role === role)
      .map((right) => {
        used.add(`${role} ${right.what}`);
        const reason = why[right.what];
        if (reason === undefined) throw new Error(`${role}: nobody says why it has ${right.what}`);
        return `| \`${right.what}\` | ${right.verbs.join(", ")} | ${right.scope} | ${reason} |`;
      });
    for (const what of Object.keys(why))
      if (!used.has(`${role} ${what}`)) throw new Error(`${role} has no right to ${what}`);
    const table = ["| on | may | where | why |", "|---|---|---|---|", ...rows].join("\n");
    return `\n## ${title}\n${narrowed === "" ? "" : `\n${narrowed}\n`}\n${table}\n`;
  });
  const unknown = rights.find(({ role }) => !(role in REASONS));
  if (unknown !== undefined) throw new Error(`nobody says why ${unknown.role} has its rights`);
  return HEAD + sections.join("") + mountsSection(templates.agent, templates.webhook) + TAIL;
}

function rightsOf({ kind, metadata, rules = [] }: Role): readonly Right[] {
  if (!kind.endsWith("Role")) return [];
  const scope = kind === "ClusterRole" ? "cluster" : "Berth's namespace";
  return rules.flatMap(({ apiGroups, resources, resourceNames = [""], verbs }) =>
    resources.flatMap((resource) => {
      const [plural = "", subresource] = resource.split("/");
      const [group = ""] = apiGroups;
      const whole = `${plural}${group === "" ? "" : `.${group}`}`;
      const target = subresource === undefined ? whole : `${whole}/${subresource}`;
      return resourceNames.map((name) => {
        return { role: metadata.name, scope, what: name === "" ? target : `${target} ${name}`, verbs };
      });
    }),
  );
}

/** The roles that depend on a value of the chart, and their rules. */
const BY_VALUE: Readonly<Record<string, RegExp>> = {
  "berth-agent-nodes": /- \{ apiGroups: \[""\], resources: \[nodes\], verbs: \[get\] \}/g,
  "berth-webhook-nodes": /- \{ apiGroups: \[""\], resources: \[nodes\], verbs: \[patch\] \}/g,
  "berth-webhook-cilium": /- \{ apiGroups: \[cilium.io\].*\}/g,
  "berth-webhook-owners": /- \{ apiGroups: \[apps\], resources: \[replicasets\].*\}/g,
};

function rightsByValue(access: string): readonly Right[] {
  return Object.entries(BY_VALUE).flatMap(([name, rule]) => {
    const rules = (access.match(rule) ?? []).flatMap((text) => parse(text) as readonly Rule[]);
    return rightsOf({ kind: "ClusterRole", metadata: { name }, rules });
  });
}
