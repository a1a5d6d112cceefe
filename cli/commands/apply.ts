// SPDX-License-Identifier: Apache-2.0
import { isRefusal, type Refusal, type RefusalCode } from "../../allocator/base/errors.ts";
import { Fields, readObject } from "../../allocator/manifest/kubernetes-object.ts";
import type { Occupied } from "../../allocator/planning/occupied.ts";
import { type ManifestObject, readDocuments } from "../apply/documents.ts";
import { MANAGED } from "../apply/kinds.ts";
import { holdingsOf } from "../apply/object-addresses.ts";
import { type Subject, subjectOf, titleAsWritten, titleOf } from "../apply/object-ref.ts";
import { reportError, reportSubmitted } from "../apply/report.ts";
import { type ReviewTarget, type Submitted, submit } from "../apply/submit.ts";
import type { Backend } from "../backend/backend.ts";
import { hostOccupants } from "../backend/host-occupants.ts";
import { ManifestDryRun } from "../explain/dry-run.ts";
import type { DryRunner } from "../explain/dry-runner.ts";
import { ordinalsLacking } from "../explain/ordinals-without-claim.ts";
import type { Command, ExitCode, Io } from "../terminal/command.ts";
import { DATA, DRY_RUN, ETCD_FLAGS, usageError, WAIT, waitMsOf } from "../terminal/flags.ts";
import { printable } from "../terminal/output.ts";
import { withReviews } from "./reviews.ts";

/** Refusals that other pools would turn into something else. */
const BY_POOLS: ReadonlySet<string> = new Set<RefusalCode>([
  ...(["ADDRESS_OUTSIDE", "ADDRESS_EXCLUDED", "POOL_UNKNOWN", "POOL_DISABLED", "POOL_FORBIDDEN"] as const),
  ...(["NODE_MISMATCH", "POOL_EXHAUSTED", "FAMILY_UNAVAILABLE", "LIMIT_REACHED"] as const),
]);

/** `berthctl apply`: what `kubectl apply` is to a cluster. */
export const apply: Command = {
  name: "apply",
  summary: "send objects through admission, as kubectl apply does",
  usage: ["apply -f FILE|DIR|- [--dry-run] [--wait DURATION] [--data DIR | --etcd URL]"],
  flags: {
    file: {
      type: "string",
      short: "f",
      multiple: true,
      value: "FILE|DIR|-",
      about: "YAML or JSON, - for standard input; may be given more than once",
    },
    "dry-run": DRY_RUN,
    wait: WAIT,
    data: DATA,
    ...ETCD_FLAGS,
  },
  inCluster: "apply with: kubectl apply",
  examples: ["berthctl apply -f examples/", "berthctl apply -f web.yaml --dry-run"],
  async run(args, context) {
    const [operand] = args.operands;
    if (operand !== undefined)
      throw usageError(
        `${JSON.stringify(operand)} is one argument too many; name files with -f: apply -f ${operand}`,
      );
    const { objects, skipped, unheard } = await readDocuments(args.texts("file"), context.io);
    for (const what of skipped) {
      context.io.stderr.write(`skipped ${printable(what)}: berth has no say about it\n`);
    }
    for (const what of unheard) reportError(context.io, what);
    const dryRun = args.has("dry-run");
    const waitMs = waitMsOf(args.text("wait"));
    const code = await withReviews({ ...context, waitMs }, (webhook, backend) =>
      applyAll({ webhook, backend, io: context.io, dryRun }, objects, {
        io: context.io,
        // in etcd containers are on other hosts
        ...(context.etcd === undefined
          ? { place: "data", occupied: hostOccupants() }
          : { place: "etcd", occupied: [] }),
      }),
    );
    return unheard.length > 0 ? worse(code, 1) : code;
  },
};

/** One refused object does not keep the others from being tried. */
async function applyAll(
  target: ReviewTarget,
  objects: readonly ManifestObject[],
  {
    io,
    place,
    occupied,
  }: Pick<Backend, "place"> & { readonly io: Io; readonly occupied: readonly Occupied[] },
): Promise<ExitCode> {
  const ordered = objects.toSorted((a, b) => MANAGED.indexOf(a.kind) - MANAGED.indexOf(b.kind));
  const { store, admitted } = target.backend;
  const forecast = target.dryRun ? await ManifestDryRun.on({ store, world: admitted, place }, io) : undefined;
  for (const [address, occupant] of occupied) forecast?.view.occupy(address, occupant);
  let code: ExitCode = 0;
  for (const object of ordered) {
    code = worse(code, await applyOne(target, object, { io, forecast }));
  }
  return code;
}

function worse(one: ExitCode, other: ExitCode): ExitCode {
  return other > one ? other : one;
}

async function applyOne(
  target: ReviewTarget,
  object: ManifestObject,
  { io, forecast }: { io: Io; forecast: ManifestDryRun | undefined },
): Promise<ExitCode> {
  const subject = subjectOf(object);
  if (isRefusal(subject)) {
    reportError(io, `${titleAsWritten(object)}: ${subject.message}`);
    return 1;
  }
  const { dryRun, backend } = target;
  const answered = await submit(target, subject);
  const rehearsed =
    forecast && (await withPoolsOfFiles({ forecast, world: backend.admitted }, subject, answered));
  const submitted = rehearsed ?? answered;
  if (submitted.kind === "refused") return reportSubmitted(io, titleOf(subject), submitted, { dryRun });
  const dispute =
    rehearsed === undefined ? forecast && (await disputeIn(forecast, subject, submitted)) : undefined;
  if (dispute !== undefined) {
    reportError(io, `${titleOf(subject)}: ${dispute.message}`);
    return 1;
  }
  const name = new Fields(submitted.object).at("metadata").text("name");
  const holdings = dryRun ? "" : await holdingsOf(backend.store, submitted.object);
  const warnings = [...notKeptHere(subject), ...(await lackingIn(backend, subject, submitted, io))];
  const done = { ...submitted, warnings: [...submitted.warnings, ...warnings] };
  return reportSubmitted(io, titleOf({ ...subject, name }), done, { dryRun, holdings });
}

/** Pools and claims are records of Berth's own here, and have no more metadata than their names. */
function notKeptHere({ kind, json }: Subject): readonly string[] {
  if (kind.group !== "berth.dev") return [];
  const object = new Fields(json);
  const metadata = object.at("metadata");
  const given = ["labels", "annotations"].filter((part) => Object.keys(metadata.texts(part)).length > 0);
  return [
    ...given.map((part) => `${part} of an ${kind.kind} are not kept on one host; nothing reads them there`),
    ...(kind.kind === "IPPool" && object.at("spec").get("nodeSelector") !== undefined
      ? [`spec.nodeSelector of pool ${object.at("metadata").text("name")} ${ONE_NODE}`]
      : []),
  ];
}

const ONE_NODE =
  "keeps no claim from it on one host, which has no Nodes; pods that ask for no address are served if it matches the host's one label, kubernetes.io/hostname";

/** A StatefulSet of which nothing was changed is not reviewed, and what was released since is not reserved anew. */
async function lackingIn(
  backend: ReviewTarget["backend"],
  { kind, json }: Subject,
  { verb }: Extract<Submitted, { kind: "done" }>,
  { clock }: Io,
): Promise<readonly string[]> {
  if (verb !== "unchanged" || kind.kind !== "StatefulSet") return [];
  const set = readObject(json);
  return isRefusal(set) ? [] : await ordinalsLacking(set, backend, clock);
}

/** The webhook's dry run of one object knows nothing of what those before it would get. */
async function disputeIn(
  forecast: ManifestDryRun,
  { json }: Subject,
  submitted: Extract<Submitted, { kind: "done" }>,
): Promise<Refusal | undefined> {
  const read = readObject(json);
  if (isRefusal(read)) return undefined;
  const outcomes = (await forecast.of(read)).map(({ outcome }) => outcome);
  return submitted.verb === "created" ? outcomes.find(isRefusal) : undefined;
}

/**
 * What would become of the object if the pools that were sent before it were there: the webhook keeps nothing of a dry run, and does
 * not know them. Undefined: what was answered stands.
 */
async function withPoolsOfFiles(
  { forecast, world }: { readonly forecast: ManifestDryRun; readonly world: Backend["world"] },
  { json }: Pick<Subject, "json">,
  answered: Submitted,
): Promise<Submitted | undefined> {
  if (answered.kind !== "refused" || !BY_POOLS.has(answered.code) || !forecast.carriesPools) return undefined;
  const read = readObject(json);
  if (isRefusal(read)) return undefined;
  const { judgeManifest } = await import("../explain/manifest-rules.ts");
  const { refusal } = await judgeManifest(forecast.view, world, read);
  const rows = refusal === undefined ? await forecast.of(read) : [];
  const why = refusal ?? rows.map(({ outcome }) => outcome).find(isRefusal);
  if (why !== undefined) return { ...answered, why: why.message, code: why.code };
  const warnings = rows.flatMap(wordsOf);
  return { kind: "done", verb: "created", object: json, warnings: [...answered.warnings, ...warnings] };
}

function wordsOf({ subject, outcome }: DryRunner): string[] {
  if (isRefusal(outcome) || outcome.kind === "nothing") return [];
  if (outcome.kind === "later") return [outcome.why];
  const each = outcome.addresses.map(({ address, pool }) => `${address} from pool ${pool}`);
  return [`${subject} would get ${each.join(" and ")}, with the pools of these files`];
}
