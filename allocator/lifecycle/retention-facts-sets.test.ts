// SPDX-License-Identifier: Apache-2.0
import { describe } from "node:test";
import { bindingTo, podFactsOf, workloadFactsOf } from "../../test/support/fixtures.ts";
import type { Claim } from "../model/claim.ts";
import {
  asking,
  asks,
  elsewhere,
  failed,
  foreign,
  given,
  inventory,
  mute,
  observeAll,
  ordinal,
  own,
  plain,
  type Row,
  set,
  used,
} from "./testing/observed-owners.ts";

const former = { ...ordinal, uid: "u-1" };
const toldOthers = podFactsOf("mysql-0", {
  uid: "u2",
  annotations: { "berth.dev/claim": "mysql-0", "berth.dev/addresses": "10.20.0.99" },
});
const kept: Partial<Claim> = { retained: { since: 0, because: "deleted" } };
const berths = { "cni.projectcalico.org/ipAddrs": '["10.20.0.70"]' };
const ROWS: readonly Row[] = [
  ["needed, no pod", "an ordinal that the set wants", {}, inventory([], set(1))],
  [
    "deleted, no pod",
    "an ordinal of a set that is gone, whose name one has that asks for nothing",
    {},
    inventory([plain], undefined),
  ],
  ["needed, pod", "an ordinal with its pod", {}, inventory([own], set(1))],
  ["scaled, no pod", "an ordinal above", {}, inventory([], set(0))],
  ["scaled, no pod", "an ordinal below the start", {}, inventory([], set(3, 1))],
  ["deleted, no pod", "a set that is gone", {}, inventory([], undefined)],
  ["deleted, pod", "a set that is gone, its pod is not", {}, inventory([own], undefined)],
  [
    "deleted, no pod",
    "a retained one of a set that is gone, of whose name a pod was told other addresses",
    kept,
    inventory([toldOthers], undefined),
  ],
  [
    "scaled, no pod",
    "a retained ordinal above, of whose name a pod of a former set was told other addresses",
    kept,
    inventory([toldOthers], set(0)),
  ],
  [
    "deleted, pod",
    "one that is not retained, whose pod was told other addresses and may yet get them",
    {},
    inventory([toldOthers], undefined),
  ],
  ["deleted, pod", "a retained one whose pod was told its addresses", kept, inventory([own], undefined)],
  ["unseen, no pod", "a set that cannot be read", {}, inventory([], "unknown")],
  ["needed, pod", "a set that cannot be read, its pod is there", {}, inventory([own], "unknown")],
  ["needed, no pod", "a set that cannot be read, used before", used, inventory([], "unknown")],
  ["unseen, no pod", "a set that nobody applied", {}, inventory([], "never admitted")],
  ["needed, pod", "a set that nobody applied, its pod is there", {}, inventory([own], "never admitted")],
  ["scaled, no pod", "a set that nobody applied, used before", used, inventory([], "never admitted")],
  [
    "deleted, no pod",
    "an ordinal of a set that was replaced by a smaller one",
    { identity: former },
    inventory([], set(0)),
  ],
  [
    "needed, no pod",
    "an ordinal that a set of the same name wants",
    { identity: former },
    inventory([], set(1)),
  ],
  ["needed, no pod", "an ordinal whose pod has ended", used, inventory([failed], set(1))],
  [
    "deleted, no pod",
    "an ordinal that was given to no pod since its template asks for nothing",
    used,
    inventory([plain], mute),
  ],
  [
    "deleted, no pod",
    "an ordinal that was given to no pod since its template asks another system",
    used,
    asking(elsewhere),
  ],
  [
    "needed, pod",
    "an ordinal whose template asks for an address of a pool in another system's words",
    { binding: bindingTo("mysql-0", "x", { podUID: "" }) },
    asking(berths),
  ],
  [
    "needed, pod",
    "an ordinal whose template asks for nothing, and whose next pod asks, which no review saw",
    used,
    inventory([asks], mute),
  ],
  [
    "deleted, pod",
    "an ordinal of a set that is gone, whose next pod asks, which no review saw",
    used,
    inventory([asks], undefined),
  ],
  [
    "deleted, pod",
    "a retained ordinal of a set that is gone, whose next pod asks, which no review saw",
    { ...used, ...kept },
    inventory([asks], undefined),
  ],
  [
    "scaled, pod",
    "an ordinal above, whose next pod was given it and is not bound yet",
    used,
    inventory([given], set(0)),
  ],
  [
    "deleted, no pod",
    "an ordinal whose template and next pod ask, and have the host's network by now",
    used,
    inventory([{ ...asks, onHostNetwork: true }], workloadFactsOf({ hostNetwork: true })),
  ],
  [
    "needed, pod",
    "an ordinal whose next pod asks and is of a template from before the host's network",
    used,
    inventory([asks], workloadFactsOf({ hostNetwork: true })),
  ],
  [
    "deleted, no pod",
    "an ordinal whose next pod asks and has ended, of a set that is gone",
    used,
    inventory([{ ...asks, ended: true }], undefined),
  ],
  ["needed, no pod", "an ordinal without a pod whose template asks for nothing", used, inventory([], mute)],
  ["needed, pod", "an ordinal whose pod was made to ask by others", used, inventory([given], mute)],
  ["needed, pod", "an ordinal whose pod has its address from before", used, inventory([own], mute)],
  ["unseen, no pod", "a StatefulSet of another API group", { identity: foreign }, inventory([], undefined)],
  [
    "needed, pod",
    "a StatefulSet of another API group, its pod is there",
    { identity: foreign, ...used },
    inventory([own], undefined),
  ],
  [
    "deleted, no pod",
    "a StatefulSet of another API group, its pod is gone",
    { identity: foreign, ...used },
    inventory([], set(1)),
  ],
  [
    "deleted, no pod",
    "a StatefulSet's pod of another name that is gone",
    { name: "db", ...used },
    inventory([], set(1)),
  ],
];

describe("observeOwner", () => {
  observeAll(ROWS);
});
