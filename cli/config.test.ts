// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { resolve } from "node:path";
import { it } from "node:test";
import { configOf } from "./config.ts";

const ALICE = { uid: 1000, username: "alice", homedir: "/home/alice" };
const ROOT = { uid: 0, username: "root", homedir: "/root" };

it("takes a folder of the system for root and one at home for others", () => {
  assert.deepEqual(configOf({}, ROOT), { dataDir: "/var/lib/berth", user: "root" });
  assert.deepEqual(configOf({}, ALICE), { dataDir: "/home/alice/.local/share/berth", user: "alice" });
});

it("lets BERTH_DATA choose, as an absolute path", () => {
  assert.equal(configOf({ BERTH_DATA: "/srv/berth" }, ROOT).dataDir, "/srv/berth");
  assert.equal(configOf({ BERTH_DATA: "data" }, ALICE).dataDir, resolve("data"));
});

it("takes an empty BERTH_DATA for none", () => {
  assert.equal(configOf({ BERTH_DATA: "" }, ROOT).dataDir, "/var/lib/berth");
});
