// SPDX-License-Identifier: Apache-2.0
// The same with the real plugin and an agent that is away, so it needs what `make build` makes (docs/reliability.md).
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { TestingAgent } from "../cni/testing-agent.ts";
import { networkOf, Runtime, sandboxOf } from "../support/runtime.ts";

describe("bugs of others, on a node without an agent for a while", () => {
  it("B7 what was released while the agent was away is free before it serves", async () => {
    const agent = await TestingAgent.start();
    const network = networkOf({ ranges: [[{ subnet: "10.30.0.0/24" }]] });
    const runtime = new Runtime({ socket: agent.socket, network });
    const sandboxes = Array.from({ length: 20 }, () => sandboxOf(undefined));
    try {
      await Promise.all(sandboxes.map((one) => runtime.attach(one)));
      await agent.stop();
      await Promise.all(sandboxes.map((one) => runtime.detach(one)));
      await agent.start();
      assert.deepEqual(agent.held, []);
    } finally {
      await agent.remove();
    }
  });
});
