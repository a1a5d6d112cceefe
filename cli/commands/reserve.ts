// SPDX-License-Identifier: Apache-2.0
import { isRefusal } from "../../allocator/errors.ts";
import type { Arguments } from "../arguments.ts";
import { withWebhook } from "../client.ts";
import type { Command, Scene } from "../command.ts";
import { DATA, DRY_RUN, misuse } from "../flags.ts";
import { holdingsOf } from "../holdings.ts";
import { apiVersionOf, IP_CLAIM } from "../kinds.ts";
import { withLedger } from "../ledger.ts";
import { reportError, reportSubmitted } from "../report.ts";
import { claimKeyOf, type Subject, subjectOf, titleOf } from "../subject.ts";
import { type Counter, currentOf, isUnchanged, submit } from "../submission.ts";

/** `berthctl reserve` */
export const reserve: Command = {
  name: "reserve",
  summary: "reserve addresses for a pod or anything else before it exists",
  usage: ["reserve NAMESPACE/NAME --address A[,B] | --pool P[,Q] [--dry-run] [--data DIR]"],
  flags: {
    address: { type: "string", value: "A[,B]", about: "these addresses, one of each family" },
    pool: { type: "string", value: "P[,Q]", about: "any address of these pools, the first with room" },
    "dry-run": DRY_RUN,
    data: DATA,
  },
  examples: ["berthctl reserve shop/licence --address 10.20.0.60", "berthctl reserve shop/licence --pool db"],
  async run(args, scene) {
    const [operand = ""] = args.expect("NAMESPACE/NAME");
    const key = claimKeyOf(operand);
    if (isRefusal(key)) throw misuse(key.message);
    const subject = subjectOf({ kind: IP_CLAIM, json: claimOf(key, requestOf(args)) });
    if (isRefusal(subject)) throw misuse(subject.message);
    const dryRun = args.has("dry-run");
    const done = await withWebhook(scene, (webhook) =>
      withLedger(scene, "read", (ledger) =>
        reserveFor({ webhook, ledger, io: scene.io, dryRun }, subject, scene),
      ),
    );
    return done ? 0 : 1;
  },
};

function requestOf(args: Arguments): Readonly<Record<string, readonly string[]>> {
  const [addresses, pools] = [args.text("address"), args.text("pool")];
  if ((addresses === undefined) === (pools === undefined)) throw misuse("give either --address or --pool");
  const words = (text: string) => text.split(",").map((word) => word.trim());
  return {
    ...(addresses === undefined ? {} : { addresses: words(addresses) }),
    ...(pools === undefined ? {} : { pools: words(pools) }),
  };
}

/** The claim as a person would write it. */
function claimOf(key: { namespace: string; name: string }, request: unknown): Subject["json"] {
  return {
    apiVersion: apiVersionOf(IP_CLAIM),
    kind: IP_CLAIM.kind,
    metadata: key,
    spec: { request },
  };
}

/** A claim that is there already is not changed: `apply` changes, `reserve` makes. */
async function reserveFor(counter: Counter, subject: Subject, { io }: Scene): Promise<boolean> {
  const { ledger, dryRun } = counter;
  const title = titleOf(subject);
  const current = await currentOf(ledger, subject);
  if (current !== undefined && !isUnchanged(subject, current)) {
    const holdings = await holdingsOf(ledger.store, current);
    const has = holdings === "" ? "has no addresses yet" : `holds ${holdings}`;
    const key = `${subject.namespace}/${subject.name}`;
    reportError(io, `${title}: it exists already and ${has}; release it first with: berthctl release ${key}`);
    return false;
  }
  const submitted = await submit(counter, subject);
  const holdings = dryRun || submitted.kind === "refused" ? "" : await holdingsOf(ledger.store, subject.json);
  return reportSubmitted(io, title, submitted, { dryRun, holdings });
}
