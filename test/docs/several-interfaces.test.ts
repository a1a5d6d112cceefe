// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { it } from "node:test";
import { parseAllDocuments } from "yaml";
import type { PoolSpec } from "../../allocator/pool/pool-spec.ts";
import { readConfig } from "../../ipam-plugin/cni/config.ts";
import { isCniError } from "../../ipam-plugin/cni/errors.ts";
import { validateWorkloads } from "../../webhook/admission/validate-workload.ts";
import { type Json, review, statefulPod } from "../support/objects.ts";
import { admitPod, send } from "../support/reviewing.ts";
import { openWorld } from "../support/world.ts";

const NEVER = new AbortController().signal;

interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly spec: Json;
}

function manifestsOf(path: string): readonly Manifest[] {
  const text = readFileSync(new URL(`../../examples/${path}`, import.meta.url), "utf8");
  return parseAllDocuments(text).map((document) => document.toJS() as Manifest);
}

it("examples/cluster/several-interfaces.yaml gives each ordinal its addresses on both interfaces, without a warning", async () => {
  const all = [...manifestsOf("pools.yaml"), ...manifestsOf("cluster/several-interfaces.yaml")];
  const of = (kind: string) => all.filter((one) => one.kind === kind);
  const [attachment] = of("NetworkAttachmentDefinition");
  const config = readConfig(String(attachment?.spec["config"]));
  assert.ok(!isCniError(config));
  const pools = of("IPPool").map(({ metadata, spec }) => ({
    name: metadata.name,
    spec: spec as unknown as PoolSpec,
  }));
  await using world = await openWorld({ pools });
  const { embedded: _, ...admission } = world.admission;
  const [space] = of("Namespace");
  await send(world, "/validate/namespaces", { ...space });
  const [set] = of("StatefulSet");
  assert.ok(set);
  const judge = validateWorkloads(admission);
  const judged = await judge(review({ ...set, metadata: { ...set.metadata, uid: "u" } }), NEVER);
  assert.deepEqual([judged.allowed, judged.warnings ?? []], [true, []], judged.status?.message);
  const template = (set.spec as { template: { metadata: { annotations: Record<string, string> } } }).template;
  const { annotations } = template.metadata;
  for (const ordinal of [0, 1, 2])
    assert.equal(
      await admitPod(world, statefulPod("broker", ordinal, { annotations })),
      `10.20.0.8${ordinal + 1}@eth0,10.40.0.8${ordinal + 1}@net1`,
    );
});
