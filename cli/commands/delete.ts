// SPDX-License-Identifier: Apache-2.0
import { counted } from "../../allocator/base/counted.ts";
import { isRefusal, type Refusal } from "../../allocator/base/errors.ts";
import { ASSIGNED_CLAIM } from "../../allocator/manifest/annotations.ts";
import { Fields } from "../../allocator/manifest/kubernetes-object.ts";
import { type Claim, claimKey } from "../../allocator/model/claim.ts";
import { readDocuments } from "../apply/documents.ts";
import { MANAGED } from "../apply/kinds.ts";
import { keysOfOperands, placeOf, type SubjectKey, titleOf } from "../apply/object-ref.ts";
import { reportError, reportSubmitted } from "../apply/report.ts";
import { deleteObject, type ReviewTarget, readableOf } from "../apply/submit.ts";
import type { EmbeddedBackend } from "../backend/embedded-backend.ts";
import type { Command, ExitCode, Io } from "../terminal/command.ts";
import {
  DATA,
  DRY_RUN,
  ETCD_FLAGS,
  NAMESPACE,
  refuseTwoNamespaces,
  usageError,
  WAIT,
  waitMsOf,
} from "../terminal/flags.ts";
import { printable } from "../terminal/output.ts";
import { addressesAfterDeletion } from "./after-deletion.ts";
import { podsWithout, stillWanted, wordsOfPods } from "./claim-to-release.ts";
import { withReviews } from "./reviews.ts";

/** `berthctl delete` */
export const remove: Command = {
  name: "delete",
  summary: "delete objects through admission, as kubectl delete does",
  usage: [
    "delete -f FILE|DIR|- [--dry-run] [--wait DURATION] [--data DIR | --etcd URL]",
    "delete KIND [NAMESPACE/]NAME... [-n NS] [--dry-run] [--wait DURATION] [--data DIR | --etcd URL]",
    "delete KIND/[NAMESPACE/]NAME... [-n NS] [--dry-run] [--wait DURATION] [--data DIR | --etcd URL]",
  ],
  flags: {
    file: {
      type: "string",
      short: "f",
      multiple: true,
      value: "FILE|DIR|-",
      about: "what to delete, as it was applied; may be given more than once",
    },
    namespace: NAMESPACE,
    "dry-run": DRY_RUN,
    wait: WAIT,
    data: DATA,
    ...ETCD_FLAGS,
  },
  inCluster: "delete with: kubectl delete",
  examples: [
    "berthctl delete pod shop/web-1",
    "berthctl delete ippool db",
    "berthctl delete -f examples/ --dry-run",
  ],
  async run(args, context) {
    const files = args.texts("file");
    if ((files.length === 0) === (args.operands.length === 0)) {
      throw usageError("say what to delete, either with -f FILE or as KIND [NAMESPACE/]NAME");
    }
    const keys =
      files.length === 0
        ? keysOfOperands(args.operands, args.text("namespace")).map(orMisuse)
        : await keysIn(files, context.io);
    const dryRun = args.has("dry-run");
    const [first = "", second = first.slice(first.indexOf("/") + 1)] = args.operands;
    refuseTwoNamespaces(second, args.text("namespace"));
    const waitMs = waitMsOf(args.text("wait"));
    return await withReviews({ ...context, waitMs }, (webhook, backend) =>
      deleteAll({ webhook, backend, io: context.io, dryRun }, keys, context.io),
    );
  },
};

/** An operand is typed wrongly, where an object of a file may be one of many. */
function orMisuse(key: SubjectKey | Refusal): SubjectKey {
  if (isRefusal(key)) throw usageError(key.message);
  return key;
}

/** What others need goes last. */
async function keysIn(files: readonly string[], io: Io): Promise<(SubjectKey | Refusal)[]> {
  const { objects } = await readDocuments(files, io);
  return objects
    .toSorted((a, b) => MANAGED.indexOf(b.kind) - MANAGED.indexOf(a.kind))
    .map((object) => placeOf(object));
}

async function deleteAll(
  target: ReviewTarget,
  keys: readonly (SubjectKey | Refusal)[],
  io: Io,
): Promise<ExitCode> {
  const deleted = new Set<string>(); // titles; on a dry run they are still there
  let code: ExitCode = 0;
  for (const key of keys) {
    if (isRefusal(key)) reportError(io, key.message);
    const ended: ExitCode = isRefusal(key) ? 1 : await deleteOne(target, key, { io, deleted });
    if (ended > code) code = ended;
  }
  return code;
}

async function deleteOne(
  target: ReviewTarget,
  key: SubjectKey,
  { io, deleted }: { io: Io; deleted: Set<string> },
): Promise<ExitCode> {
  const title = titleOf(key);
  if (key.name === "") {
    reportError(io, `${title}: its name was generated; delete it as pod NAMESPACE/NAME`);
    return 1;
  }
  const contents = key.kind.kind === "Namespace" ? await contentsOf(target.backend, key.name) : [];
  const inside = contents.filter((content) => !deleted.has(content));
  if (inside.length > 0) {
    const some = inside.slice(0, 3).join(", ");
    reportError(
      io,
      `${title}: ${counted(inside.length, "object is", "objects are")} still in it, ${some}; delete them first`,
    );
    return 1;
  }
  const missed = await missedOf(target.backend, key, deleted);
  const claim = await claimOfPod(target.backend, key);
  const submitted = await deleteObject(target, key);
  if (submitted === undefined) {
    const { listing } = key.kind;
    const advice = listing === undefined ? "" : `; see what there is with: berthctl get ${listing} -A`;
    reportError(io, `${title}: there is none${advice}`);
    return 1;
  }
  if (submitted.kind === "refused") return reportSubmitted(io, title, submitted, { dryRun: target.dryRun });
  deleted.add(title);
  const warnings = [...submitted.warnings, ...missed];
  const code = reportSubmitted(io, title, { ...submitted, warnings }, { dryRun: target.dryRun });
  if (claim !== undefined && !target.dryRun) {
    const pods = { place: "data", store: target.backend.store, world: target.backend.admitted } as const;
    for (const line of await addressesAfterDeletion(pods, claim, io.clock)) {
      io.stdout.write(`  ${printable(line)}\n`);
    }
  }
  return code;
}

/** Of a pod, as long as it is there: the claim that it was admitted with. */
async function claimOfPod(backend: EmbeddedBackend, key: SubjectKey): Promise<Claim | undefined> {
  if (key.kind.kind !== "Pod") return undefined;
  const pod = new Fields((await readableOf(backend, key)) ?? {});
  const claim = pod.at("metadata").at("annotations").text(ASSIGNED_CLAIM);
  return claim === "" ? undefined : (await backend.store.get("claim", `${key.namespace}/${claim}`))?.record;
}

/** Who wants the claim still, as `release` says it; what is deleted with it wants nothing. */
async function missedOf(
  { store, admitted }: EmbeddedBackend,
  { kind, namespace, name }: SubjectKey,
  deleted: ReadonlySet<string>,
): Promise<readonly string[]> {
  if (kind.kind !== "IPClaim") return [];
  const claim = (await store.get("claim", claimKey({ namespace, name })))?.record;
  if (claim === undefined) return [];
  const stays = (of: string, one: string) => !deleted.has(`${of.toLowerCase()}/${namespace}/${one}`);
  const around = { world: admitted, place: "data" } as const;
  const { lost = [] } = (await podsWithout(claim, around)) ?? {};
  const pods = { lost: lost.filter((pod) => stays("Pod", pod)), asking: [] };
  const { identity } = claim;
  const wanted = stays(identity.kind, identity.name) ? await stillWanted(claim, around) : undefined;
  return [...wordsOfPods(claim, pods), ...(wanted === undefined ? [] : [wanted])];
}

/** A cluster deletes what is in a namespace along with it; here nothing is deleted that was not named. */
async function contentsOf({ admitted }: EmbeddedBackend, namespace: string): Promise<string[]> {
  const titles: string[] = [];
  for (const kind of MANAGED) {
    if (kind.kind === "Namespace" || kind.group === "berth.dev") continue;
    for (const { metadata } of await admitted.objects(kind.kind)) {
      if (metadata.namespace === namespace) titles.push(titleOf({ kind, namespace, name: metadata.name }));
    }
  }
  return titles;
}
