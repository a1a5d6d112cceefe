// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { noopLogger } from "../../../allocator/base/ports.ts";
import { RecordCache } from "../../../allocator/cache/cache.ts";
import { ASSIGNED_CLAIM, ASSIGNED_TOKEN } from "../../../allocator/manifest/annotations.ts";
import type { Claim } from "../../../allocator/model/claim.ts";
import { bindingTo, claimRecord, storedAs } from "../../../test/support/fixtures.ts";
import type { ObservedPod } from "../../cluster-state/informers.ts";
import { POD as ASKING } from "./testing/decided-pods.ts";
import { WaitIndex } from "./wait-index.ts";
import { WakeUps } from "./wake-ups.ts";

type Handler = (key: string, now: ObservedPod | undefined, before: ObservedPod | undefined) => void;

const KEY = "shop/mysql-0";
const POD: ObservedPod = { ...ASKING, annotations: {} };
const ADMITTED = { ...POD, annotations: { [ASSIGNED_CLAIM]: "c-1", [ASSIGNED_TOKEN]: "t1" } };

/** Which pods the binder looks at; `become` tells of the pod. */
function following(...claims: readonly Claim[]) {
  const cache = new RecordCache(noopLogger);
  const put = (claim: Claim) => cache.apply("claim", { type: "put", stored: storedAs("claim", claim) });
  for (const claim of claims) put(claim);
  const handlers: Handler[] = [];
  let pod: ObservedPod | undefined;
  const onChange = (handler: Handler) => {
    handlers.push(handler);
    return () => {};
  };
  const pods = { get: (key: string) => (key === KEY ? pod : undefined), onChange };
  const woken: string[] = [];
  const watches = { pods, nodes: { onChange: () => () => {} } };
  const deps = { watches, cache, leadership: { leads: () => true, onGain: () => () => {} } };
  const waiters = new WaitIndex();
  new WakeUps(deps as never, { waiters, left: new Map(), add: (key) => woken.push(key) }).follow();
  return {
    put,
    waiters,
    wokenBy: (change: () => void) => {
      change();
      return woken.splice(0);
    },
    become: (now: ObservedPod | undefined) => {
      const before = pod;
      pod = now;
      for (const handler of handlers) handler(KEY, now, before);
    },
  };
}

describe("the binder", () => {
  it("looks at no pod that was admitted without a claim, while there is none of its name", () => {
    const { wokenBy, become } = following(claimRecord({ name: "mysql-1" }));
    const { node: _, ...unplaced } = POD;
    for (const now of [
      { ...unplaced, node: "" },
      POD,
      { ...POD, up: true },
      { ...POD, ended: true },
      undefined,
    ])
      assert.deepEqual(
        wokenBy(() => become(now)),
        [],
      );
  });

  it("looks at it when a claim of its name comes, and at each change from then on", () => {
    const { wokenBy, become, put } = following();
    become(POD);
    assert.deepEqual([...new Set(wokenBy(() => put(claimRecord({ name: "mysql-0" }))))], [KEY]);
    for (const now of [{ ...POD, node: "n2" }, { ...POD, deleting: true }, undefined])
      assert.deepEqual(
        wokenBy(() => become(now)),
        [KEY],
      );
  });

  it("looks at each change of a pod that was admitted with a claim, be the claim known or not", () => {
    const { wokenBy, become } = following();
    for (const now of [ADMITTED, { ...ADMITTED, node: "n2" }, POD, ADMITTED, undefined])
      assert.deepEqual(
        wokenBy(() => become(now)),
        [KEY],
      );
  });

  it("looks at whoever waits for a claim when the pod that has it goes, whatever claim the pod was admitted with", () => {
    const binding = bindingTo("mysql-0", POD.node, { podUID: POD.uid });
    const { wokenBy, become, waiters } = following(claimRecord({ name: "c-9", binding }));
    become(POD);
    waiters.wait("shop/next", ["shop/c-9"]);
    assert.deepEqual(
      wokenBy(() => become(undefined)),
      ["shop/next"],
    );
  });

  it("looks at no pod that is exempt", () => {
    const { wokenBy, become } = following(claimRecord({ name: "mysql-0" }));
    assert.deepEqual(
      wokenBy(() => become({ ...ADMITTED, exempt: true })),
      [],
    );
  });
});
