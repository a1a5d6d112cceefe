// SPDX-License-Identifier: Apache-2.0

import { type Refusal, type RefusalCode, refuse, rejoined } from "../../allocator/base/errors.ts";
import type { RecordReader } from "../../allocator/cache/reader.ts";
import { parseAddress } from "../../allocator/ip/address.ts";
import type { Occupant } from "../../allocator/model/occupant.ts";
import { addressInUse } from "../../allocator/planning/occupied.ts";
import { addressElsewhere, addressOfNodes, quoted } from "../../allocator/planning/refusal-messages.ts";
import { servesPods } from "../../allocator/pool/node-cidrs.ts";
import type { UserInfo } from "../review/admission-review.ts";

/** What one has to be allowed to read to see for oneself what a refusal tells. */
export interface Subject {
  readonly verb: "get" | "list";
  readonly resource: "ipclaims" | "ippools" | "ipblocks" | "pods" | "nodes" | "services";
  /** Empty: in the whole cluster. */
  readonly namespace: string;
}

/** Who may read what, by the API server's own rules. */
export interface ReadAccess {
  /** False also where that cannot be told. */
  mayRead(user: UserInfo, subject: Subject): Promise<boolean>;
}

/** Which of these it is tells which pools there are, and what they contain. */
const ABOUT_POOLS: ReadonlySet<RefusalCode> = new Set([
  "ADDRESS_OUTSIDE",
  "POOL_FORBIDDEN",
  "POOL_UNKNOWN",
  "NODE_MISMATCH",
  "POOL_OVERLAPS",
]);
/** What one has to be allowed to read to see for oneself which pools there are. */
export const ALL_POOLS: Subject = { verb: "list", resource: "ippools", namespace: "" };
/** Pools that a message names. */
const NAMED = 5;

/** Which nodes there are, and what they have of a pool. A claim that is busy names the node of the namespace's own pod. */
function tellsNodes(code: RefusalCode, details: Refusal["details"]): boolean {
  return details["node"] !== undefined && (code === "ADDRESS_TAKEN" || code === "POOL_IN_USE");
}

/** What a refusal tells beyond the namespace that it is for; undefined: nothing. */
function subjectOf({ code, details }: Refusal, namespace: string): Subject | undefined {
  // a pool of nodes' CIDRs is for nobody's pods, and everybody's pods may have addresses in it by the nodes' network
  if (details["use"] !== undefined) return undefined;
  if (ABOUT_POOLS.has(code)) return ALL_POOLS;
  if (tellsNodes(code, details)) return { verb: "list", resource: "ipblocks", namespace: "" };
  if (code === "POOL_IN_USE") return { verb: "list", resource: "ipclaims", namespace: "" };
  const holder = details["holder"]?.split("/")[0];
  const { occupant } = details;
  if (occupant === "node" || occupant === "host") return { verb: "list", resource: "nodes", namespace: "" };
  if (holder === undefined || holder === namespace) return undefined;
  if (occupant === "pod") return { verb: "get", resource: "pods", namespace: holder };
  return { verb: "get", resource: "ipclaims", namespace: holder };
}

/** What one has to be allowed to read to see for oneself whose an address is that is not from Berth. */
export function subjectOfOccupant({ kind, namespace }: Occupant): Subject {
  if (kind === "node" || kind === "host") return { verb: "list", resource: "nodes", namespace: "" };
  return { verb: "get", resource: kind === "pod" ? "pods" : "services", namespace };
}

/**
 * The refusal for those who may not read what others have: callers without the right, and everything that whoever reads the
 * namespace can read, such as events.
 */
export function withheld(view: RecordReader, refusal: Refusal, namespace: string): Refusal {
  const { parts } = refusal;
  if (parts !== undefined)
    return rejoined(
      refusal,
      parts.refusals.map((part) => withheld(view, part, namespace)),
    );
  if (subjectOf(refusal, namespace) === undefined) return refusal;
  const { code, details } = refusal;
  if (code === "NODE_MISMATCH") return onOtherNodesToo(namespace, details["node"]);
  const { pool: name = "", address = "" } = details;
  if (code === "POOL_OVERLAPS") return besideOthers(name);
  if (ABOUT_POOLS.has(code)) return noOpenPool(view, namespace);
  if (code === "POOL_IN_USE") {
    const what = tellsNodes(code, details) ? "nodes have blocks of" : "reservations stand in";
    const first = tellsNodes(code, details) ? "" : "release them first, or ";
    const next =
      details["field"] === undefined
        ? "set disabled: true and wait"
        : "list them in spec.reserved, and leave them out once they are free";
    const words = `pool ${name} is in use: ${what} what would go; ${first}${next}`;
    return refuse(code, words, { pool: name });
  }
  const parsed = parseAddress(address);
  if (parsed === undefined) return refusal;
  const pool = view.pool(name);
  if (details["occupant"] !== undefined) return addressInUse(view, pool, parsed);
  return tellsNodes(code, details)
    ? addressOfNodes(view, pool, parsed)
    : addressElsewhere(view, pool, parsed);
}

/** The pools are open to the namespace, and which they are is not said. */
function onOtherNodesToo(namespace: string, node: string | undefined): Refusal {
  if (node !== undefined) {
    const words = `what is kept for this pod is for other nodes than ${node}, where it is; delete the pod so that it is created again, or ask whoever runs the network`;
    return refuse("NODE_MISMATCH", words, { namespace, node });
  }
  const words =
    "what is asked for, or kept for this pod, is for nodes where it cannot run by its own nodeName, nodeSelector or node affinity, or for nodes that differ by family or interface; change those, or ask whoever runs the network";
  return refuse("NODE_MISMATCH", words, { namespace });
}

/** Whoever may make pools may perhaps not list them. */
function besideOthers(name: string): Refusal {
  const words = `pool ${name} has addresses, a gateway or part of a block of another pool's, or of what nodes have of one; choose others, or ask whoever runs the network`;
  return refuse("POOL_OVERLAPS", words, { pool: name });
}

function noOpenPool(view: RecordReader, namespace: string): Refusal {
  const open = view.pools().filter((pool) => {
    const { spec, authorization, disabled } = pool;
    const isOpen = spec.namespaceSelector === undefined && authorization !== "ServiceAccount" && !disabled;
    return isOpen && servesPods(pool);
  });
  const some = open.slice(0, NAMED).map(({ name }) => quoted(name));
  const instead = some.length === 0 ? "" : `; open to all: ${some.join(", ")}`;
  const words = `what is asked for is in no pool that is open to it in namespace ${namespace}${instead}; ask whoever runs the network`;
  return refuse("POOL_FORBIDDEN", words, { namespace });
}

/** Their refusals become events of the object's namespace, which whoever reads that namespace reads. */
const CONTROLLERS = /^system:(?:kube-controller-manager$|serviceaccount:kube-system:)/;

/** The refusal as this caller may read it; without `access` everybody may read all of it. */
export async function disclosed(
  reading: { readonly view: RecordReader; readonly access: ReadAccess | undefined },
  caller: { readonly user: UserInfo; readonly namespace: string },
  refusal: Refusal,
): Promise<Refusal> {
  if (refusal.parts !== undefined) {
    const parts = refusal.parts.refusals.map((part) => disclosed(reading, caller, part));
    return rejoined(refusal, await Promise.all(parts));
  }
  const { view, access } = reading;
  const { user, namespace } = caller;
  const subject = subjectOf(refusal, namespace);
  if (access === undefined || subject === undefined) return refusal;
  const may = !CONTROLLERS.test(user.username) && (await access.mayRead(user, subject));
  return may ? refusal : withheld(view, refusal, namespace);
}
