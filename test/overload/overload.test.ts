// SPDX-License-Identifier: Apache-2.0
// More at once than any node will see: every call is answered or told to try again, and what was answered is so.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { eventually } from "../support/eventually.ts";
import { namespace } from "../support/manifests.ts";
import { run } from "../support/process.ts";
import { runsOf } from "../support/runs.ts";
import { type CniAnswer, networkOf, Runtime, sandboxOf } from "../support/runtime.ts";
import { ChildStack } from "../support/stack.ts";
import { attachAll, type Outcome } from "./crowd.ts";

process.setMaxListeners(400); // each process that is started has one

/** Where this process has to feed 300 others, a binary may not get its stdin in time. */
const LATE_STDIN = /stdin did not end in time/;

const MIB = 1024 * 1024;
/** Of the agent's process; it begins at some 100 MiB. */
const MOST_GROWTH = 200 * MIB;
/** STATUS is to be answered within 2 s; the binary gives up after 1.5 s and then says that the node cannot serve. */
const BERTH = fileURLToPath(new URL("../../build/berth", import.meta.url));

/** More than the 512 calls that an agent takes at once. */
const SIZE = runsOf(5000, 1500);
const CROWD = Array.from({ length: SIZE }, (_, i) => `crowd-${i}`);
const SUBNET = "10.60.0.0/16";

describe("an agent that is asked too much", () => {
  let stack: ChildStack;

  before(async () => {
    stack = await ChildStack.start({ manifests: [namespace("shop")] });
  });
  after(() => stack?.remove());

  function resident(): number {
    const { pid }: { pid: number } = JSON.parse(readFileSync(join(stack.dataDir, "stack.json"), "utf8"));
    const kib = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
    return Number(kib) * 1024;
  }

  /** Container -> address of everything that is attached. */
  async function attached(): Promise<ReadonlyMap<string, string>> {
    return await stack.read(
      async ({ attachments }) =>
        new Map(
          attachments().map(({ containerID, result }) => [containerID, result.addresses[0]?.address ?? ""]),
        ),
    );
  }

  it("gives 110 sandboxes that come at once, the moment it has started, their addresses", async () => {
    await stack.stop();
    await stack.start();
    const runtime = new Runtime({
      socket: stack.socket,
      network: networkOf({ ranges: [[{ subnet: "10.50.0.0/24" }]] }, { name: "boot" }),
    });
    const sandboxes = Array.from({ length: 110 }, () => sandboxOf(undefined));
    const given = await Promise.all(sandboxes.map((sandbox) => runtime.attach(sandbox)));
    assert.equal(new Set(given.flat()).size, 110);
    const kept = await attached();
    assert.deepEqual(
      given.map(([cidr = ""]) => cidr),
      sandboxes.map(({ containerID }) => `${kept.get(containerID)}/24`),
    );
  });

  it("answers thousands of ADDs at once, or says that it is busy, and STATUS meanwhile", async () => {
    const before = resident();
    let peak = before;
    const watch = setInterval(() => {
      peak = Math.max(peak, resident());
    }, 50);
    let open = true;
    const probing = probe(() => open);
    const outcomes = await attachAll(stack.socket, CROWD, SUBNET);
    open = false;
    clearInterval(watch);
    const probes = await probing;
    const given = givenTo(outcomes);
    const busy = outcomes.filter(({ why }) => why === "busy").length;
    // On a slow machine the last of the queue are not looked at before the binary's own limit, when it says code 11 too.
    const late = outcomes.filter(({ why }) => why === "late").length;
    console.log(
      `${SIZE} ADDs: ${given.size} given, ${busy} told to try again, ${late} too late, slowest ${slowest(outcomes)} ms; ` +
        `${probes.length} STATUS; ${Math.round(before / MIB)} MiB before, ${Math.round(peak / MIB)} at the most`,
    );
    assert.equal(
      given.size + busy + late,
      SIZE,
      JSON.stringify(outcomes.find(({ why = "busy" }) => why !== "busy" && why !== "late")),
    );
    assert.ok(given.size >= 512, "as many as it takes at once have an address");
    assert.equal(new Set(given.values()).size, given.size, "no address is given twice");
    assert.deepEqual(
      await crowdAttached(given.size),
      given,
      "what was answered is attached, and nothing else",
    );
    // On a disk that is slow for everybody a commit may take longer than the binary waits; that is all that may go wrong.
    const lateProbes = probes.filter((printed) => printed !== "0 ");
    assert.deepEqual(
      lateProbes.filter((printed) => !printed.includes("did not answer within 1500 ms")),
      [],
    );
    assert.ok(lateProbes.length < probes.length, `all ${probes.length} STATUS were late`);
    assert.ok(peak - before < MOST_GROWTH, `it grew by ${(peak - before) / MIB} MiB`);
  });

  /** Those of the crowd, once what was not acknowledged has been taken back. */
  async function crowdAttached(expected: number): Promise<ReadonlyMap<string, string>> {
    let last: ReadonlyMap<string, string> = new Map();
    await eventually("lost answers are taken back", async () => {
      last = new Map([...(await attached())].filter(([name]) => name.startsWith("crowd-")));
      return last.size === expected ? true : undefined;
    }).catch(() => undefined);
    return last;
  }

  it("gives those that it told to try again their addresses when they do", async () => {
    const given = new Map<string, string>();
    for (let left: readonly string[] = CROWD; left.length > 0; ) {
      const some = left.slice(0, 500);
      for (const [name, address] of givenTo(await attachAll(stack.socket, some, SUBNET)))
        given.set(name, address);
      left = CROWD.filter((name) => !given.has(name));
    }
    assert.equal(new Set(given.values()).size, SIZE);
    assert.deepEqual(await crowdAttached(SIZE), given);
  });

  it("serves 300 CNI binaries at once", async () => {
    const network = networkOf({ ranges: [[{ subnet: "10.70.0.0/16" }]] }, { name: "binaries" });
    const runtime = new Runtime({ socket: stack.socket, network });
    const sandboxes = Array.from({ length: 300 }, () => sandboxOf(undefined));
    const answers = await Promise.all(sandboxes.map((sandbox) => runtime.add(sandbox)));
    const refused = answers.filter(({ kind }) => kind === "failed");
    for (const answer of refused)
      assert.ok(
        answer.kind === "failed" && (answer.code === 11 || LATE_STDIN.test(answer.msg)),
        JSON.stringify(answer),
      );
    const given = answers.flatMap(addressOf);
    assert.equal(new Set(given).size, given.length);
    let kept: readonly string[] = [];
    await eventually("lost answers are taken back", async () => {
      const all = await attached();
      kept = sandboxes.flatMap(({ containerID }) => all.get(containerID) ?? []);
      return kept.length === given.length ? true : undefined;
    }).catch(() => undefined);
    assert.deepEqual(given.sort(), kept.toSorted());
    for (const sandbox of sandboxes) await runtime.detach(sandbox);
    await eventually("all of them are released, the spooled ones too", async () => {
      const left = await attached();
      return sandboxes.every(({ containerID }) => !left.has(containerID)) ? true : undefined;
    });
    assert.equal(await stack.findings(), "");
  });

  /** STATUS by the binary, again and again while it lasts: what it prints and exits with, each time. */
  async function probe(lasts: () => boolean): Promise<readonly string[]> {
    const env = { CNI_COMMAND: "STATUS", CNI_PATH: "/usr/lib/cni", BERTH_SOCKET: stack.socket };
    const text = JSON.stringify(networkOf({}, { cniVersion: "1.1.0" }));
    const printed: string[] = [];
    while (lasts()) {
      const { rc, stdout } = await run(BERTH, [], { env, stdin: { text } });
      printed.push(`${rc} ${stdout}`);
    }
    return printed;
  }
});

function givenTo(outcomes: readonly Outcome[]): ReadonlyMap<string, string> {
  return new Map(
    outcomes.flatMap(({ containerID, address }) => (address === undefined ? [] : [[containerID, address]])),
  );
}

function addressOf(answer: CniAnswer): readonly string[] {
  if (answer.kind !== "succeeded") return [];
  return (answer.result?.ips ?? []).map(({ address }) => address.split("/", 1)[0] ?? "");
}

function slowest(outcomes: readonly Outcome[]): number {
  return Math.round(Math.max(...outcomes.map(({ ms }) => ms)));
}
