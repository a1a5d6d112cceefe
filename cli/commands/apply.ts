// SPDX-License-Identifier: Apache-2.0
import { isRefusal } from "../../allocator/errors.ts";
import { Fields } from "../../allocator/kube-object.ts";
import { withWebhook } from "../client.ts";
import type { Command, ExitCode, Io } from "../command.ts";
import { readDocuments, type Sourced } from "../documents.ts";
import { DATA, DRY_RUN } from "../flags.ts";
import { holdingsOf } from "../holdings.ts";
import { MANAGED } from "../kinds.ts";
import { withLedger } from "../ledger.ts";
import { printable } from "../output.ts";
import { reportError, reportSubmitted } from "../report.ts";
import { subjectOf, titleOf } from "../subject.ts";
import { type Counter, submit } from "../submission.ts";

/** `berthctl apply`: what `kubectl apply` is to a cluster. */
export const apply: Command = {
  name: "apply",
  summary: "send objects through admission, as kubectl apply does",
  usage: ["apply -f FILE|DIR|- [--dry-run] [--data DIR]"],
  flags: {
    file: {
      type: "string",
      short: "f",
      multiple: true,
      value: "FILE|DIR|-",
      about: "YAML or JSON, - for standard input; may be given more than once",
    },
    "dry-run": DRY_RUN,
    data: DATA,
  },
  inCluster: "apply with: kubectl apply",
  examples: ["berthctl apply -f examples/", "berthctl apply -f web.yaml --dry-run"],
  async run(args, scene) {
    args.expect();
    const { objects, skipped } = await readDocuments(args.texts("file"), scene.io);
    for (const what of skipped) {
      scene.io.stderr.write(`skipped ${printable(what)}: berth has no say about it\n`);
    }
    const dryRun = args.has("dry-run");
    return await withWebhook(scene, (webhook) =>
      withLedger(scene, "read", (ledger) =>
        applyAll({ webhook, ledger, io: scene.io, dryRun }, objects, scene.io),
      ),
    );
  },
};

/** One refused object does not keep the others from being tried. */
async function applyAll(counter: Counter, objects: readonly Sourced[], io: Io): Promise<ExitCode> {
  const ordered = objects.toSorted((a, b) => MANAGED.indexOf(a.kind) - MANAGED.indexOf(b.kind));
  let code: ExitCode = 0;
  for (const object of ordered) {
    if (!(await applyOne(counter, object, io))) code = 1;
  }
  return code;
}

async function applyOne(counter: Counter, object: Sourced, io: Io): Promise<boolean> {
  const subject = subjectOf(object);
  if (isRefusal(subject)) {
    reportError(io, `${object.kind.names[0]}: ${subject.message}`);
    return false;
  }
  const { dryRun, ledger } = counter;
  const submitted = await submit(counter, subject);
  if (submitted.kind === "refused") return reportSubmitted(io, titleOf(subject), submitted, { dryRun });
  const name = new Fields(submitted.object).at("metadata").text("name");
  const holdings = dryRun ? "" : await holdingsOf(ledger.store, submitted.object);
  return reportSubmitted(io, titleOf({ ...subject, name }), submitted, { dryRun, holdings });
}
