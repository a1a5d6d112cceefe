// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ensurePrivate } from "./require-private-folder.ts";

describe("ensurePrivate", () => {
  for (const [folder, words] of [
    [
      "/proc/x",
      "no data can be kept in /proc/x (chosen with --data or BERTH_DATA): /proc/x cannot be used (ENOENT): it does not exist, or cannot be made there; name another path",
    ],
    ["/etc/passwd", "/etc/passwd is not a folder; name another path"],
    [
      "/etc/passwd/data",
      "no data can be kept in /etc/passwd/data (chosen with --data or BERTH_DATA): /etc/passwd/data cannot be used (ENOTDIR): a part of the path is not a folder; name another path",
    ],
  ] as const) {
    it(`says what is wrong with ${folder}`, { timeout: 10_000 }, async () => {
      await assert.rejects(ensurePrivate(folder), { code: "CONFIG_INVALID", message: words });
    });
  }
});
