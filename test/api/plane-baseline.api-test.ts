// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { havePartsOrSkip } from "./binaries.ts";
import { makeNamespaces } from "./crds.ts";
import { Etcd, put } from "./etcd.ts";
import { startControlPlane } from "./harness.ts";
import { Baseline } from "./plane-baseline.ts";

if (havePartsOrSkip(["etcd", "kube-apiserver"])) {
  describe("a control plane that is given to the next file", () => {
    it("is as it was, and keeps what its API server keeps for its compactions", async (t) => {
      const plane = await startControlPlane();
      t.after(() => plane.close());
      const baseline = await Baseline.take(plane);
      const etcd = new Etcd(plane.etcdUrl);
      const names = async () => (await etcd.keys({ values: false })).map(({ key }) => key);
      await etcd.apply([put("compact_rev_key", Buffer.from("1").toString("base64"))]);
      await makeNamespaces(plane.connect(), ["shop"]);
      assert.ok((await names()).includes("/registry/namespaces/shop"));
      assert.equal(await baseline.restore(), "restored");
      const left = await names();
      assert.ok(!left.includes("/registry/namespaces/shop"));
      assert.ok(left.includes("compact_rev_key"));
    });
  });
}
