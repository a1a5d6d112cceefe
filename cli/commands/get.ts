// SPDX-License-Identifier: Apache-2.0
import { once } from "node:events";
import type { Writable } from "node:stream";
import { isRefusal } from "../../allocator/base/errors.ts";
import { nearestWord } from "../../allocator/base/nearest-word.ts";
import { kindNamed } from "../apply/kinds.ts";
import { reportError } from "../apply/report.ts";
import type { Backend } from "../backend/backend.ts";
import { withBackend } from "../backend/open-backend.ts";
import { attachments } from "../listings/attachments.ts";
import { blocks } from "../listings/blocks.ts";
import { claims } from "../listings/claims.ts";
import { hosts } from "../listings/hosts.ts";
import type { AnyListing, Query } from "../listings/listing.ts";
import { pods, workloads } from "../listings/pods-and-workloads.ts";
import { pools } from "../listings/pools.ts";
import { reservations } from "../listings/reservations.ts";
import type { Arguments } from "../terminal/arguments.ts";
import type { Command } from "../terminal/command.ts";
import { NAMESPACE, needlessArgument, TARGET_FLAGS, usageError } from "../terminal/flags.ts";
import { listingCalled } from "../terminal/other-words.ts";
import { FORMATS, formatOf } from "../terminal/output.ts";

const LISTINGS: readonly AnyListing[] = [
  ...[pools, claims, reservations, blocks, attachments, pods, workloads, hosts],
];
const nameOf = ({ names }: AnyListing) => names[0] ?? "";
const NAMES = LISTINGS.map(nameOf);
/** Of these there is something in a cluster. */
const NAMES_IN_CLUSTER = LISTINGS.filter((one) => one !== hosts).map(nameOf);
const usageFor = (names: readonly string[]) =>
  `get ${names.join("|")} [[NAMESPACE/]NAME] [-n NS | -A] [-o ${FORMATS.join("|")}] [--data DIR | --context NAME]`;

/** `berthctl get` */
export const get: Command = {
  name: "get",
  summary: "list pools, claims, reservations, blocks, attachments, pods, workloads or hosts",
  onlyReads: true,
  usage: [usageFor(NAMES)],
  asKubectl: {
    summary: "list pools, claims, reservations, blocks, attachments, pods or workloads",
    usage: [usageFor(NAMES_IN_CLUSTER)],
  },
  flags: {
    namespace: NAMESPACE,
    "all-namespaces": { type: "boolean", short: "A", about: "every namespace" },
    output: { type: "string", short: "o", value: "FORMAT", about: `${FORMATS.join(", ")} (default: table)` },
    ...TARGET_FLAGS,
  },
  examples: [
    "berthctl get pools",
    "berthctl get claims -n shop -o wide",
    "berthctl get claim mysql-0 -n shop -o yaml",
  ],
  async run(args, context) {
    const { what, name, needless } = operandsOf(args.operands);
    if (needless !== undefined) throw needlessArgument(needless);
    const found = listingNamed(what, context.setting?.kubectl === true);
    const query = queryOf(args, found, name);
    const shown = await withBackend(context, "read", (backend) =>
      found.show(backend, query(backend), context.io.clock.now(), (text) => written(context.io.stdout, text)),
    );
    if (isRefusal(shown)) {
      reportError(context.io, shown.message);
      return 1;
    }
    if (shown.remark !== "") context.io.stderr.write(`${shown.remark}\n`);
    return 0;
  },
};

/** Whoever reads it may be slow, and a list may be long. */
async function written(stdout: Writable, text: string): Promise<void> {
  if (!stdout.write(text) && !stdout.destroyed) await once(stdout, "drain");
}

/** `claim shop/mysql-0`, or `claim/shop/mysql-0`, as the tool itself names it. */
function operandsOf([first, ...rest]: readonly string[]): {
  readonly what: string | undefined;
  readonly name: string | undefined;
  readonly needless: string | undefined;
} {
  const slash = first?.indexOf("/") ?? -1;
  const parts = first === undefined || slash < 0 ? [first] : [first.slice(0, slash), first.slice(slash + 1)];
  const [what, name, needless] = [...parts, ...rest];
  return { what, name, needless };
}

interface Place {
  readonly namespace?: string;
  readonly name: string;
}

/** The namespace in front of a name, if there is one. */
function placeOf(text: string, scope: AnyListing["scope"]): Place {
  const [namespace = "", name, ...more] = text.split("/");
  if (text === "") throw usageError("the name is empty; leave it out to list all");
  if (name === undefined) return { name: text };
  if (namespace !== "" && name !== "" && more.length === 0 && scope !== "cluster") return { namespace, name };
  throw usageError(
    `${JSON.stringify(text)} is not of the form ${scope === "cluster" ? "NAME" : "[NAMESPACE/]NAME"}`,
  );
}

function listingNamed(what: string | undefined, kubectl: boolean): AnyListing {
  const known = kubectl ? NAMES_IN_CLUSTER : NAMES;
  if (what === undefined) throw usageError(`say what to list: ${known.join(", ")}`);
  const bare = what.toLowerCase().replace(/\.berth\.dev$/, "");
  const found = LISTINGS.find(({ names }) => names.includes(bare));
  if (found === hosts && kubectl) throw usageError("hosts are listed by berthctl --etcd URL");
  if (found !== undefined) return found;
  if (what.includes(",")) throw usageError(`${JSON.stringify(what)} are several; list one kind at a time`);
  const near = kindNamed(what)?.listing ?? listingCalled(bare, known) ?? nearestWord(what, known);
  const advice = near === undefined ? `there are ${known.join(", ")}` : `did you mean ${near}?`;
  throw usageError(`${JSON.stringify(what)} cannot be listed; ${advice}`);
}

/** Where it is looked depends on the place; what is wrong with the arguments does not. */
function queryOf(
  args: Arguments,
  { scope }: AnyListing,
  operand: string | undefined,
): (registry: Pick<Backend, "namespace" | "place">) => Query {
  const all = args.has("all-namespaces");
  const place: Partial<Place> = operand === undefined ? {} : placeOf(operand, scope);
  const { name } = place;
  const given = place.namespace ?? args.text("namespace");
  if (place.namespace !== undefined && args.text("namespace") !== undefined)
    throw usageError("give the namespace once: in front of the name, or with -n");
  if (all && given !== undefined) throw usageError("give -n or -A, not both");
  const format = formatOf(args.text("output"));
  return ({ namespace: usual, place }) => {
    const unasked = scope === "namespace" || (scope === "namespace in a cluster" && place === "cluster");
    const namespace = all || scope === "cluster" ? undefined : (given ?? (unasked ? usual : undefined));
    return { format, namespace, name };
  };
}
