// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { addressOfMac } from "../../allocator/ip/mac.ts";
import { DB_POOL, poolRecord } from "../../test/support/fixtures.ts";
import { claimObject, deniedAs, pod, review } from "../../test/support/objects.ts";
import { send } from "../../test/support/reviewing.ts";
import { openWorld } from "../../test/support/world.ts";
import { createHandlers } from "./routes.ts";

const MAC = addressOfMac("02:00:00:00:00:51");
const MACS = poolRecord("macs", [], { ranges: [{ cidr: "fe80::/64", from: MAC, to: MAC }], reserved: [MAC] });

describe("a dry run for a pod whose claim, made by hand, has a MAC address", () => {
  it("is refused as the pod itself where its networks say another one", async () => {
    await using world = await openWorld({ pools: [DB_POOL, MACS] });
    const interfaces = { eth0: ["10.20.0.70"], "mac-eth0": [MAC] };
    const made = claimObject("x", { request: { addresses: ["10.20.0.70", MAC], interfaces } });
    assert.equal(deniedAs(await send(world, "/validate/claims", made)), "");
    const answers = async (mac: string) => {
      const list = JSON.stringify([{ name: "lan", mac }]);
      const object = pod("x", { annotations: { "v1.multus-cni.io/default-network": list } });
      const handle = createHandlers(world.admission)["/mutate/pods"];
      const ask = async (dryRun: boolean) =>
        deniedAs(await handle(review(object, "CREATE", { dryRun }), new AbortController().signal));
      return [await ask(true), await ask(false)];
    };
    const words =
      "REQUEST_INVALID: the pod's networks say another MAC address of eth0 than berth.dev/mac; take one of the two out";
    assert.deepEqual(await answers("02:00:00:00:00:99"), [words, words]);
    assert.deepEqual(await answers("02:00:00:00:00:51"), ["", ""]);
  });
});
