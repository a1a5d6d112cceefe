// SPDX-License-Identifier: Apache-2.0

import { isConflict, ownedAs } from "../../../allocator/blocks/node-cidr-grant.ts";
import type { Context } from "../../../allocator/cache/context.ts";
import type { Block } from "../../../allocator/model/block.ts";
import type { Stored } from "../../../allocator/store/store.ts";
import type { Body, Client } from "../../../kube/api/client.ts";
import { type CiliumNode, MARKS, readCiliumNode } from "./cilium-node.ts";
import type { CiliumPlan } from "./plan.ts";

/** Changes with every block that goes back: no write that was decided before comes after it. */
const WITHDRAWN = "berth.dev/cilium-withdrawn";
/** What is not Berth's is left as it is. */
const OWN_ERROR = "berth: ";
/** So many writes for one node in one go, then others have their turn. */
const MOST_STEPS = 32;
/** Of what is wrong with a node. */
const MOST_TOLD = 8;
const MOST_CHARACTERS = 500;

export interface NodeView {
  readonly node: CiliumNode;
  readonly blocks: readonly Stored<"block">[];
}

interface WriterDeps {
  readonly context: Pick<Context, "store" | "clock">;
  readonly client: Client;
  readonly mayWrite: () => boolean;
}

/** What became of one step: what is there now; undefined: somebody else wrote, and it is to be looked at again. */
type Step = NodeView | undefined;

/**
 * Carries out what is planned for one node, one write at a time, each against what the plan has seen; after each it is planned again.
 * It may end between any two.
 *
 * An object of Cilium's is written only as it was seen (`resourceVersion`): neither a list nor a generation would do, for an agent takes out
 * what was put in, and then all looks as before. A block is published by who has read its record after the object, and goes back when it
 * was recalled, the object was written without it, and its record is as it was before that.
 */
export async function carryOut(
  deps: WriterDeps,
  nodeUID: string,
  seen: NodeView,
  plan: (view: NodeView) => CiliumPlan,
): Promise<{ readonly plan: CiliumPlan; readonly view: NodeView }> {
  let view = seen;
  for (let n = 0; n < MOST_STEPS; n++) {
    const planned = plan(view);
    const step = nextStep(deps, nodeUID, view, planned);
    if (step === undefined || !deps.mayWrite()) return { plan: planned, view };
    const after = await step();
    if (after === undefined) return { plan: { ...planned, grants: [] }, view };
    view = after;
  }
  return { plan: { ...plan(view), grants: [] }, view };
}

/** The first write of those that are planned: an undone recall comes before all that relies on it. */
function nextStep(
  deps: WriterDeps,
  nodeUID: string,
  view: NodeView,
  plan: CiliumPlan,
): (() => Promise<Step>) | undefined {
  const [kept] = plan.keep;
  if (kept !== undefined) return () => change(deps, view, kept, ({ recalledAt: _, ...record }) => record);
  if (plan.publishes.length > 0) return () => publish(deps, nodeUID, view, plan);
  const [recalled] = plan.recall;
  const recalledAt = deps.context.clock.now();
  if (recalled !== undefined)
    return () => change(deps, view, recalled, (record) => ({ ...record, recalledAt }));
  const error = errorOf(view.node, plan.wrong);
  if (Object.keys(plan.releases).length > 0 || error !== undefined) {
    const ipam = {
      ...(Object.keys(plan.releases).length === 0 ? {} : { "release-ips": plan.releases }),
      ...(error === undefined ? {} : { "operator-status": { error } }),
    };
    return () => write(deps, view, { status: { ipam } }, { subresource: "status" });
  }
  if (Object.keys(plan.edits).length > 0) return () => write(deps, view, { spec: { ipam: plan.edits } });
  return plan.withdraws.length > 0 ? () => withdraw(deps, view, plan) : undefined;
}

/** Undefined: it stays what it is. */
function errorOf({ operatorError }: CiliumNode, wrong: readonly string[]): string | undefined {
  const wanted = wrong.length === 0 ? "" : `${OWN_ERROR}${inShort(wrong)}`;
  if (wanted === operatorError) return undefined;
  return operatorError === "" || operatorError.startsWith(OWN_ERROR) ? wanted : undefined;
}

/** An object takes 1.5 MB at most, and nobody reads thousands. */
function inShort(wrong: readonly string[]): string {
  const named = wrong
    .slice(0, MOST_TOLD)
    .map((words) => (words.length > MOST_CHARACTERS ? `${words.slice(0, MOST_CHARACTERS)}...` : words));
  const more = wrong.length - named.length;
  return [...named, ...(more > 0 ? [`and ${more} more`] : [])].join("; ");
}

/** By compare and set on the record as it was seen. */
async function change(
  { context: { store } }: WriterDeps,
  view: NodeView,
  cidr: string,
  changed: (record: Block) => Block,
): Promise<Step> {
  const stored = view.blocks.find(({ key }) => key === cidr);
  if (stored === undefined) return undefined;
  const result = await store.replace("block", stored, changed(stored.record));
  return result.kind === "replaced" ? withRecord(view, result.stored) : undefined;
}

function withRecord({ node, blocks }: NodeView, stored: Stored<"block">): NodeView {
  return { node, blocks: blocks.map((one) => (one.key === stored.key ? stored : one)) };
}

async function write(
  { client }: WriterDeps,
  { node, blocks }: NodeView,
  body: Body,
  about: { readonly subresource?: "status"; readonly mayBeUnknown?: boolean } = {},
): Promise<Step> {
  const { subresource, mayBeUnknown = false } = about;
  const { uid, resourceVersion } = node;
  const metadata = { ...(body["metadata"] as Body | undefined), uid, resourceVersion };
  const patch = { type: "merge", body: { ...body, metadata }, mayBeUnknown } as const;
  const item = await client.patch({ name: node.name }, patch, subresource);
  return item === undefined ? undefined : { node: readCiliumNode(item), blocks };
}

/** First the records: whoever takes one away has recalled it, or finds that it is not as it was. */
async function publish(
  deps: WriterDeps,
  nodeUID: string,
  view: NodeView,
  { adds, publishes }: CiliumPlan,
): Promise<Step> {
  const { store } = deps.context;
  let now = view;
  for (const cidr of publishes) {
    const read = await store.get("block", cidr);
    if (read === undefined || read.record.use !== "Cilium") return undefined;
    const owned = await ownedAs(store, read, { node: view.node.name, nodeUID });
    if (isConflict(owned) || owned.record.recalledAt !== undefined) return undefined;
    now = withRecord(now, owned);
  }
  // Cilium's definitions since 1.15 have no marks
  return await write(deps, now, { spec: { ipam: adds } }, { mayBeUnknown: MARKS.growBelow in adds });
}

/** First the object, so that nothing that was decided before can publish it again; then the record. */
async function withdraw(deps: WriterDeps, view: NodeView, plan: CiliumPlan): Promise<Step> {
  const going = view.blocks.filter(({ key }) => plan.withdraws.includes(key));
  const [first] = going;
  if (first === undefined || going.some(({ record }) => record.recalledAt === undefined)) return undefined;
  const token = going.map(({ uid, revision }) => `${uid}@${revision}`).join();
  const body = { metadata: { annotations: { [WITHDRAWN]: token } }, spec: { ipam: plan.removes } };
  const written = await write(deps, view, body);
  if (written === undefined) return undefined;
  const { store, clock } = deps.context;
  const gone = new Set<string>();
  for (const stored of going) {
    if (!deps.mayWrite()) return undefined;
    const cooling: Block = { ...stored.record, releasedAt: clock.now() };
    if ((await store.replace("block", stored, cooling)).kind === "replaced") gone.add(stored.key);
  }
  if (gone.size < going.length) return undefined;
  return { node: written.node, blocks: written.blocks.filter(({ key }) => !gone.has(key)) };
}
