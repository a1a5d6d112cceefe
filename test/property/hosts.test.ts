// SPDX-License-Identifier: Apache-2.0
// Random lives of three hosts that share a small range in etcd: cut off, answers lost, killed, fenced and back. After each step
// no two containers have one address, and what a container has is kept; at the end nothing is.
import { describe, it } from "node:test";
import { messageOf } from "../../allocator/base/errors.ts";
import { runsOf } from "../support/runs.ts";
import { HostsOnEtcd } from "./hosts-on-etcd.ts";

const RUNS = 300;
const STEPS = 60;

describe("hosts that share a range", () => {
  it("give no address twice, lose none and keep none, whatever is cut off, lost, killed and fenced", async () => {
    for (let seed = 1; seed <= runsOf(RUNS, 20); seed++) {
      const hosts = await HostsOnEtcd.open(seed);
      try {
        for (let step = 0; step < STEPS; step++) await hosts.step();
        await hosts.end();
      } catch (error) {
        const last = hosts.trace.slice(-12).join(", ");
        throw new Error(`seed ${seed}: ${messageOf(error)} after ${last}`, { cause: error });
      } finally {
        await hosts.close();
      }
    }
  });
});
