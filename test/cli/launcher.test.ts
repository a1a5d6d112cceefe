// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { symlink } from "node:fs/promises";
import { join } from "node:path";
import { describe, it } from "node:test";
import { run } from "../support/process.ts";
import { ENV, folderFor } from "./stack.ts";

/** Of the checkout, which runs its sources. */
const BERTHCTL = join(import.meta.dirname, "../../build/berthctl");

describe("the launcher", () => {
  it("finds its program through links, by any name and from anywhere", async (t) => {
    const folder = await folderFor(t);
    await symlink(BERTHCTL, join(folder, "near"));
    await symlink("near", join(folder, "kubectl-berth"));
    const plain = await run(BERTHCTL, ["version"], { env: ENV });
    assert.equal(plain.rc, 0);
    assert.deepEqual(await run(join(folder, "kubectl-berth"), ["version"], { env: ENV }), plain);
    const found = await run("/bin/sh", ["-c", "cd / && kubectl-berth version"], {
      env: { PATH: `${folder}:${ENV.PATH}` },
    });
    assert.deepEqual(found, plain);
  });

  it("takes its data folder from BERTH_DATA", async (t) => {
    const folder = await folderFor(t);
    const { rc, stderr } = await run(BERTHCTL, ["get", "pools", "--wait", "0"], {
      env: { ...ENV, BERTH_DATA: folder },
    });
    assert.deepEqual(
      { rc, stderr },
      {
        rc: 2,
        stderr: `Error: there is nothing in ${folder} yet; start a stack with: berthctl up --data ${folder}\n`,
      },
    );
  });
});
