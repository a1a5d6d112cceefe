// SPDX-License-Identifier: Apache-2.0
// Lives of hosts that find nothing may be blind: each of these breaks one thing that the addresses of containers rest on.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { compileCache, run } from "../support/process.ts";
import { skipAllBut } from "../support/runs.ts";
import { HOSTS_MUTATIONS } from "./hosts-mutations.ts";

const PUT_IN = new URL("./put-mutation.ts", import.meta.url).href;
const LIVES = fileURLToPath(new URL("./hosts.test.ts", import.meta.url));
/** Each is found among the first 40 lives. */
const ENV = { ...compileCache(), PATH: "/usr/bin:/bin", BERTH_RUNS: "0.14" };

describe("random lives of hosts find that", () => {
  for (const [n, { name }] of HOSTS_MUTATIONS.entries()) {
    it(name, { skip: skipAllBut(2, HOSTS_MUTATIONS.length, n) }, async () => {
      const env = { ...ENV, BERTH_MUTATION: name };
      const { rc, stdout } = await run(process.execPath, ["--import", PUT_IN, "--test-reporter=tap", LIVES], {
        env,
      });
      assert.notEqual(rc, 0, stdout);
      assert.match(stdout, / is given twice| is lost/);
    });
  }
});
