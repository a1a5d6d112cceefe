// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { isRefusal, type Refusal, refuse } from "../../allocator/base/errors.ts";
import { noopLogger } from "../../allocator/base/ports.ts";
import type { Reserved } from "../../allocator/lifecycle/allocation-request.ts";
import type { Stored } from "../../allocator/store/store.ts";
import { ManualClock } from "../../system/testing/manual-clock.ts";
import { addrs, claimRecord, storedAs } from "../../test/support/fixtures.ts";
import { PendingClaimLimiter } from "./pending-claims.ts";

const LIMITS = { perNamespace: 3, inAll: 5 };

function claimOf(name: string, namespace = "shop"): Stored<"claim"> {
  return storedAs("claim", claimRecord({ namespace, name }));
}

/** Making a claim of that name, at once or when told. */
function making(name: string, namespace = "shop", made = true): () => Promise<Reserved> {
  const claim = claimOf(name, namespace);
  return async () => ({
    ...{ kind: "reserved", claim, addresses: claim.record.addresses },
    assigned: claim.record.addresses,
    ...{ besideClaim: [], waits: made, made },
  });
}

function saidOf(answer: Reserved | Refusal): string {
  return isRefusal(answer) ? `${answer.code}: ${answer.message}` : "made";
}

class Bench {
  readonly clock = new ManualClock();
  readonly known = new Map<string, Stored<"claim">>();
  readonly holds = new PendingClaimLimiter(
    {
      clock: this.clock,
      log: noopLogger,
      view: { claim: (key) => this.known.get(key), reservation: () => undefined },
    },
    LIMITS,
  );

  /** The answer, once the clock has run for as long as the holds are patient. */
  async make(name: string, namespace = "shop"): Promise<string> {
    const answer = this.holds.during(namespace, making(name, namespace));
    for (let ms = 0; ms < 4_000; ms += 50) {
      await new Promise(setImmediate);
      this.clock.advance(50);
    }
    const said = saidOf(await answer);
    if (said === "made") this.known.set(`${namespace}/${name}`, claimOf(name, namespace));
    return said;
  }
}

describe("claims that wait for their pods", () => {
  it("are as many as a namespace, and as the cluster, may have", async () => {
    const bench = new Bench();
    for (const name of ["a", "b", "c"]) assert.equal(await bench.make(name), "made");
    assert.equal(
      await bench.make("d"),
      "LIMIT_REACHED: namespace shop has 3 claims and addresses that are held for pods which were admitted and have not come, and no more is taken until they come, or what is held for them is free again after 120 s; try again",
    );
    for (const name of ["a", "b"]) assert.equal(await bench.make(name, "bank"), "made");
    assert.equal(
      await bench.make("a", "other"),
      "LIMIT_REACHED: the cluster has 5 claims and addresses that are held for pods which were admitted and have not come, and no more is taken until they come, or what is held for them is free again after 120 s; try again",
    );
    assert.equal(bench.holds.size, 5);
  });

  it("count for each interface that they have addresses of", async () => {
    const bench = new Bench();
    const request = { interfaces: { eth0: addrs("10.20.0.70"), net1: addrs("10.30.0.70") } };
    const two = async (): Promise<Reserved> => {
      const got = await making("two")();
      return { ...got, claim: { ...got.claim, record: { ...got.claim.record, request } } };
    };
    assert.equal(saidOf(await bench.holds.during("shop", two)), "made");
    assert.equal(await bench.make("b"), "made");
    assert.match(await bench.make("c"), /^LIMIT_REACHED/);
    bench.holds.settled("shop/two");
    for (const name of ["c", "d"]) assert.equal(await bench.make(name), "made");
    assert.equal(bench.holds.size, 3);
  });

  it("make room when the pod is seen or the claim is gone, and not by time", async () => {
    const bench = new Bench();
    for (const name of ["a", "b", "c"]) await bench.make(name);
    bench.clock.advance(3_600_000);
    assert.match(await bench.make("d"), /^LIMIT_REACHED/);
    bench.holds.settled("shop/b");
    bench.holds.settled("shop/b");
    assert.equal(await bench.make("d"), "made");
    assert.match(await bench.make("e"), /^LIMIT_REACHED/);
  });

  it("make room when nobody was told that the claim went", async () => {
    const bench = new Bench();
    for (const name of ["a", "b", "c"]) await bench.make(name);
    for (const name of ["shop/b", "shop/c"]) bench.known.delete(name);
    bench.clock.advance(10_000);
    assert.equal(await bench.make("d"), "made");
    assert.equal(bench.holds.size, 2);
  });

  it("count while they are made, and not when nothing was made", async () => {
    const bench = new Bench();
    const gate = Promise.withResolvers<Reserved>();
    const slow = [1, 2, 3].map(() => bench.holds.during("shop", () => gate.promise));
    assert.equal(bench.holds.size, 3);
    assert.match(await bench.make("late"), /^LIMIT_REACHED/);
    gate.resolve(await making("same")());
    await Promise.all(slow);
    assert.equal(bench.holds.size, 1); // three reviews of one pod
    await bench.holds.during("shop", making("there", "shop", false));
    await bench.holds.during("shop", async () => refuse("POOL_EXHAUSTED", "full"));
    await assert.rejects(
      bench.holds.during("shop", () => Promise.reject(new Error("away"))),
      /away/,
    );
    assert.equal(bench.holds.size, 1);
  });

  it("let 5,000 pods of one rollout pass, each of which is seen a moment after it was made", async () => {
    const clock = new ManualClock();
    const pendingClaims = new PendingClaimLimiter({
      clock,
      log: noopLogger,
      view: { claim: () => undefined, reservation: () => undefined },
    });
    const pods = Array.from({ length: 5_000 }, (_, n) => `web-${n}`);
    const running = new Set<Promise<void>>();
    const answers = new Map<string, number>();
    let most = 0;
    for (const name of pods) {
      const one = pendingClaims.during("shop", making(name)).then(async (answer) => {
        answers.set(saidOf(answer), (answers.get(saidOf(answer)) ?? 0) + 1);
        most = Math.max(most, pendingClaims.size);
        await clock.sleep(1_000);
        pendingClaims.settled(`shop/${name}`);
      });
      running.add(one);
      void one.finally(() => running.delete(one));
      await new Promise(setImmediate);
      // as many at once as an API server lets in
      while (running.size >= 700) {
        clock.advance(50);
        await new Promise(setImmediate);
      }
    }
    while (running.size > 0) {
      clock.advance(50);
      await new Promise(setImmediate);
    }
    assert.deepEqual([...answers], [["made", 5_000]]);
    assert.equal(most, 500); // it came to the limit
    assert.equal(pendingClaims.size, 0);
  });
});
