// SPDX-License-Identifier: Apache-2.0
import { isRefusal } from "../../allocator/errors.ts";
import type { Arguments } from "../arguments.ts";
import type { Command } from "../command.ts";
import { misuse, NAMESPACE, PLACE } from "../flags.ts";
import type { AnyListing, Query } from "../listing.ts";
import { attachments } from "../listings/attachments.ts";
import { claims } from "../listings/claims.ts";
import { pods, workloads } from "../listings/objects.ts";
import { pools } from "../listings/pools.ts";
import { reservations } from "../listings/reservations.ts";
import { nearest } from "../nearest.ts";
import { FORMATS, formatOf } from "../output.ts";
import { withRegistry } from "../registries.ts";
import type { Registry } from "../registry.ts";
import { reportError } from "../report.ts";

const LISTINGS: readonly AnyListing[] = [pools, claims, reservations, attachments, pods, workloads];
const NAMES = LISTINGS.map(({ names }) => names[0] ?? "");

/** `berthctl get` */
export const get: Command = {
  name: "get",
  summary: "list pools, claims, reservations, attachments, pods or workloads",
  usage: [
    `get ${NAMES.join("|")} [NAME] [-n NS | -A] [-o ${FORMATS.join("|")}] [--data DIR | --context NAME]`,
  ],
  flags: {
    namespace: NAMESPACE,
    "all-namespaces": { type: "boolean", short: "A", about: "every namespace" },
    output: { type: "string", short: "o", value: "FORMAT", about: `${FORMATS.join(", ")} (default: table)` },
    ...PLACE,
  },
  examples: [
    "berthctl get pools",
    "berthctl get claims -n shop -o wide",
    "berthctl get claim mysql-0 -n shop -o yaml",
  ],
  async run(args, scene) {
    const [what, name, needless] = args.operands;
    if (needless !== undefined) throw misuse(`${JSON.stringify(needless)} is one argument too many`);
    const found = listingNamed(what);
    const query = queryOf(args, found, name);
    const shown = await withRegistry(scene, "read", (registry) =>
      found.show(registry, query(registry), scene.io.clock.now()),
    );
    if (isRefusal(shown)) {
      reportError(scene.io, shown.message);
      return 1;
    }
    scene.io.stdout.write(shown.text);
    if (shown.remark !== "") scene.io.stderr.write(`${shown.remark}\n`);
    return 0;
  },
};

function listingNamed(what: string | undefined): AnyListing {
  if (what === undefined) throw misuse(`say what to list: ${NAMES.join(", ")}`);
  const found = LISTINGS.find(({ names }) => names.includes(what.toLowerCase()));
  if (found !== undefined) return found;
  const near = nearest(what, NAMES);
  const advice = near === undefined ? `there are ${NAMES.join(", ")}` : `did you mean ${near}?`;
  throw misuse(`${JSON.stringify(what)} cannot be listed; ${advice}`);
}

/** Where it is looked depends on the place; what is wrong with the arguments does not. */
function queryOf(
  args: Arguments,
  { scope }: AnyListing,
  name: string | undefined,
): (registry: Pick<Registry, "namespace" | "place">) => Query {
  const all = args.has("all-namespaces");
  const given = args.text("namespace");
  if (all && given !== undefined) throw misuse("give -n or -A, not both");
  const format = formatOf(args.text("output"));
  return ({ namespace: usual, place }) => {
    const unasked = scope === "namespace" || (scope === "namespace in a cluster" && place === "cluster");
    const namespace = all || scope === "cluster" ? undefined : (given ?? (unasked ? usual : undefined));
    return { format, namespace, name };
  };
}
