// SPDX-License-Identifier: Apache-2.0
// Loaded into a process of Berth's before its own code: measures how long its event loop is kept from turning, by the
// processor time of its thread, which a busy machine does not lengthen as it does the clock's. On SIGUSR2 it writes the
// longest turn since the last time, in milliseconds, to the file that SCALE_PROBE names.
"use strict";
const { writeFileSync } = require("node:fs");

const file = process.env["SCALE_PROBE"];
let before = process.threadCpuUsage();
let longest = 0;

function turn() {
  const { user, system } = process.threadCpuUsage();
  longest = Math.max(longest, (user + system - before.user - before.system) / 1000);
  before = { user, system };
  setTimeout(turn, 1).unref();
}

turn();
process.on("SIGUSR2", () => {
  turn();
  writeFileSync(file, JSON.stringify(longest));
  longest = 0;
});
