// SPDX-License-Identifier: Apache-2.0
// Reviews of pods that nobody creates, of a replica in a cluster: what they are told, and how much they may take.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { noopLogger } from "../../allocator/base/ports.ts";
import { DB_POOL } from "../../test/support/fixtures.ts";
import {
  annotationsOf,
  applied,
  claimObject,
  deniedAs,
  deploymentPod,
  type Json,
  ownedBy,
  pod,
  review,
} from "../../test/support/objects.ts";
import { send } from "../../test/support/reviewing.ts";
import { openWorld, type World } from "../../test/support/world.ts";
import { type PendingClaimLimiter as Limiter, PendingClaimLimiter } from "./pending-claims.ts";
import { createHandlers } from "./routes.ts";

const ASKS = { "berth.dev/pools": "db" };

/** What the review is told: the annotations, or the refusal. */
async function reported(
  world: World,
  object: Json,
  pendingClaims?: Limiter,
): Promise<Record<string, string> | string> {
  const { embedded: _, ...admission } = world.admission;
  const handlers = createHandlers({ ...admission, ...(pendingClaims && { pendingClaims }) });
  const response = await handlers["/mutate/pods"](review(object), new AbortController().signal);
  await world.settle();
  return response.allowed ? annotationsOf(applied(object, response)) : deniedAs(response);
}

describe("a forged review", () => {
  it("under the name of another pod's claim is not told that pod's token", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const own = await reported(world, pod("", { generateName: "etl-", annotations: ASKS }));
    assert.ok(typeof own !== "string", String(own));
    const [claim = "", token = ""] = [own["berth.dev/claim"], own["berth.dev/token"]];
    assert.notEqual(token, "");
    const forged = await reported(world, pod(claim, { annotations: ASKS }));
    assert.ok(!JSON.stringify(forged).includes(token), JSON.stringify(forged));
    assert.match(
      String(forged),
      /^CLAIM_BUSY: claim shop\/c-\w+ belongs to Pod etl-; give this pod another name$/,
    );
  });

  it("under the name of a claim made by hand, which a machine's pod was promised, is not told that pod's token", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    await send(world, "/validate/claims", claimObject("win11", { request: { addresses: ["10.20.0.70"] } }));
    const owner = ownedBy("VirtualMachineInstance", "win11", "kubevirt.io/v1");
    const own = await reported(world, pod("virt-launcher-win11-x", { owner }));
    assert.ok(typeof own !== "string", String(own));
    const { "berth.dev/token": token = "" } = own;
    assert.notEqual(token, "");
    for (const annotations of [{}, ASKS, { "berth.dev/ips": "10.20.0.70" }]) {
      const forged = await reported(world, pod("win11", { annotations }));
      assert.ok(!JSON.stringify(forged).includes(token), JSON.stringify(forged));
    }
  });

  it("takes no more than the limit, be it a claim, a slot or an address beside a claim", async () => {
    await using world = await openWorld({ pools: [DB_POOL] });
    const ips = (address: string) => ({ annotations: { "berth.dev/ips": address } });
    assert.equal(typeof (await reported(world, pod("victim", ips("10.20.0.70")))), "object");
    const deps = { clock: world.clock, log: noopLogger, view: world.cache };
    const holds = new PendingClaimLimiter(deps, { perNamespace: 3, inAll: 10 });
    for (const object of [
      pod("new", ips("10.20.0.71")),
      deploymentPod("web", ips("10.20.0.72;10.20.0.73;10.20.0.74")),
      pod("victim", ips("10.20.0.75")),
    ])
      assert.equal(typeof (await reported(world, object, holds)), "object", JSON.stringify(object));
    assert.equal(holds.size, 3);
    const before = world.dump();
    for (const object of [
      pod("newer", ips("10.20.0.76")),
      deploymentPod("web", ips("10.20.0.72;10.20.0.73;10.20.0.74")),
      pod("victim", ips("10.20.0.77")),
    ])
      assert.match(
        String(await reported(world, object, holds)),
        /^LIMIT_REACHED: namespace shop has 3 claims and addresses /,
      );
    assert.equal(world.dump(), before);
    assert.equal(typeof (await reported(world, pod("victim", ips("10.20.0.70")), holds)), "object");
  });
});
