// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { before, describe, it } from "node:test";
import { NOT_APPLICABLE, OWN_TEXT, WANTED } from "./exceptions.ts";
import { assertMeets, type Expectation } from "./expectation.ts";
import { buildPlugin, runPlugin } from "./plugin.ts";
import { TestingAgent } from "./testing-agent.ts";

type Env = Readonly<Record<string, string>>;

/** One call of the plugin, a look at what the agent holds, or a note on what to do. */
interface Step {
  readonly env?: Env;
  readonly cmd?: string;
  readonly cid?: string;
  readonly ifname?: string;
  readonly args?: string;
  readonly conf?: { readonly ipam?: { readonly type?: string } };
  readonly raw?: string;
  readonly expect?: Expectation;
  readonly want?: string;
  readonly assertHeld?: readonly string[];
  readonly note?: string;
}

interface Case {
  readonly id: string;
  readonly title: string;
  readonly reference: string;
  readonly steps: readonly Step[];
}

const cases: readonly Case[] = JSON.parse(readFileSync(new URL("cases.json", import.meta.url), "utf8"));

/** The cases were recorded with host-local and static, whose place the plugin takes. */
function stdinOf(step: Step, dataDir: string): string {
  const text = step.raw ?? JSON.stringify(step.conf ?? {});
  return text
    .replaceAll("@DATADIR@", dataDir)
    .replace(/"(type|Type)": ?"(host-local|static)"/g, '"$1":"berth"');
}

function envOf({ env, cmd = "", cid = "", ifname = "", args = "" }: Step): Env {
  return (
    env ?? {
      CNI_COMMAND: cmd,
      CNI_CONTAINERID: cid,
      CNI_NETNS: "/some/netns/path",
      CNI_IFNAME: ifname,
      CNI_ARGS: args,
      CNI_PATH: "/some/cni/path",
    }
  );
}

async function runStep(agent: TestingAgent, { id }: Case, step: Step, index: number): Promise<void> {
  if (step.note === "stop agent") await agent.stop();
  const expected = WANTED.get(`${id}/${index}`) ?? step.expect;
  if (expected !== undefined) {
    const run = await runPlugin(agent.socket, envOf(step), stdinOf(step, `${agent.folder}/networks`));
    assertMeets(run, expected, OWN_TEXT.has(id));
  }
  if (step.assertHeld !== undefined) assert.deepEqual([...agent.held].sort(), [...step.assertHeld].sort());
}

describe("CNI conformance", () => {
  before(buildPlugin);

  it("has a wanted answer for every step that asks for another than the reference's", () => {
    const wants = cases.flatMap(({ id, steps }) =>
      steps.flatMap(({ want }, i) => (want ? [`${id}/${i}`] : [])),
    );
    assert.deepEqual([...WANTED.keys()], wants);
  });

  it("leaves out cases that exist, each with a reason", () => {
    const ids = new Set(cases.map(({ id }) => id));
    for (const [id, reason] of NOT_APPLICABLE) assert.ok(ids.has(id) && reason !== "", id);
    assert.equal(ids.size, cases.length, "ids are unique");
  });

  for (const one of cases) {
    const skip = NOT_APPLICABLE.get(one.id);
    it(`${one.id} ${one.title}`, skip === undefined ? {} : { skip }, async () => {
      const agent = await TestingAgent.start();
      try {
        for (const [i, step] of one.steps.entries()) await runStep(agent, one, step, i);
      } finally {
        await agent.remove();
      }
    });
  }
});
