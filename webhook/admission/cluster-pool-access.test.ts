// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { annotationsOf, applied, deniedAs, type Json, pod, workload } from "../../test/support/objects.ts";
import { openWorld } from "../../test/support/world.ts";
import { PIN, POOLS, said, send } from "../testing/cluster-reviews.ts";
import type { ServiceAccount } from "./admission-context.ts";

describe("pools that need the verb use", () => {
  const asking = (may: (account: ServiceAccount, pool: string) => boolean) => {
    const asked: string[] = [];
    const mayUse = async (account: ServiceAccount, pool: string) => {
      asked.push(`${account.namespace}/${account.name} ${pool}`);
      return may(account, pool);
    };
    return { asked, access: { mayUse } };
  };

  it("are open to the pod's service account when it has it, and only they are asked about", async () => {
    await using world = await openWorld({ pools: POOLS });
    const { asked, access } = asking(({ name }) => name === "teller");
    const claimed = async (name: string, annotations: Record<string, string>, spec: Json = {}) => {
      const object = pod(name, { annotations, spec });
      const response = await send(world, "/mutate/pods", object, { admission: { access } });
      return response.allowed
        ? annotationsOf(applied(object, response))["berth.dev/addresses"]
        : deniedAs(response);
    };
    assert.equal(await claimed("a", PIN), "10.20.0.70");
    assert.deepEqual(asked, []);
    const teller = { serviceAccountName: "teller" };
    assert.equal(await claimed("b", { "berth.dev/ips": "10.50.0.2" }, teller), "10.50.0.2");
    assert.match((await claimed("c", { "berth.dev/pools": "bank" }, teller)) ?? "", /^10\.51\.0\./);
    assert.equal(
      await claimed("d", { "berth.dev/pools": "vault" }),
      'POOL_FORBIDDEN: pool "vault" is only for service accounts with the verb "use" on it; ask its administrator for a role',
    );
    assert.deepEqual(asked, ["shop/teller vault", "shop/teller bank", "shop/default vault"]);
  });

  it("are judged for a template by its own service account", async () => {
    await using world = await openWorld({ pools: POOLS });
    const { asked, access } = asking(({ name }) => name === "teller");
    const set = (serviceAccountName: string) =>
      workload("StatefulSet", "mysql", {
        replicas: 1,
        spec: {
          template: {
            metadata: { annotations: { "berth.dev/pools": "vault" } },
            spec: { serviceAccountName },
          },
        },
      });
    assert.equal(await said(world, "/validate/workloads", set("teller"), { admission: { access } }), "");
    assert.match(
      await said(world, "/validate/workloads", set("other"), { admission: { access } }),
      /^POOL_FORBIDDEN: pod mysql-0: pool "vault" is only/,
    );
    assert.deepEqual(asked, ["shop/teller vault", "shop/other vault"]);
    assert.deepEqual(await world.holdings(), {});
  });
});
