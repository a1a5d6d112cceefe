// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { after, afterEach, before, describe, it } from "node:test";
import { release } from "../../allocator/lifecycle/release.ts";
import { CLAIMS } from "../../kube/api/resource.ts";
import { startClaims } from "../../webhook/controllers/claims/controller.ts";
import { addrs, poolRecord } from "../support/fixtures.ts";
import { callWith, kubeconfigOf, lines, settingOf } from "./berthctl-cluster.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { ControllersCluster } from "./controllers-cluster.ts";

if (havePartsOrSkip(["etcd", "kube-apiserver"])) {
  describe("a claim that takes over from another one, on a real API server", () => {
    let cluster: ControllersCluster;
    const freed: string[] = [];
    before(async () => {
      cluster = await ControllersCluster.open();
      await cluster.makePool(poolRecord("quick", "10.21.0.0/24", { cooldown: "0s" }));
      cluster.replica.cache.onChange("reservation", (address, now) => {
        if (now === undefined) freed.push(address);
      });
    });
    after(() => cluster?.close());
    afterEach(() => cluster.endAll());

    const ready = (name: string, wanted = "True Reserved") =>
      cluster.condition(CLAIMS, name, `Ready=${wanted}`);
    const holder = async (address: string) =>
      (await cluster.store.get("reservation", address))?.record.claim.name;

    it("has the address when that one is deleted, which nobody else can have in between", async () => {
      cluster.start(startClaims);
      await cluster.applyClaim("first", { addresses: ["10.21.0.10"] });
      await ready("first");
      await cluster.applyClaim("rival", { addresses: ["10.21.0.10"] });
      await ready("rival", "False AddressTaken");
      await cluster.applyClaim("second", { addresses: ["10.21.0.10"] }, { takesOver: "first" });
      await ready("second", "False AddressTaken");
      await cluster.deleteClaim("first");
      await ready("second");
      assert.equal(await holder("10.21.0.10"), "second");
      assert.deepEqual((await cluster.claim("second"))?.record.addresses, addrs("10.21.0.10"));
      assert.ok(!freed.includes("10.21.0.10"), "it was free");
      await cluster.tells("second", ["Normal Waiting", "Normal Reserved"]);
    });

    it("has it, too, when Berth gives that one back", async () => {
      cluster.start(startClaims);
      await cluster.makePool(poolRecord("slow", "10.22.0.0/24", { cooldown: "1h" }));
      await cluster.applyClaim("third", { addresses: ["10.22.0.10"] });
      await ready("third");
      await cluster.applyClaim("fourth", { addresses: ["10.22.0.10"] }, { takesOver: "third" });
      await ready("fourth", "False AddressTaken");
      const third = await cluster.claim("third");
      assert.ok(third);
      assert.equal(await release(cluster.context, third), "released");
      await ready("fourth");
      assert.equal(await holder("10.22.0.10"), "fourth");
    });

    it("is made by berthctl release --to, with the rights of a person over claims", async () => {
      cluster.start(startClaims);
      await cluster.applyClaim("fifth", { addresses: ["10.21.0.30"] });
      await ready("fifth");
      const setting = settingOf([kubeconfigOf(cluster.plane, "admin")]);
      const call = (...argv: string[]) => callWith(setting, ...argv, "-n", "shop");
      assert.deepEqual(await call("release", "fifth", "--to", "sixth"), {
        code: 0,
        stdout: lines("ipclaim/shop/fifth released", "ipclaim/shop/sixth created   10.21.0.30"),
        stderr: "",
      });
      assert.equal(await cluster.claim("fifth"), undefined);
      assert.equal(await holder("10.21.0.30"), "sixth");
      assert.ok(!freed.includes("10.21.0.30"), "it was free");
      assert.deepEqual(await call("release", "fifth", "--to", "seventh"), {
        code: 1,
        stdout: "",
        stderr: "Error: there is no claim shop/fifth; see what there is with: berthctl get claims -A\n",
      });
    });
  });
}
