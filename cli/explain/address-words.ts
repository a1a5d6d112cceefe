// SPDX-License-Identifier: Apache-2.0
// What `who` and `explain` say of an address, for people.

import { listed } from "../../allocator/base/listed.ts";
import type { Kind } from "../../allocator/store/store.ts";
import { columns, printable } from "../terminal/output.ts";
import type { AddressLookup } from "./address-lookup.ts";
import type { AddressReport, AddressState, Sandbox } from "./address-report.ts";

const SENTENCES: { readonly [S in AddressState]: string } = {
  held: "is held",
  beside:
    "is kept for a pod that was admitted, beside a claim that does not have it; if the pod does not come it is free again within 120 s",
  orphaned: "is reserved for a claim that is gone; it is free again within 120 s",
  cooling: "was given back and is cooling down",
  "in-block": "is in a block of a node, which gives it to pods that need no fixed address",
  "in-node-cidr":
    "is in the CIDR of a node, whose own network gives it to pods: Berth has no record of which",
  "for-nodes": "is of a pool for CIDRs of nodes, and no node has the CIDR that it is in",
  "block-cooling": "is in a block that a node has given back, which is cooling down",
  "in-use": "is in use, and not from Berth",
  unseen: "is a pod's, by its own status; what Berth has of it, this user may not read",
  unread: "is taken: what is stored of it cannot be read",
  "block-returned":
    "is in a block of a node, which has given this address back for pods of any node that need no fixed one",
  free: "is free",
  reserved: "is free, and given by explicit request only",
  gateway: "is the gateway of its pool: nobody gets it",
  excluded: "is excluded from its pool: nobody gets it",
  outside: "is in no pool",
};

/** For people: a sentence, then what is known, a line each. */
export function describeAddress(report: AddressReport): string {
  const { address, mac, state, pool, claim, identity, phase, block, pod, node, since, coolingUntil } = report;
  const [user, place] = report.container === undefined ? ["pod", "node"] : ["container", "host"];
  const was = phase === "Retained" ? "last " : ""; // nobody has it now
  const known: readonly (readonly [string, string | undefined])[] = [
    ["kept as", mac && address],
    ["pool", pool],
    ["in use by", report.inUseBy],
    ["unread", report.unread],
    [
      "not seen",
      report.hidden &&
        `${listed(report.hidden.map(pluralOf), report.hidden.length)}: this user may not read them`,
    ],
    ["claim", claim],
    ["identity", identity],
    ["phase", phase],
    [
      "interface",
      report.unreported &&
        `${report.unreported}; it is not reported whether the ${user} has it: see ip address in the ${user}`,
    ],
    ["block", block],
    [`${was}pod`, pod === undefined && report.used === false ? "none says that it has it" : podWords(pod)],
    [`${was}${place}`, node],
    [was === "" ? "since" : "from", since],
    ["cooling until", coolingUntil],
    ["held until", report.heldUntil && `${report.heldUntil}, unless its pod comes`],
    ["retained until", report.retainedSince && retainedWords(report)],
    ...report.sandboxes.map((sandbox) => ["sandbox", describeSandbox(sandbox)] as const),
  ];
  const lines = known.flatMap(([what, value]) =>
    value === undefined ? [] : [[`  ${what}`, printable(value)]],
  );
  const name = mac === undefined ? address : `MAC address ${mac}`;
  const isLed = state === "gateway" && pool !== undefined;
  const words = isLed ? `is the gateway of pool "${pool}": nobody gets it` : SENTENCES[state];
  return `${name} ${words}\n${columns(lines)}`;
}

/** A pool may allow less than the claim asks for. */
function retainedWords({ retainedUntil, hidden }: AddressReport): string {
  const until = retainedUntil ?? "it is released";
  return hidden?.includes("pool") === true ? `${until}, if its pool allows it` : until;
}

/** Of one that this user may not look up, and that is nobody's of the namespace: what is known all the same, and what would help. */
export function unseenWords(
  { report: { address, pool, hidden = [] }, searched }: Pick<AddressLookup, "report" | "searched">,
  namespace: string,
): string {
  const name = `address ${address}${pool === undefined ? "" : ` in pool "${pool}"`}`;
  const roles = hidden.map((kind) => `${kind === "pool" ? "list" : "get"} on ${resourceOf(kind)}`);
  const whose = hidden.includes("reservation")
    ? `is of no claim ${searched === "claims" ? "" : "or pod "}of namespace ${namespace}, and whose else it is`
    : "is reserved for nobody, and whether it is free";
  return `${name} ${whose}, this user may not read; ask for a role that allows ${listed(roles, roles.length)}, or choose another user with --context`;
}

function resourceOf(kind: Kind): string {
  return `ip${pluralOf(kind)}.berth.dev`;
}

function pluralOf(kind: Kind): string {
  return `${kind}s`;
}

function podWords(pod: AddressReport["pod"]): string | undefined {
  return pod && `${pod.namespace}/${pod.name}${pod.uid === "" ? "" : ` (uid ${pod.uid})`}`;
}

function describeSandbox({ containerID, interface: name, network, pod, since }: Sandbox): string {
  const whose = pod === "" ? "" : `, pod ${pod}`;
  const where = network === "" ? "" : `, network ${network}`;
  const what = containerID === "" ? `by the pod's status, ${name}` : `${containerID} ${name}`;
  return `${what}${where}${whose}, since ${since}`;
}
