// SPDX-License-Identifier: Apache-2.0
// A store that is made has its name when it is whole, or not at all: what is there by halves is damaged for good.
import assert from "node:assert/strict";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { openDatabase } from "../../allocator/store/sqlite/database.ts";
import { SmallDisk, skipWithoutMount } from "./small-disk.ts";

describe("a disk without room for a new store", await skipWithoutMount(), () => {
  let folder: string;
  let path: string;
  let disk: SmallDisk;

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), "berth-new-"));
    path = join(folder, "berth.db");
    disk = await SmallDisk.over(folder);
  });
  after(async () => {
    await disk?.remove();
    rmSync(folder, { recursive: true, force: true });
  });

  /** Undefined: it was made. */
  function whyNot(): unknown {
    try {
      openDatabase(path).close();
      return undefined;
    } catch (error) {
      return error;
    }
  }

  it("has nothing of it under its name, wherever the room ends, and all of it when there is room", () => {
    const made = Array.from({ length: 25 }, (_, pages) => {
      disk.fillUpTo(pages);
      const why = whyNot();
      if (why !== undefined) {
        assert.ok(why instanceof Error && "code" in why);
        assert.match(`${why.code}`, /^STORE_(FULL|UNAVAILABLE)$/, `${pages} pages: ${why.message}`);
        assert.ok(!existsSync(path), `${pages} pages: it has its name`);
      }
      disk.free();
      openDatabase(path).close();
      rmSync(path);
      return why === undefined;
    });
    assert.deepEqual([made.at(0), made.at(-1)], [false, true]);
  });
});
