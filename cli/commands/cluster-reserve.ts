// SPDX-License-Identifier: Apache-2.0

import { BerthError, isRefusal } from "../../allocator/base/errors.ts";
import { describeDryRun } from "../../allocator/demand/allocation-dry-run.ts";
import { Fields, readObject } from "../../allocator/manifest/kubernetes-object.ts";
import { storedOf } from "../../allocator/store/kubernetes/objects.ts";
import type { Stored } from "../../allocator/store/store.ts";
import { Client } from "../../kube/api/client.ts";
import { CLAIMS, collectionPath, type KubeItem } from "../../kube/api/resource.ts";
import { alreadyExists, statusOf, toBerthError } from "../../kube/api/status.ts";
import { claimManifest } from "../apply/manifest.ts";
import { type Subject, titleOf } from "../apply/object-ref.ts";
import { reportError, reportWarning } from "../apply/report.ts";
import { isUnchanged } from "../apply/submit.ts";
import { parseDenial } from "../backend/admission-denial.ts";
import { contextOn } from "../backend/backend.ts";
import type { Cluster } from "../backend/cluster-backend.ts";
import { loadCache } from "../backend/embedded-backend.ts";
import { ManifestDryRun } from "../explain/dry-run.ts";
import type { ExitCode, Io } from "../terminal/command.ts";
import { printable } from "../terminal/output.ts";

/** How the claim is asked for. */
interface ReserveOptions {
  readonly io: Pick<Io, "stdout" | "stderr" | "clock" | "random">;
  readonly dryRun: boolean;
  /** How long the controller is waited for. */
  readonly timeoutMs: number;
}

/** The first look comes soon: a controller that is there takes milliseconds. */
const LOOK_MS = 100;
const LONGEST_LOOK_MS = 1_000;

type Made =
  | { readonly kind: "made"; readonly uid: string; readonly warnings: readonly string[] }
  | { readonly kind: "there" }
  | { readonly kind: "refused"; readonly why: string };

/** Makes the claim as kubectl would, and waits until a controller has reserved its addresses or says why not. */
export async function reserveInCluster(
  cluster: Cluster,
  subject: Subject,
  asking: ReserveOptions,
): Promise<ExitCode> {
  const title = titleOf(subject);
  const made = await create(cluster, subject, asking);
  if (made.kind === "refused") return refused(asking, `${title}: ${made.why}`);
  const { namespace, name } = subject;
  const current =
    made.kind === "there" ? await cluster.store.get("claim", `${namespace}/${name}`) : undefined;
  if (current !== undefined && !isUnchanged(subject, { ...claimManifest(current) })) {
    const has = holdingsOf(current) === "" ? "has no addresses yet" : `holds ${holdingsOf(current)}`;
    const advice = `release it first with: berthctl release ${namespace}/${name}`;
    return refused(asking, `${title}: it exists already and ${has}; ${advice}`);
  }
  const verb = made.kind === "there" ? "unchanged" : "created";
  const warnings = made.kind === "made" ? made.warnings : [];
  if (asking.dryRun) return await dryRunOf(cluster, subject, asking, { verb, warnings });
  for (const warning of warnings) reportWarning(asking.io, warning);
  return await awaitAddresses(cluster, subject, asking, verb);
}

function refused({ io }: ReserveOptions, message: string): ExitCode {
  reportError(io, message);
  return 1;
}

/** Create-if-absent. What a webhook, a policy or the schema says to it is a refusal; throws what else goes wrong. */
export async function create(
  { connection }: Cluster,
  subject: Subject,
  { dryRun }: ReserveOptions,
): Promise<Made> {
  const { namespace, json } = subject;
  const answer = await connection.call({
    method: "POST",
    path: collectionPath(CLAIMS, namespace),
    query: { fieldManager: "berthctl", fieldValidation: "Strict", ...(dryRun ? { dryRun: "All" } : {}) },
    body: json,
  });
  if (answer.status === 201) {
    const uid = new Fields(answer.body).at("metadata").text("uid");
    return { kind: "made", uid, warnings: answer.warnings ?? [] };
  }
  if (alreadyExists(answer)) return { kind: "there" };
  const { message, reason } = statusOf(answer.body, answer.status);
  const denied = parseDenial(message);
  if (denied !== undefined && answer.status < 500) return { kind: "refused", why: denied };
  if (answer.status === 422) return { kind: "refused", why: message };
  if (answer.status === 404 && reason === "NotFound") {
    return { kind: "refused", why: `there is no namespace ${namespace}; create it first` };
  }
  throw toBerthError(answer, `create ipclaims ${namespace}/${subject.name}`);
}

/** The API server's own answer to a dry run says only that it would take the claim, unless Berth's webhook was asked. */
async function dryRunOf(
  { store, world }: Cluster,
  subject: Subject,
  asking: ReserveOptions,
  answer: { readonly verb: string; readonly warnings: readonly string[] },
): Promise<ExitCode> {
  const { stdout } = asking.io;
  const view = await loadCache(store);
  const context = contextOn(store, view, asking.io);
  const object = readObject(subject.json);
  const [forecast] = isRefusal(object) ? [] : await new ManifestDryRun(context, world).of(object);
  const outcome = forecast?.outcome ?? { kind: "nothing", why: "" };
  if (isRefusal(outcome)) return refused(asking, `${titleOf(subject)}: ${outcome.message}`);
  stdout.write(`${titleOf(subject)} ${answer.verb} (dry run)\n`);
  const own = `claim ${subject.namespace}/${subject.name}`;
  const dryRunWords = outcome.kind === "dry-run" ? [describeDryRun(own, outcome)] : [];
  for (const words of new Set([...dryRunWords, ...answer.warnings])) stdout.write(`  ${printable(words)}\n`);
  return 0;
}

async function awaitAddresses(
  { connection }: Cluster,
  subject: Subject,
  asking: ReserveOptions,
  verb: string,
): Promise<ExitCode> {
  const { clock, stdout } = asking.io;
  const { namespace, name } = subject;
  const title = titleOf(subject);
  const client = new Client(connection, CLAIMS);
  const until = clock.monotonic() + asking.timeoutMs;
  for (let pause = LOOK_MS; ; pause = Math.min(2 * pause, LONGEST_LOOK_MS)) {
    const item = await client.get({ namespace, name });
    if (item === undefined) return refused(asking, `${title}: somebody has deleted it`);
    const claim = storedOf("claim", item);
    const why = claim.record.nonce === "" ? objectionIn(item) : undefined;
    if (why !== undefined) return refused(asking, `${title}: ${why}; ${staysUntil(subject)}`);
    if (claim.record.nonce !== "") {
      stdout.write(`${title} ${verb}   ${printable(holdingsOf(claim))}\n`);
      return 0;
    }
    const left = until - clock.monotonic();
    if (left <= 0) throw late(subject, asking.timeoutMs);
    await clock.sleep(Math.min(pause, left));
  }
}

/** What the controller says to the claim as it is now; of an older one it may be over. */
function objectionIn(item: KubeItem): string | undefined {
  const status = new Fields(item).at("status");
  const generation = new Fields(item).at("metadata").count("generation", 0);
  const conditions = status.list("conditions").map((condition) => new Fields(condition));
  const ready = conditions.find((condition) => condition.text("type") === "Ready");
  const observed = ready?.count("observedGeneration", generation) ?? generation;
  if (ready?.text("status") === "False" && observed >= generation) return ready.text("message");
  return status.text("message") === "" ? undefined : status.text("message");
}

function staysUntil({ namespace, name }: Subject): string {
  return `the claim stays and gets its addresses when it can; take it back with: kubectl delete ipclaim ${name} -n ${namespace}`;
}

function late(subject: Subject, timeoutMs: number): BerthError {
  const { namespace, name } = subject;
  const words =
    `${titleOf(subject)}: created, and nobody has reserved its addresses within ${timeoutMs / 1000} s; ` +
    `is Berth's webhook running? ${staysUntil(subject)}`;
  return new BerthError("NOT_READY", words, { details: { claim: `${namespace}/${name}` } });
}

function holdingsOf({ record }: Stored<"claim">): string {
  return record.addresses.join(", ");
}
