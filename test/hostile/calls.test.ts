// SPDX-License-Identifier: Apache-2.0
// CNI calls as no runtime makes them: each is answered in the words of the specification.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import fc from "fast-check";
import { createHandler } from "../../ipam-plugin/agent/commands/dispatch.ts";
import { NodeBench } from "../../ipam-plugin/agent/testing/node-bench.ts";
import { readArgs } from "../../ipam-plugin/cni/args.ts";
import { isCniError } from "../../ipam-plugin/cni/errors.ts";
import { assertAnswer, call } from "./calls.ts";
import { Growth } from "./growth.ts";
import { evilText, runs, SEED } from "./values.ts";

const ROUNDS = 5;
const LIVE = new AbortController().signal;

describe("hostile CNI calls", () => {
  let cases = 0;

  before(() => console.log(`seed ${SEED}`));
  after(() => console.log(`${cases} calls`));

  it("are answered, and nothing of them stays in memory", async () => {
    const growth = new Growth();
    for (let round = 0; round < ROUNDS; round++) {
      const node = await NodeBench.open();
      node.host.files.set("/etc/resolv.conf", "nameserver 10.2.0.2\n");
      const handle = createHandler(node.parts);
      await fc.assert(
        fc.asyncProperty(call, async (one) => {
          cases++;
          const answer = await handle({ ...one, startNs: node.nextNs() }, LIVE);
          await answer.settle?.("delivered");
          assertAnswer(one, answer);
        }),
        { ...runs(4_500), seed: SEED + round },
      );
      // What is kept of them is in order, and can be read again.
      const held = node.held;
      await node.restart();
      assert.deepEqual(node.held, held);
      await node.close();
      growth.measure();
    }
    growth.assertNone();
  });

  it("with any CNI_ARGS are read, or refused with a code", () => {
    const text = fc.oneof(
      evilText,
      fc.array(evilText, { maxLength: 6 }).map((services) => services.join(";")),
    );
    fc.assert(
      fc.property(text, (written) => {
        cases++;
        const read = readArgs(written);
        if (isCniError(read)) assert.ok(read.code > 0 && read.msg !== "");
        else for (const ip of read.ips) assert.equal(ip, ip.trim());
      }),
      runs(6_000),
    );
  });
});
