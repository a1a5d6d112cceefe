// SPDX-License-Identifier: Apache-2.0

import { isRefusal } from "../../allocator/base/errors.ts";
import { parseDuration } from "../../allocator/base/go-duration.ts";
import { readEntriesOn, readPoolsOn } from "../../allocator/manifest/interface-values.ts";
import { apiVersionOf } from "../../kube/api/resource.ts";
import { IP_CLAIM } from "../apply/kinds.ts";
import { holdingsOf } from "../apply/object-addresses.ts";
import { claimKeyOf, type Subject, subjectOf, titleOf } from "../apply/object-ref.ts";
import { reportError, reportSubmitted } from "../apply/report.ts";
import { currentOf, isUnchanged, type ReviewTarget, submit } from "../apply/submit.ts";
import type { Arguments } from "../terminal/arguments.ts";
import type { Command, CommandContext, ExitCode } from "../terminal/command.ts";
import {
  DRY_RUN,
  NAMESPACE,
  noAddress,
  refuseTwoNamespaces,
  TARGET_FLAGS,
  usageError,
  waitMsOf,
} from "../terminal/flags.ts";
import { addressNamed, addressUnlessName } from "./address-named.ts";
import { withReviews } from "./reviews.ts";

/** A controller takes milliseconds; the one that leads may just be another one than a moment ago. */
const TIMEOUT_MS = 30_000;

/** `berthctl reserve` */
export const reserve: Command = {
  name: "reserve",
  summary: "reserve addresses for a pod or anything else before it exists",
  usage: [
    "reserve [NAMESPACE/]NAME --address A[,B] | --pool P[,Q] [-n NS] [--dry-run] [--data DIR | --context NAME]",
  ],
  flags: {
    address: {
      type: "string",
      value: "A[,B]",
      about: "these addresses, one of each family, or with interfaces: A,B@net1",
    },
    pool: {
      type: "string",
      value: "P[,Q]",
      about: "one address of each family, of these pools, the first with room; or with interfaces: P,Q@net1",
    },
    "dry-run": DRY_RUN,
    timeout: {
      type: "string",
      value: "DURATION",
      about: "in a cluster, how long to wait for the addresses (default: 30s)",
    },
    namespace: NAMESPACE,
    ...TARGET_FLAGS,
  },
  examples: ["berthctl reserve shop/printer --address 10.20.0.55", "berthctl reserve shop/printer --pool db"],
  async run(args, context) {
    const [operand = ""] = args.expect("NAMESPACE/NAME");
    if (addressUnlessName(operand) !== undefined && args.text("address") === undefined)
      throw usageError(`give a name for the claim, too: reserve [NAMESPACE/]NAME --address ${operand}`);
    const request = requestOf(args);
    const subjectIn = (namespace: string | undefined) => subjectFor(operand, namespace, request);
    const dryRun = args.has("dry-run");
    refuseTwoNamespaces(operand, args.text("namespace"));
    const waitMs = waitMsOf(args.text("wait"));
    const timeoutMs = timeoutOf(args.text("timeout"));
    if (context.cluster !== undefined) {
      // What authenticates takes longer to load than the rest of berthctl takes to run.
      const { withCluster } = await import("../backend/cluster-backend.ts");
      const { reserveInCluster } = await import("./cluster-reserve.ts");
      return await withCluster(context.io, context.cluster, (cluster) => {
        const subject = subjectIn(args.text("namespace") ?? cluster.namespace);
        return reserveInCluster(cluster, subject, { io: context.io, dryRun, timeoutMs });
      });
    }
    const subject = subjectIn(args.text("namespace") ?? "default");
    return await withReviews({ ...context, waitMs }, (webhook, backend) =>
      reserveFor({ webhook, backend, io: context.io, dryRun }, subject, context),
    );
  },
};

function subjectFor(operand: string, namespace: string | undefined, request: unknown): Subject {
  const key = claimKeyOf(operand, namespace);
  if (isRefusal(key)) throw usageError(key.message);
  const subject = subjectOf({ kind: IP_CLAIM, json: claimOf(key, request) });
  if (isRefusal(subject)) throw usageError(subject.message);
  return subject;
}

function timeoutOf(text: string | undefined): number {
  const ms = text === undefined ? TIMEOUT_MS : parseDuration(text);
  if (ms !== undefined) return ms;
  throw usageError(`--timeout ${JSON.stringify(text)} is no duration such as 30s or 2m`);
}

function requestOf(args: Arguments): object {
  const [addresses, pools] = [args.text("address"), args.text("pool")];
  if ((addresses === undefined) === (pools === undefined))
    throw usageError("give either --address or --pool");
  const words = (text: string) => text.split(",").map((word) => word.trim());
  const wrong = words(addresses ?? "").find((word) => word.includes("/"));
  if (wrong !== undefined) throw noAddress(wrong, "--address");
  if (`${addresses ?? pools}`.includes("@")) return requestOn(addresses, pools);
  const none =
    addresses === undefined ? undefined : words(addresses).find((word) => addressNamed(word) === undefined);
  if (none !== undefined && isRange(none)) throw noRange(none);
  if (none !== undefined) throw noAddress(none, "--address");
  return {
    ...(addresses === undefined ? {} : { addresses: words(addresses) }),
    ...(pools === undefined ? {} : { pools: words(pools) }),
  };
}

function isRange(word: string): boolean {
  const [from = "", to = "", ...more] = word.split("-");
  return more.length === 0 && addressNamed(from) !== undefined && addressNamed(to) !== undefined;
}

function noRange(range: string): Error {
  const words = `--address ${JSON.stringify(range)} is a range, and a claim has one address of each family`;
  return usageError(
    `${words}; to keep a range, list it in its pool: in spec.reserved, for who asks for an address of it by name, or in exclude of spec.ranges, for nobody`,
  );
}

/** With interfaces, as annotations have them: `10.20.0.51,10.30.0.51@net1`, `db,lan@net1`. */
function requestOn(addresses: string | undefined, pools: string | undefined): object {
  const read =
    addresses === undefined ? readPoolsOn(pools ?? "", "--pool") : readEntriesOn(addresses, "--address");
  if (isRefusal(read)) throw usageError(read.message.replace(/^annotation /, ""));
  const { entries, interfaces, interfacePools } = read;
  const [entry, ...more] = entries ?? [];
  if (more.length > 0) throw usageError("--address takes the addresses of one claim");
  return {
    ...(entry && { addresses: entry }),
    ...(interfaces && { interfaces }),
    ...(interfacePools && { interfacePools }),
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
async function reserveFor(target: ReviewTarget, subject: Subject, { io }: CommandContext): Promise<ExitCode> {
  const { backend, dryRun } = target;
  const title = titleOf(subject);
  const current = await currentOf(backend, subject);
  if (current !== undefined && !isUnchanged(subject, current)) {
    const holdings = await holdingsOf(backend.store, current);
    const has = holdings === "" ? "has no addresses yet" : `holds ${holdings}`;
    const key = `${subject.namespace}/${subject.name}`;
    reportError(io, `${title}: it exists already and ${has}; release it first with: berthctl release ${key}`);
    return 1;
  }
  const submitted = await submit(target, subject);
  const holdings =
    dryRun || submitted.kind === "refused" ? "" : await holdingsOf(backend.store, subject.json);
  return reportSubmitted(io, title, submitted, { dryRun, holdings });
}
