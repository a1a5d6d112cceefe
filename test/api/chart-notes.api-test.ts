// SPDX-License-Identifier: Apache-2.0
// What helm prints after an installation, by its values.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { havePartsOrSkip } from "./binaries.ts";
import { CHART, mustHelm, type Values } from "./chart-release.ts";
import type { ControlPlane } from "./plane.ts";
import { openControlPlane } from "./shared-plane.ts";

if (havePartsOrSkip(["etcd", "kube-apiserver", "helm"])) {
  describe("the notes of the chart", () => {
    let plane: ControlPlane | undefined;
    before(async () => {
      plane = await openControlPlane();
    });
    after(() => plane?.close());

    async function notes(values: Values): Promise<string> {
      const args = ["install", "berth", CHART, "--namespace", "berth-system", "--dry-run=client"];
      args.push("--disable-openapi-validation", "--take-ownership"); // Berth's definitions may be there
      return await mustHelm(args, { values, ...(plane === undefined ? {} : { plane }) });
    }

    it("say which pods start with another address where Berth is not waited for", async () => {
      const words = /\n\nWARNING: PODS ARE CREATED WHILE NO WEBHOOK ANSWERS .*\n.*another address/;
      assert.match(await notes({ webhook: { failurePolicy: "Ignore" } }), words);
      assert.doesNotMatch(await notes({}), words);
    });
  });
}
