// SPDX-License-Identifier: Apache-2.0
// Two pools over each other, as two replicas may let pass that review them at the same moment: one for fixed addresses, and one
// with blocks that nodes own.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { isOwnedIn } from "../../allocator/cache/block-index.ts";
import { parseAddress } from "../../allocator/ip/address.ts";
import { POOLS } from "../../kube/api/resource.ts";
import { eventually } from "../support/eventually.ts";
import { merge } from "./agent-calls.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { BlockCluster, SHOP } from "./block-cluster.ts";
import { berthctlCheck } from "./chaos-end.ts";
import { change, type Json, makePod } from "./replica-objects.ts";

const CONFIG = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
/** The webhook of pools. */
const REVIEW = "pools.berth.dev";

const noneLeftIn = (pool: string) =>
  new RegExp(
    `no free IPv4 address in pool \\\\?"${pool}\\\\?": .* in blocks of nodes, .*; nodes have blocks of another pool in its ranges`,
  );

interface Configuration {
  readonly metadata: { readonly name: string };
  readonly webhooks: readonly { readonly name: string }[];
}

if (havePartsOrSkip(["etcd", "kube-apiserver"])) {
  describe("pools over each other", () => {
    let cluster: BlockCluster;
    before(async () => {
      cluster = await BlockCluster.open();
    });
    after(() => cluster?.close());

    const rangesOf = (third: number, to: number) => ({
      ranges: [{ cidr: `10.90.${third}.0/24`, from: `10.90.${third}.8`, to: `10.90.${third}.${to}` }],
      cooldown: "1s",
    });
    const isMade = (name: string, spec: Json) =>
      cluster.makePool(name, spec).then(
        () => true,
        () => undefined,
      );

    async function reviewed(webhooks: readonly object[], name: string): Promise<void> {
      const { status, body } = await cluster.api.call(merge(`${CONFIG}/${name}`, { webhooks }));
      assert.equal(status, 200, JSON.stringify(body));
    }

    /** Makes it as if another replica had let it pass. */
    async function slipIn(name: string, spec: Json): Promise<void> {
      const { body } = await cluster.api.call({ method: "GET", path: CONFIG });
      const { items } = body as { readonly items: readonly Configuration[] };
      const own = items.find(({ webhooks }) => webhooks.some((one) => one.name === REVIEW));
      assert.ok(own, JSON.stringify(items));
      await reviewed(
        own.webhooks.filter((one) => one.name !== REVIEW),
        own.metadata.name,
      );
      await eventually("the pool is made without a review", () => isMade(name, spec), 30_000);
      await reviewed(own.webhooks, own.metadata.name);
      await eventually("pools are reviewed again", async () => {
        const query = { dryRun: "All" };
        const pool = { apiVersion: "berth.dev/v1alpha1", kind: "IPPool", metadata: { name: "again" }, spec };
        const call = { method: "POST", path: "/apis/berth.dev/v1alpha1/ippools", query, body: pool } as const;
        return (await cluster.api.call(call)).status === 403 || undefined;
      });
    }

    it("are never let pass both by one replica, whoever makes them at the same moment", async () => {
      for (let round = 0; round < 12; round++) {
        const both = await Promise.all([
          isMade(`one-${round}`, rangesOf(round, 15)),
          isMade(`two-${round}`, { ...rangesOf(round, 15), blockSize: { ipv4: 30, ahead: 0 } }),
        ]);
        assert.equal(both.filter(Boolean).length, 1, `round ${round}`);
        // on a busy machine pods wait for 5 s, and count for every pool that might serve them: nodes would have blocks of these, too
        const name = both[0] === true ? `one-${round}` : `two-${round}`;
        await change(cluster.api, POOLS, { name }, { spec: { disabled: true } });
      }
    });

    /** Pods that ask for an address of the pool, on n1, until one is refused; all that they were given, and the refusal. */
    async function fixedPods(pool: string): Promise<{ readonly given: string[]; readonly refusal: string }> {
      const node = cluster.node("n1");
      const given: string[] = [];
      for (let n = 0; n < 24; n++) {
        const name = `${pool}-${n}`;
        const over = { node: node.name, annotations: { "berth.dev/pools": pool } };
        const made = await makePod(cluster.api, { namespace: SHOP, name }, over).catch(String);
        if (typeof made === "string") return { given, refusal: made };
        const box = await cluster.up({ namespace: SHOP, name, uid: made.metadata.uid, node });
        given.push(...box.addresses);
      }
      return { given, refusal: "" };
    }

    for (const [third, fix, blk] of [
      [100, "a-fix", "z-blk"],
      [101, "fix", "blk"],
    ] as const) {
      it(`never give an address twice, are told of, and can be disabled: ${fix} and ${blk}`, async () => {
        const spec = rangesOf(third, 31);
        await cluster.makePool(blk, { ...spec, blockSize: { ipv4: 30 }, default: true });
        await cluster.untilOwned({ n1: 2, n2: 2 });
        await slipIn(fix, spec);
        const { given, refusal } = await fixedPods(fix);
        assert.ok(given.length <= 8 && given.length > 0, `${given.join()}: ${refusal}`);
        assert.match(refusal, noneLeftIn(fix));
        const addresses = given.map((text) => parseAddress(text.split("/")[0] ?? "") ?? assert.fail());
        const owned = (await cluster.blocks()).filter(
          ({ record }) => record.granted === true && addresses.some((address) => isOwnedIn(record, address)),
        );
        assert.deepEqual(owned, [], addresses.join());
        const boxes = [
          ...(await cluster.upAll(cluster.node("n1"), 3)),
          ...(await cluster.upAll(cluster.node("n2"), 3)),
        ];
        const all = [...given, ...boxes.flatMap((box) => box.addresses)];
        assert.equal(new Set(all).size, all.length, all.join());
        const check = await berthctlCheck(cluster.plane);
        assert.match(
          check,
          new RegExp(`defect +pool-overlap +pools .* both contain 10\\.90\\.${third}\\.8-`),
        );
        const kinds = [...check.matchAll(/defect +(\S+) {2,}/g)].map(([, kind]) => kind);
        assert.deepEqual([...new Set(kinds)], ["pool-overlap"], check);
        for (const name of [fix, blk])
          await change(cluster.api, POOLS, { name }, { spec: { disabled: true } });
        for (const box of boxes) await cluster.down(box);
        await assert.rejects(
          change(cluster.api, POOLS, { name: fix }, { spec: { disabled: false } }),
          /both contain/,
        );
      });
    }
  });
}
