// SPDX-License-Identifier: Apache-2.0
// Mixtures of other systems' annotations that Berth reads, through the reviews of a cluster.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import type { Labels } from "../../allocator/base/ports.ts";
import { OWN_OF_EACH } from "../../allocator/model/dialect.ts";
import { macOn } from "../../allocator/model/interface-macs.ts";
import { formatHolding } from "../../allocator/model/interfaces.ts";
import { DIALECT_POOLS } from "../../test/support/dialect-cases.ts";
import {
  annotationsOf,
  applied,
  deniedAs,
  type Json,
  pod,
  review,
  statefulPod,
  workload,
} from "../../test/support/objects.ts";
import { runsOf } from "../../test/support/runs.ts";
import { openWorld, type World } from "../../test/support/world.ts";
import type { AdmissionResponse } from "../review/admission-review.ts";
import {
  defaults,
  foreign,
  judge,
  judgeMacs,
  lists,
  macsOfSet,
  mixtures,
  names,
  pair,
  twiceSaid,
} from "../testing/dialect-mixtures.ts";
import { NEVER, namespace, replica } from "../testing/dialect-replica.ts";
import type { AdmissionContext } from "./admission-context.ts";
import { mutatePods } from "./mutate-pod.ts";
import { validatePods } from "./validate-pod.ts";
import { validateWorkloads } from "./validate-workload.ts";

/** What the first review wrote into the pod, as the second one has it. */
async function secondReview(
  admission: AdmissionContext,
  object: Json,
  first: AdmissionResponse,
): Promise<Json> {
  const made = applied(object, first);
  const answer = await validatePods(admission)(review(made, "CREATE"), NEVER);
  assert.equal(deniedAs(answer), "", JSON.stringify(annotationsOf(made)));
  return made;
}

async function emptied(world: World): Promise<void> {
  for (const one of await world.all("reservation")) await world.store.remove("reservation", one);
  for (const one of await world.all("claim")) await world.store.remove("claim", one);
  await world.settle();
}

describe("mixtures of systems' annotations", () => {
  it("of a StatefulSet are those of its pods: a list beside what is left to others, and MAC addresses that change", async () => {
    await using world = await openWorld({ pools: DIALECT_POOLS });
    await namespace(world, {});
    const context = { ...world.context, dialects: OWN_OF_EACH };
    const host = { ...world.admission, context, dialects: OWN_OF_EACH };
    const handled = async (annotations: Labels, uid: string) => {
      const object = statefulPod("web", 1, { annotations });
      const first = await mutatePods(host)(review(object, "CREATE"), NEVER);
      if (!first.allowed) return undefined;
      await world.settle();
      const metadata = (one: Json) => ({ ...one, metadata: { ...(one["metadata"] as Json), uid } });
      const made = metadata(applied(object, first));
      const second = await validatePods(host)(review(made, "CREATE"), NEVER);
      assert.equal(deniedAs(second), "", JSON.stringify(annotationsOf(made)));
      await world.settle();
      return made;
    };
    await fc.assert(
      fc.asyncProperty(lists, foreign, macsOfSet, macsOfSet, async (list, others, before, after) => {
        const asking = (macs: string): Labels => ({
          ...list,
          ...others,
          ...(macs === "" || list["berth.dev/ips"] === undefined ? {} : { "berth.dev/mac": macs }),
        });
        const set = workload("StatefulSet", "web", { uid: "u", annotations: asking(before), replicas: 2 });
        const judged = await validateWorkloads(replica(world))(review(set, "CREATE"), NEVER);
        assert.equal(deniedAs(judged), "");
        for (const [n, macs] of [before, after].entries()) {
          const made = (await handled(asking(macs), `u${n}`)) ?? assert.fail("it was refused");
          const reported = annotationsOf(made)["berth.dev/addresses"]?.split(",") ?? [];
          assert.ok(
            reported.some((one) => one.split("@")[0] === pair[1]),
            reported.join(),
          );
          const claim = (await world.all("claim")).find(({ record }) => record.name === "web-1");
          assert.deepEqual(formatHolding(claim?.record ?? assert.fail()), reported);
          const mac = asking(macs)["berth.dev/mac"]?.split(";")[1];
          assert.equal(macOn(claim?.record ?? assert.fail(), "eth0"), mac);
          await validatePods(host)(review(made, "DELETE", { object: null, oldObject: made }), NEVER);
        }
        await emptied(world);
      }),
      { numRuns: runsOf(200, 40) },
    );
  });

  it("of a pod and its namespace are served together: Calico's pools of each family", async () => {
    await using world = await openWorld({ pools: DIALECT_POOLS });
    const keys = ["cni.projectcalico.org/ipv4pools", "cni.projectcalico.org/ipv6pools"] as const;
    const value = fc.option(
      names.map((list) => JSON.stringify(list)),
      { nil: undefined },
    );
    const side = fc
      .tuple(value, value)
      .map(
        (values): Labels =>
          Object.fromEntries(keys.flatMap((key, n) => (values[n] === undefined ? [] : [[key, values[n]]]))),
      );
    let count = 0;
    await fc.assert(
      fc.asyncProperty(side, side, foreign, async (own, space, others) => {
        await namespace(world, space);
        const object = pod(`c-${count++}`, { annotations: { ...own, ...others } });
        const first = await mutatePods(replica(world))(review(object, "CREATE"), NEVER);
        await world.settle();
        if (first.allowed) await secondReview(replica(world), object, first);
        await emptied(world);
      }),
      { numRuns: runsOf(200, 40) },
    );
  });

  it("are served exactly as all of them say, are left with each of them told, or are refused", async () => {
    await using world = await openWorld({ pools: DIALECT_POOLS });
    await namespace(world, {});
    let count = 0;
    await fc.assert(
      fc.asyncProperty(mixtures, async (annotations) => {
        const object = pod(`p-${count++}`, { annotations });
        const answer = await mutatePods(replica(world))(review(object, "CREATE"), NEVER);
        await world.settle();
        if (!answer.allowed) {
          assert.match(deniedAs(answer), /^[A-Z_]+: .{20}/);
          return;
        }
        await secondReview(replica(world), object, answer);
        const [claim] = await world.all("claim");
        for (const one of await world.all("reservation")) await world.store.remove("reservation", one);
        if (claim !== undefined) await world.store.remove("claim", claim);
        await world.settle();
        const given = claim && formatHolding(claim.record);
        judgeMacs(annotations, given, String(answer.warnings));
        judge(annotations, given, String(answer.warnings));
      }),
      { numRuns: runsOf(600, 60) },
    );
  });

  it("of a pod beside its namespace's defaults, with fallback or without, are served as its first review says, and its first interface always", async () => {
    await using world = await openWorld({ pools: DIALECT_POOLS });
    let count = 0;
    const said = fc.oneof({ weight: 4, arbitrary: mixtures }, { weight: 1, arbitrary: twiceSaid });
    await fc.assert(
      fc.asyncProperty(said, defaults, fc.boolean(), fc.boolean(), async (own, space, isAny, isTaken) => {
        await namespace(world, space);
        const admission = replica(world);
        if (isTaken) {
          const holder = pod("holder", { annotations: { "berth.dev/ips": "10.20.0.7" } });
          assert.equal(deniedAs(await mutatePods(admission)(review(holder, "CREATE"), NEVER)), "");
          await world.settle();
        }
        const annotations = isAny ? { ...own, "berth.dev/fallback": "any" } : own;
        const object = pod(`d-${count++}`, { annotations });
        const rehearsed = await mutatePods(admission)(review(object, "CREATE", { dryRun: true }), NEVER);
        const first = await mutatePods(admission)(review(object, "CREATE"), NEVER);
        assert.equal(first.allowed, rehearsed.allowed, `${deniedAs(first)} | ${deniedAs(rehearsed)}`);
        await world.settle();
        if (first.allowed) {
          const reported = annotationsOf(await secondReview(admission, object, first))["berth.dev/addresses"];
          const given = reported?.split(",") ?? [];
          const isOfFirst = (one: string) => !one.includes("@") || one.endsWith("@eth0");
          if (Object.keys(space).length > 0)
            assert.ok(given.some(isOfFirst), `${JSON.stringify(space)}: ${given.join()}`);
          assert.ok(!isTaken || !given.some((one) => one.split("@")[0] === "10.20.0.7"), given.join());
        }
        await emptied(world);
      }),
      { numRuns: runsOf(600, 60) },
    );
  });
});
