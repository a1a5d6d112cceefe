// SPDX-License-Identifier: Apache-2.0

import { isRefusal, type Refusal } from "../../allocator/base/errors.ts";
import type { Address } from "../../allocator/ip/address.ts";
import { requestKeysIn } from "../../allocator/manifest/annotations.ts";
import { readKeysIn } from "../../allocator/manifest/dialects.ts";
import { type KubeObject, readObject } from "../../allocator/manifest/kubernetes-object.ts";
import { type Dialects, OWN_OF_EACH } from "../../allocator/model/dialect.ts";
import { type ManifestObject, readDocuments } from "../apply/documents.ts";
import { type KindFacts, kindNamed, MANAGED } from "../apply/kinds.ts";
import { claimKeyOf, subjectOf, titleAsWritten } from "../apply/object-ref.ts";
import { reportError, reportWarning } from "../apply/report.ts";
import { isThereSo, replicasAfter } from "../apply/unchanged-workload.ts";
import { type Backend, namespaceFor } from "../backend/backend.ts";
import { ifAllowed } from "../backend/if-allowed.ts";
import { installedDialects } from "../backend/installed-dialects.ts";
import { withBackend } from "../backend/open-backend.ts";
import { ManifestDryRun } from "../explain/dry-run.ts";
import { type DryRunner, letThrough, rowOf } from "../explain/dry-runner.ts";
import { judgeBeside } from "../explain/manifest-aside.ts";
import { nodesNow } from "../explain/nodes-now.ts";
import { occupyAll } from "../explain/occupied-addresses.ts";
import type { Command, CommandContext, ExitCode } from "../terminal/command.ts";
import {
  NAMESPACE,
  needlessArgument,
  refuseTwoNamespaces,
  TARGET_FLAGS,
  usageError,
} from "../terminal/flags.ts";
import { columns } from "../terminal/output.ts";
import { addressNamed } from "./address-named.ts";
import { explainAddress, explainOne } from "./explain-one.ts";

/** `berthctl explain` */
export const explain: Command = {
  name: "explain",
  summary: "say why a pod, claim or address is in its state, or what the pods of a file would get",
  onlyReads: true,
  usage: [
    "explain pod [NAMESPACE/]NAME | claim [NAMESPACE/]NAME | ADDRESS|MAC [-n NS] [--data DIR | --context NAME]",
    "explain -f FILE|DIR|- [-f ...] [--data DIR | --context NAME]",
  ],
  flags: {
    file: {
      type: "string",
      short: "f",
      multiple: true,
      value: "FILE|DIR|-",
      about: "what its pods would get; YAML or JSON, - for standard input; may be given more than once",
    },
    namespace: NAMESPACE,
    ...TARGET_FLAGS,
  },
  examples: [
    "berthctl explain pod/shop/mysql-0",
    "berthctl explain claim/mysql-0 -n shop",
    "berthctl explain 10.20.0.51",
    "berthctl explain -f mysql.yaml",
  ],
  async run(args, context) {
    const files = args.texts("file");
    if (files.length > 0) {
      args.expect();
      const { objects } = await readDocuments(files, context.io);
      return await withBackend(context, "read", (backend) => explainAll(backend, objects, context));
    }
    const [operand, name, needless] = args.operands;
    if (operand === undefined)
      throw usageError(
        "say what to explain: pod [NAMESPACE/]NAME, claim [NAMESPACE/]NAME, an address, or -f FILE",
      );
    if (needless !== undefined) throw needlessArgument(needless);
    const subject = subjectNamed(name === undefined ? operand : `${operand}/${name}`);
    return await withBackend(context, "read", (backend) => {
      if (subject.kind === "address")
        return explainAddress(backend, { ...subject, given: args.text("namespace") }, context);
      refuseTwoNamespaces(subject.rest, args.text("namespace"));
      const key = claimKeyOf(subject.rest, namespaceFor(backend, args.text("namespace")));
      if (isRefusal(key)) throw usageError(key.message);
      return explainOne(backend, { kind: subject.kind, ...key }, context);
    });
  },
};

type Named =
  | { readonly kind: "address"; readonly address: Address }
  | { readonly kind: "Pod" | "IPClaim"; readonly rest: string };

function subjectNamed(operand: string): Named {
  const address = addressNamed(operand);
  if (address !== undefined) return { kind: "address", address };
  const [name = "", ...rest] = operand.split("/");
  const bare = rest.length === 0 ? kindNamed(operand) : undefined;
  if (bare?.kind === "Pod" || bare?.kind === "IPClaim")
    throw usageError(
      `say which ${bare.kind === "Pod" ? "pod" : "claim"}: explain ${operand} [NAMESPACE/]NAME`,
    );
  const known = rest.length === 0 ? undefined : kindNamed(name);
  const { kind } = known ?? {};
  if (kind === "Pod" || kind === "IPClaim") return { kind, rest: rest.join("/") };
  throw usageError(`${JSON.stringify(operand)} ${insteadOf(operand, known)}`);
}

const NONE_OF_THEM = "is neither pod/[NAMESPACE/]NAME, claim/[NAMESPACE/]NAME nor an address";

/** What somebody may have meant who named something else. */
function insteadOf(operand: string, known: KindFacts | undefined): string {
  if (known?.listing === "workloads")
    return `has pods and no address of its own: explain one of them, pod/[NAMESPACE/]NAME, or with -f FILE what its pods would get`;
  if (known?.listing !== undefined)
    return `cannot be explained; what there is of it: berthctl get ${operand} -o yaml`;
  const isBareName = /^[a-z0-9][-a-z0-9.]*$/.test(operand) && kindNamed(operand) === undefined;
  return isBareName ? `${NONE_OF_THEM}; did you mean pod/${operand} or claim/${operand}?` : NONE_OF_THEM;
}

async function explainAll(
  backend: Backend,
  objects: readonly ManifestObject[],
  { io }: CommandContext,
): Promise<ExitCode> {
  const dialects = await dialectsFor(backend, objects, io);
  const read = dialects === undefined ? {} : { dialects };
  const nodes = await nodesNow(backend);
  const given = { ...read, nodes: () => nodes, clock: io.clock, random: io.random };
  const forecast = await ManifestDryRun.on(backend, given);
  await occupyAll(forecast.view, backend);
  const results: DryRunner[] = [];
  let code: ExitCode = 0;
  for (const object of objects.toSorted((a, b) => MANAGED.indexOf(a.kind) - MANAGED.indexOf(b.kind))) {
    const subject = subjectOf(object);
    const parsed = isRefusal(subject) ? subject : readObject(subject.json);
    if (isRefusal(parsed)) {
      reportError(io, `${titleAsWritten(object)}: ${parsed.message}`);
      code = 1;
      continue;
    }
    const { rows, warnings } = await dryRunObject({ forecast, backend, ...read }, parsed);
    for (const warning of [...misplacedIn(parsed), ...warnings]) reportWarning(io, warning);
    results.push(...rows);
  }
  io.stdout.write(columns(results.map(rowOf)));
  if (results.length === 0 && objects.length > 0 && code === 0)
    io.stdout.write("nothing is refused, and nothing asks for an address\n");
  return results.some(({ outcome }) => isRefusal(outcome)) ? 1 : code;
}

const DIALECTS_UNKNOWN =
  "Berth's Deployment cannot be read, so that annotations of other systems are judged by the chart's default, dialects: own\n";

/** Which requests in other systems' words the installation reads; undefined: all, as on one host. */
async function dialectsFor(
  { place, world }: Backend,
  objects: readonly ManifestObject[],
  { stderr }: CommandContext["io"],
): Promise<Dialects | undefined> {
  if (place !== "cluster") return undefined;
  const known = await installedDialects(world);
  if (known === undefined && objects.some(speaksOtherwise)) stderr.write(DIALECTS_UNKNOWN);
  return known ?? OWN_OF_EACH;
}

function speaksOtherwise({ json }: ManifestObject): boolean {
  const text = JSON.stringify(json);
  const keys = [...text.matchAll(/"([^"\\]{1,320})":/g)].map(([, key = ""]) => [key, ""] as const);
  return readKeysIn(Object.fromEntries(keys)).length > 0;
}

/** What the object would get, unless admission refuses it for what it says. */
async function dryRunObject(
  {
    forecast,
    backend: { world, place },
    dialects,
  }: { readonly forecast: ManifestDryRun; readonly backend: Backend; readonly dialects?: Dialects },
  object: KubeObject,
): Promise<{ readonly rows: readonly DryRunner[]; readonly warnings: readonly string[] }> {
  // The rules take longer to load than the rest of berthctl takes to run.
  const { judgeManifest } = await import("../explain/manifest-rules.ts");
  const { kind, metadata } = object;
  const { refusal, warnings, idle } = await judgeManifest(forecast.view, world, object, dialects);
  if (refusal !== undefined)
    return { rows: [{ subject: wholeOf(object), outcome: refusal, request: {} }], warnings };
  const isNamed = (kind === "Deployment" || kind === "StatefulSet") && metadata.name !== "";
  const there = isNamed
    ? await ifAllowed(() => world.object(kind, metadata.namespace, metadata.name))
    : undefined;
  const isThere = there !== undefined && isThereSo(object, there, place);
  const rows = await forecast.of(object, isThere);
  const replicas = replicasAfter(object, there, place);
  const seen = { view: forecast.view, place, isThere, replicas, ...(there && { there }) };
  const known = { ...seen, ...(dialects === undefined ? {} : { dialects }) };
  const beside = judgeBeside(known, object, rows);
  const judged = isRefusal(beside) ? refusedBeside(object, rows, beside) : rows;
  const told = isThere ? judged.map(letThrough) : judged;
  if (isRefusal(beside)) return { rows: told, warnings };
  const asksNothing = rows.every(({ outcome }) => !isRefusal(outcome) && outcome.kind === "nothing");
  return { rows: told, warnings: [...warnings, ...beside, ...(asksNothing ? idle : [])] };
}

function wholeOf({ kind, metadata }: KubeObject): string {
  const last = metadata.name === "" ? `${metadata.generateName}*` : metadata.name;
  const parts = [kind.toLowerCase(), kind === "Namespace" ? "" : metadata.namespace, last];
  return parts.filter((part) => part !== "").join("/");
}

/** What they are refused for themselves comes first; else it is the object as a whole that is refused. */
function refusedBeside(
  object: KubeObject,
  rows: readonly DryRunner[],
  outcome: Refusal,
): readonly DryRunner[] {
  if (rows.some((row) => isRefusal(row.outcome))) return rows;
  return [{ subject: wholeOf(object), outcome, request: rows[0]?.request ?? {} }];
}

/** Of annotations that stand on a workload and belong into its template. */
function misplacedIn({ kind, metadata, spec }: KubeObject): string[] {
  if (kind !== "StatefulSet" && kind !== "Deployment") return [];
  const template = spec.at("template").at("metadata").texts("annotations");
  return requestKeysIn(metadata.annotations)
    .filter((key) => template[key] === undefined)
    .map(
      (key) => `annotation ${key} on ${kind} ${metadata.name} itself has no effect; move it to its template`,
    );
}
