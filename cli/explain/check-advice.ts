// SPDX-License-Identifier: Apache-2.0
// What a person does about findings whose own words do not say it: those of the records alone, of which there may be many of a kind.

import type { Finding } from "../../allocator/gc/finding.ts";
import type { Backend } from "../backend/backend.ts";

const TAKEN =
  "another POD may be given the address: end the POD that has it (berthctl who ADDRESS says which)";
const ANEW =
  "end the claim's POD and release the claim (berthctl release NAMESPACE/NAME); the next POD has an address reserved anew";
const STRAY =
  "its node gives it back once no POD has an address of it; if it stays then, look at the log of that node's agent";

/** Of a defect. POD is what they are called where the records are. */
const OF_DEFECTS: { readonly [K in Finding["kind"]]?: string } = {
  "double-claim":
    "end the PODs of all but one of these claims, and release those (berthctl release NAMESPACE/NAME)",
  "double-use": "berthctl who ADDRESS says whose sandboxes they are; end all but one",
  unreserved:
    "Berth reserves it again within two minutes, unless another has it by now: then end the claim's POD, and the next one has an address reserved anew",
  outside: "put the address into a pool again, or end the claim's POD and release the claim",
  misfiled: ANEW,
  "block-overlap":
    "berthctl get blocks says whose they are; drain one of the two nodes, so that it gives its block back",
  "stray-block": STRAY,
  "outside-block": TAKEN,
  "in-block": ANEW,
  "two-of-a-family": ANEW,
  "unclaimed-use": TAKEN,
};
/** What stays as long as pods, or a pool that is full, keep it so: nothing is under way. */
const OF_WAITING: { readonly [K in Finding["kind"]]?: string } = {
  "stray-block": STRAY,
  "unreserved-request": "berthctl explain claim/NAMESPACE/NAME says what the claim waits for",
};
/** What the records show of an act; most of these are never defects. */
const OF_ACTS: ReadonlySet<string> = new Set(
  ["orphan", "half-released", "ungranted-block", ...Object.keys(OF_DEFECTS)].filter(
    (kind) => !(kind in OF_WAITING),
  ),
);
const UNDER_WAY =
  "an act is under way, or broke off, and Berth ends it within two minutes; what is still there then: berthctl explain of the claim or address, and the log of Berth's webhook";

/** A line for each kind that was found, in their order. */
export function adviceOn(findings: readonly Finding[], place: Backend["place"]): readonly string[] {
  const said = findings.flatMap(({ severity, kind }) => {
    const words = (severity === "defect" ? OF_DEFECTS : OF_WAITING)[kind];
    return words === undefined
      ? []
      : [`${kind}: ${words.replaceAll("POD", place === "etcd" ? "container" : "pod")}`];
  });
  const named = [...new Set(said)];
  const isUnderWay = findings.some(({ severity, kind }) => severity === "pending" && OF_ACTS.has(kind));
  const log = place === "cluster" ? UNDER_WAY : UNDER_WAY.replace("Berth's webhook", "berthctl up");
  return isUnderWay ? [...named, `pending: ${log}`] : named;
}
