// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  addr,
  addrs,
  applicantOf,
  claimRecord,
  granted,
  NOW,
  refusalOf,
} from "../../test/support/fixtures.ts";
import { DEFAULT_RETENTION } from "../model/claim.ts";
import type { PodIdentity } from "../model/identity.ts";
import { type AllocationInput, requestFor, requestForClaim, slotRequests } from "./build-request.ts";

function ordinal(n: number): PodIdentity {
  const identity = { kind: "StatefulSet", apiVersion: "apps/v1", name: "mysql", uid: "u-1", ordinal: n };
  return { kind: "named", claim: `mysql-${n}`, identity };
}

const BARE: PodIdentity = {
  kind: "named",
  claim: "licence",
  identity: { kind: "Pod", apiVersion: "v1", name: "licence" },
};
const ANONYMOUS: PodIdentity = {
  kind: "anonymous",
  identity: { kind: "Pod", apiVersion: "v1", name: "etl-" },
};
const LIST = [addrs("10.20.0.70"), addrs("10.20.0.71", "fd00:20::71"), addrs("10.20.0.72")];

function listFor(podIdentity: PodIdentity, start: number): AllocationInput {
  return applicantOf({ podIdentity, start, request: { entries: LIST } });
}

describe("intentOf an ordinal", () => {
  it("is complete", () => {
    const request = { pools: ["db"], families: ["IPv4"] as const, sticky: true };
    assert.deepEqual(requestFor(applicantOf({ podIdentity: ordinal(1), request })), {
      key: { namespace: "shop", name: "mysql-1" },
      identity: { kind: "StatefulSet", apiVersion: "apps/v1", name: "mysql", uid: "u-1", ordinal: 1 },
      request: { pools: ["db"], families: ["IPv4"] },
      retention: DEFAULT_RETENTION,
      constraints: {
        namespace: "shop",
        name: "mysql-1",
        namespaceLabels: { "kubernetes.io/metadata.name": "shop" },
        podLabels: { app: "mysql" },
        pools: ["db"],
        families: ["IPv4"],
      },
    });
  });

  it("takes the entry counted from ordinals.start", () => {
    for (const [n, start, entry] of [
      [0, 0, LIST[0]],
      [2, 0, LIST[2]],
      [5, 5, LIST[0]],
      [7, 5, LIST[2]],
    ] as const) {
      const allocation = granted(requestFor(listFor(ordinal(n), start)));
      assert.deepEqual(allocation.constraints.addresses, entry);
      assert.deepEqual(allocation.request, { addresses: entry });
      assert.equal(allocation.hold, undefined);
    }
  });

  it("is refused where the list has no entry", () => {
    assert.equal(
      refusalOf(requestFor(listFor(ordinal(3), 0))),
      "LIST_TOO_SHORT: the list has 3 entries, for ordinals 0 to 2, and none for ordinal 3; add an entry or lower replicas",
    );
    assert.equal(
      refusalOf(requestFor(listFor(ordinal(4), 5))),
      "LIST_TOO_SHORT: the list has 3 entries, for ordinals 5 to 7, and none for ordinal 4; add an entry or lower replicas",
    );
    const one = applicantOf({ podIdentity: ordinal(1), request: { entries: [addrs("10.20.0.70")] } });
    assert.equal(
      refusalOf(requestFor(one)),
      "LIST_TOO_SHORT: the list has 1 entry, for ordinals 0 to 0, and none for ordinal 1; write berth.dev/ips alone, with an entry for each ordinal, or lower replicas",
    );
  });
});

describe("intentOf a pod without an ordinal", () => {
  it("takes the only entry", () => {
    const allocation = granted(
      requestFor(applicantOf({ podIdentity: BARE, request: { entries: [addrs("10.20.0.70")] } })),
    );
    assert.deepEqual(
      [allocation.key.name, allocation.constraints.addresses],
      ["licence", addrs("10.20.0.70")],
    );
  });

  it("is refused for a list, which it cannot choose from", () => {
    for (const podIdentity of [BARE, ANONYMOUS]) {
      assert.equal(
        refusalOf(requestFor(listFor(podIdentity, 0))),
        "REQUEST_INVALID: the request lists addresses for 3 pods, and this pod has no ordinal to choose by; give it one entry, or ask by berth.dev/pools where such pods are several",
      );
    }
  });

  it("is found again by its token when nothing else tells it from its like", () => {
    const allocation = granted(
      requestFor(applicantOf({ podIdentity: ANONYMOUS, request: { pools: ["db"] } })),
    );
    assert.equal(allocation.key.name, "c-tokentokento");
    assert.equal(allocation.constraints.name, "c-tokentokento");
    assert.deepEqual(allocation.hold, {
      token: "tokentokentokentokentokent",
      podName: "",
      podUID: "",
      node: "",
      since: NOW,
    });
  });
});

describe("retention of a request", () => {
  const cases: readonly (readonly [string, Partial<AllocationInput>, unknown])[] = [
    ["defaults", { request: { pools: ["db"] } }, DEFAULT_RETENTION],
    ["a sticky ordinal goes by its set", { request: { sticky: true } }, DEFAULT_RETENTION],
    [
      "a sticky bare pod survives its own deletion",
      { podIdentity: BARE, request: { sticky: true } },
      { ...DEFAULT_RETENTION, whenDeleted: "Retain" },
    ],
    [
      "a bare pod that is not sticky does not",
      { podIdentity: BARE, request: { pools: ["db"] } },
      DEFAULT_RETENTION,
    ],
    [
      "nobody comes back for an anonymous one",
      { podIdentity: ANONYMOUS, request: { sticky: true } },
      DEFAULT_RETENTION,
    ],
    [
      "nor if it asks to be retained",
      { podIdentity: ANONYMOUS, request: { sticky: true, retention: { whenDeleted: "Retain" } } },
      DEFAULT_RETENTION,
    ],
    [
      "what is said goes",
      { podIdentity: BARE, request: { sticky: true, retention: { whenDeleted: "Release", ttlMs: 5 } } },
      { whenDeleted: "Release", whenScaled: "Retain", ttlMs: 5 },
    ],
    [
      "each part for itself",
      { request: { pools: ["db"], retention: { whenScaled: "Release" } } },
      { whenDeleted: "Release", whenScaled: "Release", ttlMs: null },
    ],
  ];
  for (const [title, over, retention] of cases) {
    it(title, () => {
      assert.deepEqual(granted(requestFor(applicantOf(over))).retention, retention);
    });
  }
});

describe("slotRequests", () => {
  it("retains nothing for an owner that is not read", () => {
    const request = { entries: LIST, retention: { whenDeleted: "Retain" as const } };
    for (const identity of [
      { kind: "ReplicaSet", apiVersion: "apps/v1", name: "web" },
      { kind: "Rollout", apiVersion: "argoproj.io/v1alpha1", name: "web" },
    ]) {
      const podIdentity: PodIdentity = { kind: "set", workload: "web", identity };
      const slots = slotRequests(applicantOf({ podIdentity, request }), "web");
      assert.deepEqual(
        slots.map(({ retention }) => retention),
        LIST.map(() => DEFAULT_RETENTION),
      );
    }
  });

  it("retains the list of a CloneSet, and not what one of its pods has by pool", () => {
    const identity = { kind: "CloneSet", apiVersion: "apps.kruise.io/v1alpha1", name: "web" };
    const podIdentity: PodIdentity = { kind: "named", claim: "web-x7k", identity };
    const retention = { whenDeleted: "Retain" as const };
    const [slot] = slotRequests(applicantOf({ podIdentity, request: { entries: LIST, retention } }), "web");
    assert.equal(slot?.retention.whenDeleted, "Retain");
    const byPool = granted(requestFor(applicantOf({ podIdentity, request: { pools: ["db"], retention } })));
    assert.equal(byPool.retention.whenDeleted, "Release");
  });

  const identity = { kind: "Deployment", apiVersion: "apps/v1", name: "web" };
  const set: PodIdentity = { kind: "set", workload: "web", identity };

  it("gives one held request for each entry", () => {
    const request = { entries: LIST, pools: ["db"], retention: { whenDeleted: "Retain" as const } };
    const slots = slotRequests(applicantOf({ podIdentity: set, request }), "web");
    assert.deepEqual(
      slots.map(({ key, identity: { slot }, constraints, request: wanted }) => [
        key.name,
        slot,
        constraints.addresses,
        wanted,
      ]),
      LIST.map((entry, n) => [`web-slot-${n}`, n, entry, { addresses: entry, pools: ["db"] }]),
    );
    for (const slot of slots) {
      assert.deepEqual(slot.retention, { ...DEFAULT_RETENTION, whenDeleted: "Retain" });
      assert.equal(slot.hold?.token, "tokentokentokentokentokent");
      assert.equal(slot.identity.kind, "Deployment");
    }
  });

  it("gives none without entries", () => {
    assert.deepEqual(slotRequests(applicantOf({ podIdentity: set, request: { sticky: true } }), "web"), []);
  });
});

describe("requestForClaim", () => {
  it("wants what a reserved claim holds, whatever it once asked for", () => {
    const claim = claimRecord({ request: { pools: ["db"] }, retention: { ...DEFAULT_RETENTION, ttlMs: 7 } });
    const allocation = requestForClaim(
      applicantOf({ podIdentity: ordinal(0), request: { families: ["IPv6"] } }),
      claim,
    );
    assert.deepEqual(allocation.constraints.addresses, addrs("10.20.0.70"));
    assert.deepEqual(allocation.constraints.pools, ["db"]);
    assert.equal(allocation.constraints.families, undefined);
    assert.deepEqual(allocation.request, { pools: ["db"] });
    assert.equal(allocation.retention.ttlMs, 7);
    assert.equal(allocation.identity.uid, "u-1");
  });

  it("wants what a claim made by hand asks for as long as it has nothing", () => {
    const waiting = { nonce: "", addresses: [], handMade: true };
    const exact = claimRecord({ ...waiting, request: { addresses: [addr("10.20.0.80")] } });
    assert.deepEqual(requestForClaim(applicantOf(), exact).constraints.addresses, addrs("10.20.0.80"));
    const any = claimRecord({ ...waiting, request: { pools: ["db"], families: ["IPv4"] } });
    const { constraints } = requestForClaim(applicantOf(), any);
    assert.deepEqual(
      [constraints.addresses, constraints.pools, constraints.families],
      [undefined, ["db"], ["IPv4"]],
    );
  });
});
