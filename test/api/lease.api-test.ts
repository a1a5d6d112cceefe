// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { itemPath, LEASES } from "../../kube/api/resource.ts";
import { type ElectionOptions, elect, type LeaderTerm } from "../../kube/controller/leader-election.ts";
import { kubeLeaseLock } from "../../kube/controller/lease-lock.ts";
import { eventually } from "../support/eventually.ts";
import { hostDeps } from "../support/host-deps.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { openControlPlane, type StoppablePlane } from "./shared-plane.ts";

/** The API server keeps whole seconds. */
const TIMINGS = { durationMs: 3_000, renewDeadlineMs: 1_500, retryMs: 200 };

/** A process that wants to lead. */
class Candidate {
  readonly #stop = new AbortController();
  readonly #ended: Promise<void>;
  terms = 0;
  term: LeaderTerm | undefined;

  constructor(options: ElectionOptions) {
    const work = async (term: LeaderTerm) => {
      this.terms++;
      this.term = term;
      await new Promise((resolve) => term.signal.addEventListener("abort", resolve, { once: true }));
    };
    this.#ended = elect(options, work, this.#stop.signal);
  }

  get leads(): boolean {
    return this.term?.holds() === true;
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#ended;
  }
}

if (havePartsOrSkip(["etcd", "kube-apiserver"])) {
  describe("a lease of a real API server", () => {
    let plane: StoppablePlane;
    before(async () => {
      plane = await openControlPlane();
    });
    after(() => plane?.close());

    const candidate = (lease: string, identity: string): Candidate => {
      const box = kubeLeaseLock(plane.connect(), { namespace: "kube-system", name: lease });
      const deps = { ...hostDeps(), timings: TIMINGS };
      return new Candidate({ box, identity, ...deps });
    };

    it("has one leader, and at once another one when it is given back", async () => {
      const [one, two] = [candidate("given", "one"), candidate("given", "two")];
      try {
        await eventually("a leader", () => one.leads || two.leads || undefined);
        const [first, second] = one.leads ? [one, two] : [two, one];
        await new Promise((resolve) => setTimeout(resolve, 1_000));
        assert.deepEqual([first.leads, second.leads, second.terms], [true, false, 0]);
        await first.stop();
        assert.equal(first.leads, false);
        await eventually("the next leader", () => second.leads || undefined);
      } finally {
        await Promise.all([one.stop(), two.stop()]);
      }
      const path = itemPath(LEASES, { namespace: "kube-system", name: "given" });
      const { body } = await plane.connect().call({ method: "GET", path });
      const { spec } = body as { spec: { holderIdentity?: string; leaseTransitions: number } };
      assert.equal(spec.holderIdentity ?? "", "");
      assert.equal(spec.leaseTransitions, 1);
    });

    it("is lost before anybody else can have it when it cannot be renewed", async () => {
      const leader = candidate("lost", "one");
      try {
        await eventually("a leader", () => leader.leads || undefined);
        await plane.apiServer.pause();
        await eventually("it steps down", () => !leader.leads || undefined, 3_000);
        await plane.apiServer.resume();
        await eventually("it leads again", () => (leader.leads && leader.terms === 2) || undefined, 20_000);
      } finally {
        await plane.apiServer.resume();
        await leader.stop();
      }
    });
  });
}
