// SPDX-License-Identifier: Apache-2.0
// Many who take from one pool at the same moment, each by a copy of the records that is behind.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { isRefusal } from "../../allocator/base/errors.ts";
import { KeyedMutex } from "../../allocator/base/keyed-mutex.ts";
import type { Context } from "../../allocator/cache/context.ts";
import { requestFor } from "../../allocator/demand/build-request.ts";
import { audit } from "../../allocator/gc/audit.ts";
import type { AllocationRequest } from "../../allocator/lifecycle/allocation-request.ts";
import { reserve } from "../../allocator/lifecycle/reserve.ts";
import { type PoolRecord, parsePool } from "../../allocator/pool/pool.ts";
import { listed } from "../../allocator/store/contract/subject.ts";
import type { Kind, Stored } from "../../allocator/store/store.ts";
import { createRandom } from "../../system/random.ts";
import type { ClusterCaches } from "../../webhook/cluster-state/caches.ts";
import { eventually } from "../support/eventually.ts";
import { applicantOf, granted, poolRecord } from "../support/fixtures.ts";
import { isFull } from "../support/runs.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { clear, installDefinitions, makeNamespaces } from "./crds.ts";
import type { ControlPlane } from "./plane.ts";
import { openTestReplica } from "./replica-deps.ts";
import { openControlPlane } from "./shared-plane.ts";

const ALLOCATORS = 64;
const REPLICAS = 4;
/** For all allocators together there are two addresses too few. */
const { each, cidr } = isFull ? { each: 8, cidr: "10.64.0.0/23" } : { each: 2, cidr: "10.64.0.0/25" };
const USABLE = ALLOCATORS * each - 2;

function requestOf(name: string): AllocationRequest {
  const identity = { kind: "Pod", apiVersion: "v1", name };
  const podIdentity = { kind: "named", claim: name, identity } as const;
  return granted(requestFor(applicantOf({ podIdentity, request: { pools: ["hot"] }, token: name, now: 0 })));
}

/** As in another process: only the copy of the records is shared. */
function apart({ context }: ClusterCaches): Context {
  return { ...context, random: createRandom(), serial: new KeyedMutex() };
}

if (havePartsOrSkip(["etcd", "kube-apiserver"])) {
  describe("64 allocators on one pool", () => {
    let plane: ControlPlane;
    const replicas: ClusterCaches[] = [];
    before(async () => {
      plane = await openControlPlane();
      await installDefinitions(plane.connect());
      await makeNamespaces(plane.connect(), ["shop"]);
      for (let i = 0; i < REPLICAS; i++) replicas.push(await openTestReplica(plane.connect()));
    });
    after(async () => {
      await Promise.all(replicas.map((replica) => replica.close()));
      await plane?.close();
    });

    const replicaOf = (i: number): ClusterCaches => {
      const replica = replicas[i % REPLICAS];
      assert.ok(replica);
      return replica;
    };

    async function make(pool: PoolRecord): Promise<void> {
      const { stored } = await replicaOf(0).context.store.create("pool", pool);
      // not the one of the same name before it, all of whose addresses were taken
      const isHeardOf = ({ cache }: ClusterCaches) =>
        cache.poolRecord(pool.name)?.uid === stored.uid && [...cache.reservations()].length === 0;
      for (const replica of replicas)
        await eventually("the pool is heard of", () => isHeardOf(replica) || undefined);
    }

    async function all<K extends Kind>(kind: K): Promise<Stored<K>[]> {
      return await listed(replicaOf(0).context.store, kind);
    }

    it("never take one address twice, and take the last one", async () => {
      const pool = poolRecord("hot", cidr, { limits: { perNamespace: 1_000_000 } });
      await make(pool);
      const work = Array.from({ length: ALLOCATORS }, async (_, i) => {
        const context = apart(replicaOf(i));
        const got: string[] = [];
        for (let n = 0; n < each; n++) {
          const answer = await reserve(context, requestOf(`p-${i}-${n}`), "pod");
          got.push(isRefusal(answer) ? answer.code : answer.claim.record.addresses.join());
        }
        return got;
      });
      const got = (await Promise.all(work)).flat();
      const addresses = got.filter((answer) => answer.startsWith("10."));
      const refused = got.filter((answer) => !answer.startsWith("10."));
      assert.equal(new Set(addresses).size, USABLE);
      assert.deepEqual([addresses.length, refused], [USABLE, ["POOL_EXHAUSTED", "POOL_EXHAUSTED"]]);
      const [claims, reservations] = [await all("claim"), await all("reservation")];
      const parsed = parsePool(pool);
      assert.ok(!isRefusal(parsed));
      const auditInput = {
        pools: [parsed],
        claims: claims.map(({ record }) => record),
        reservations: reservations.map(({ record }) => record),
        attachments: [],
      };
      assert.deepEqual(audit(auditInput), []);
      await clear(plane);
    });

    it("give one identity one claim", async () => {
      await make(poolRecord("hot", "10.65.0.0/24"));
      const answers = await Promise.all(
        Array.from({ length: ALLOCATORS }, (_, i) => reserve(apart(replicaOf(i)), requestOf("one"), "pod")),
      );
      const got = answers.map((answer) =>
        isRefusal(answer) ? answer.code : answer.claim.record.addresses.join(),
      );
      assert.equal(new Set(got).size, 1, got.join());
      assert.equal((await all("claim")).length, 1);
      assert.deepEqual(
        (await all("reservation")).map(({ record }) => record.address),
        [...new Set(got)],
      );
      await clear(plane);
    });
  });
}
