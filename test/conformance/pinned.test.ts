// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { it } from "node:test";
import { versionOf } from "../api/binaries.ts";

it("Kubernetes' tests are those of the version that they judge", () => {
  assert.equal(versionOf("k8s.io/kubernetes", "conformance/go.mod"), versionOf("k8s.io/kubernetes"));
});
