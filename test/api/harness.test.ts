// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { it } from "node:test";
import { Daemon } from "./daemon.ts";

it("a control plane may take as many times as long as BERTH_PATIENCE says until it is ready", async () => {
  process.env["BERTH_PATIENCE"] = "3"; // read when the module is
  const { OwnControlPlane } = await import("./harness.ts");
  const folder = mkdtempSync(join(tmpdir(), "plane-"));
  const daemon = (name: string) => new Daemon(name, ["sleep", "600"], join(folder, name));
  const nobody = "https://127.0.0.1:1";
  const access = { url: nobody, etcdUrl: nobody, ca: "", auditLog: "", tokens: { admin: "x" } };
  const daemons = { etcd: daemon("etcd"), apiServer: daemon("kube-apiserver") };
  const plane = new OwnControlPlane(access, folder, daemons);
  try {
    await assert.rejects(plane.start(10), /^Error: the control plane: not ready within 30 ms/);
  } finally {
    await plane.close();
  }
});
