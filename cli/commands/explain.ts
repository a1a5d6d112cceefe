// SPDX-License-Identifier: Apache-2.0
import { DIALECTS } from "../../allocator/dialects.ts";
import { isRefusal } from "../../allocator/errors.ts";
import { type KubeObject, readObject } from "../../allocator/kube-object.ts";
import { KeyedMutex } from "../../allocator/mutex.ts";
import { silent } from "../../allocator/ports.ts";
import type { Preview } from "../../allocator/preview.ts";
import type { Request } from "../../allocator/request.ts";
import type { Command, ExitCode, Scene } from "../command.ts";
import { readDocuments, type Sourced } from "../documents.ts";
import { DATA } from "../flags.ts";
import { MANAGED } from "../kinds.ts";
import { type Ledger, mirrorOf, withLedger } from "../ledger.ts";
import { Forecast, type Outlook } from "../outlook.ts";
import { columns, printable } from "../output.ts";
import { reportError, reportWarning } from "../report.ts";
import { subjectOf } from "../subject.ts";

/** `berthctl explain` */
export const explain: Command = {
  name: "explain",
  summary: "say what the pods of a file would get, and why; nothing is written",
  usage: ["explain -f FILE|DIR|- [-f ...] [--data DIR]"],
  flags: {
    file: {
      type: "string",
      short: "f",
      multiple: true,
      value: "FILE|DIR|-",
      about: "YAML or JSON, - for standard input; may be given more than once",
    },
    data: DATA,
  },
  examples: ["berthctl explain -f mysql.yaml"],
  async run(args, scene) {
    args.expect();
    const { objects } = await readDocuments(args.texts("file"), scene.io);
    return await withLedger(scene, "read", (ledger) => explainAll(ledger, objects, scene));
  },
};

async function explainAll(
  { store, shelf }: Ledger,
  objects: readonly Sourced[],
  { io }: Scene,
): Promise<ExitCode> {
  const { clock, random } = io;
  const view = await mirrorOf(store);
  const context = { store, view, clock, random, log: silent, serial: new KeyedMutex() };
  const forecast = new Forecast(context, shelf);
  const outlooks: Outlook[] = [];
  let code: ExitCode = 0;
  for (const object of objects.toSorted((a, b) => MANAGED.indexOf(a.kind) - MANAGED.indexOf(b.kind))) {
    const subject = subjectOf(object);
    const read = isRefusal(subject) ? subject : readObject(subject.json);
    if (isRefusal(read)) {
      reportError(io, `${object.kind.names[0]}: ${read.message}`);
      code = 1;
      continue;
    }
    for (const key of misplacedIn(read)) {
      reportWarning(
        io,
        `annotation ${key} on ${read.kind} ${read.metadata.name} itself has no effect; move it to its template`,
      );
    }
    outlooks.push(...(await forecast.of(read)));
  }
  io.stdout.write(columns(outlooks.map(rowOf)));
  return outlooks.some(({ outcome }) => isRefusal(outcome)) ? 1 : code;
}

/** Annotations that stand on a workload and belong into its template. */
function misplacedIn({ kind, metadata, spec }: KubeObject): string[] {
  if (kind !== "StatefulSet" && kind !== "Deployment") return [];
  const template = spec.at("template").at("metadata").texts("annotations");
  return DIALECTS.map(({ key }) => key).filter(
    (key) => metadata.annotations[key] !== undefined && template[key] === undefined,
  );
}

function rowOf({ subject, outcome, request }: Outlook): string[] {
  if (isRefusal(outcome)) return [subject, "refused", printable(outcome.message)];
  if (outcome.kind === "nothing") return [subject, "-", outcome.why];
  return [subject, outcome.addresses.map(({ address }) => address).join(", "), whyOf(outcome, request)];
}

/** Whole sentences for one reason; addresses are named when their reasons differ. */
function whyOf({ addresses }: Preview, request: Request): string {
  const reasons = addresses.map((entry) => reasonOf(entry, request));
  const [first = ""] = reasons;
  if (reasons.every((reason) => reason === first)) return first;
  return addresses.map(({ address }, i) => `${address}: ${reasons[i] ?? ""}`).join("; ");
}

function reasonOf({ pool, held }: Preview["addresses"][number], request: Request): string {
  if (held) return `pool ${pool}: its claim holds it already`;
  if (request.entries !== undefined) return `pool ${pool}: asked for by address`;
  if (request.pools !== undefined) return `pool ${pool}: free, and the request names the pool`;
  return `pool ${pool}: free, in the first pool that is open to it`;
}
