// SPDX-License-Identifier: Apache-2.0
// The chart through the real helm: rendered, or as a release on a control plane.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Ended, run } from "../support/process.ts";
import { parseYamlDocuments } from "../support/yaml.ts";
import type { Manifest } from "./accounts.ts";
import { ON_ONE_PROCESSOR, partOf } from "./binaries.ts";
import type { ControlPlane } from "./plane.ts";

export const CHART = join(import.meta.dirname, "../../charts/berth");

/** What is right by OpenAPI is for chart-admitted.api-test.ts: it costs helm and the API server most of an installation. */
export const UNCHECKED = "--disable-openapi-validation";

export type Values = Readonly<Record<string, unknown>>;

/** Runs helm with these values, and with a home of its own; without a control plane it reaches none. */
export async function helm(
  args: readonly string[],
  { values = {}, plane }: { values?: Values; plane?: ControlPlane } = {},
): Promise<Ended> {
  const env =
    plane === undefined ? { HOME: "/nonexistent" } : { HOME: plane.folder, KUBECONFIG: adminOf(plane) };
  const given = Object.keys(values).length === 0 ? [] : ["--values", "-"];
  return await run(partOf("helm"), [...args, ...given], {
    env: { ...ON_ONE_PROCESSOR, ...env },
    stdin: { text: JSON.stringify(values) },
  });
}

/** The same, where nothing but success will do; gives what it printed. */
export async function mustHelm(
  args: readonly string[],
  options: { values?: Values; plane?: ControlPlane } = {},
): Promise<string> {
  const ended = await helm(args, options);
  assert.equal(ended.rc, 0, `helm ${args.join(" ")}: ${ended.stderr}`);
  return ended.stdout;
}

/** namespace and values -> what helm printed: the chart does not change while a file of tests runs. */
const rendered = new Map<string, Promise<string>>();

/** What would be installed into that namespace. */
export async function render(values: Values = {}, namespace = "berth-system"): Promise<readonly Manifest[]> {
  const key = JSON.stringify([namespace, values]);
  const said =
    rendered.get(key) ?? mustHelm(["template", "berth", CHART, "--namespace", namespace], { values });
  rendered.set(key, said);
  const documents = parseYamlDocuments(await said) as readonly (Manifest | null)[];
  return documents.filter((manifest) => manifest !== null);
}

/** The one object of that kind, and name if there are several. */
export function only(manifests: readonly Manifest[], kind: string, name?: string): Manifest {
  const found = manifests.filter((m) => m.kind === kind && (name === undefined || m.metadata.name === name));
  const [one] = found;
  assert.ok(one !== undefined && found.length === 1, `${found.length} of ${kind} ${name ?? ""}`);
  return one;
}

function adminOf(plane: ControlPlane): string {
  const file = join(plane.folder, "helm.kubeconfig");
  writeFileSync(file, plane.kubeConfig().exportConfig(), { mode: 0o600 });
  return file;
}
