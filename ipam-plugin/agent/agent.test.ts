// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { noopLogger } from "../../allocator/base/ports.ts";
import { type Database, openDatabase } from "../../allocator/store/sqlite/database.ts";
import { createClock } from "../../system/clock.ts";
import { createRandom } from "../../system/random.ts";
import { parsed, poolRecord } from "../../test/support/fixtures.ts";
import { type Agent, startAgent } from "./agent.ts";
import { encodeCall } from "./testing/client-frames.ts";
import { PlainHost, ScriptedClaims } from "./testing/node-bench.ts";
import { PlainBlocks } from "./testing/plain-blocks.ts";
import { ACK, PlainClient, until } from "./testing/socket-bench.ts";

const BLOCK = "10.0.0.4/30";

let folder: string;
let socketPath: string;
let startNs: bigint;
const databases: Database[] = [];
const agents: Agent[] = [];

class AskedBlocks extends PlainBlocks {
  asked = 0;

  override factsOf() {
    this.asked++;
    return super.factsOf();
  }
}

async function start(blockSource: PlainBlocks): Promise<Agent> {
  blockSource.stored.set("db", parsed(poolRecord("db", "10.0.0.0/24", { blockSize: { ipv4: 30 } })));
  const database = openDatabase(join(folder, "journal.db"));
  databases.push(database);
  const agent = await startAgent({
    ...{ database, socketPath, blockSource, claimSource: new ScriptedClaims(), bootId: "boot-1" },
    ...{ clock: createClock(), random: createRandom(), log: noopLogger, host: new PlainHost() },
  });
  agents.push(agent);
  return agent;
}

/** The address, or the code of the error. */
async function add(containerID: string): Promise<string> {
  const client = new PlainClient(socketPath);
  startNs += 1_000n;
  const env = {
    ...{ CNI_COMMAND: "ADD", CNI_CONTAINERID: containerID, CNI_IFNAME: "eth0" },
    ...{ CNI_NETNS: `/run/netns/${containerID}`, CNI_ARGS: "", CNI_PATH: "/opt/cni/bin" },
  };
  const conf = { cniVersion: "1.1.0", name: "net", ipam: { type: "berth", pools: ["db"] } };
  const stdin = Buffer.from(JSON.stringify(conf));
  client.socket.write(encodeCall({ startNs, env: new Map(Object.entries(env)), stdin }));
  const { exitStatus, stdout } = await client.reply();
  client.socket.write(ACK);
  const answer = JSON.parse(stdout);
  return exitStatus === 0 ? answer.ips[0].address : answer.details;
}

describe("two agents on one journal", () => {
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "berth-agent-"));
    await chmod(folder, 0o700);
    socketPath = join(folder, "run", "agent.sock");
    startNs = 1_000n;
  });
  afterEach(async () => {
    await Promise.all(agents.splice(0).map((agent) => agent.close()));
    for (const database of databases.splice(0)) database.close();
    await rm(folder, { recursive: true });
  });

  it("never give one address twice: an ADD that one which ends had begun fails once the next one has started", async () => {
    const [before, after] = [new AskedBlocks(), new PlainBlocks()];
    const ending = await start(before);
    const begun = add("c1"); // it waits for a block
    await until(() => before.asked > 0);
    const ended = ending.close();
    const next = await start(after);
    for (const blocks of [before, after]) blocks.grant("db", BLOCK);
    await assert.rejects(ending.blocksChanged(), { code: "NOT_READY" });
    await next.blocksChanged();
    assert.equal(await begun, "NOT_READY");
    await ended;
    assert.equal(await add("c2"), "10.0.0.4/24");
    assert.deepEqual(
      next.attached().map(({ containerID }) => containerID),
      ["c2"],
    );
  });

  it("are one: the second is refused, and takes nothing from the first", async () => {
    const blocks = new PlainBlocks();
    blocks.grant("db", BLOCK);
    await start(blocks);
    await assert.rejects(start(new PlainBlocks()), {
      code: "CONFIG_INVALID",
      message: /another berth agent/,
    });
    assert.equal(await add("c1"), "10.0.0.4/24");
  });
});
