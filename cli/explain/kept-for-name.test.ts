// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { claimRecord, DB_POOL, reservationsOf } from "../../test/support/fixtures.ts";
import { pod } from "../../test/support/objects.ts";
import type { Backend } from "../backend/backend.ts";
import { withBackend } from "../backend/open-backend.ts";
import { Folder } from "../testing/folder.ts";
import { isForPod } from "./kept-for-name.ts";

describe("a claim that a pod of its name waits for, which no review saw", () => {
  async function waits(t: TestContext, asks: string, place: Backend["place"]): Promise<boolean> {
    const claim = claimRecord();
    const waiting = pod("mysql-0", { annotations: { "berth.dev/ips": asks }, uid: "u2" });
    const contents = { pools: [DB_POOL], claims: [claim], reservations: reservationsOf(claim) };
    const data = await Folder.of(t, { ...contents, objects: [waiting] });
    return await withBackend(data.context(), "read", async (backend) => {
      const seen = (await backend.world.object("Pod", "shop", "mysql-0")) ?? assert.fail();
      return await isForPod(claim, seen, { ...backend, place });
    });
  }

  it("is what the pod asks for; in a cluster any other is never bound to it, and may be released", async (t) => {
    assert.equal(await waits(t, "10.20.0.70", "cluster"), true);
    assert.equal(await waits(t, "10.20.0.99", "cluster"), false);
    assert.equal(await waits(t, "10.20.0.99", "data"), true);
  });
});
