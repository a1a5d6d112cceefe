// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import type { Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, before, beforeEach } from "node:test";
import { AgentStandIn } from "./agent-stand-in.ts";
import { buildClient, type Finished } from "./client-process.ts";

/** What a client says that succeeds without a word. */
export const SILENCE: Finished = { exit: 0, stdout: "", stderr: "" };
/** go-cni and multus take an error with one of these for a DEL that has succeeded. */
const FORBIDDEN = /not found|no such file or directory/i;

/** A folder of its own for each test of a describe, whose socket the client is told of, and who listens there, if anybody. */
export class ClientBench {
  folder = "";
  path = "";
  agent = new AgentStandIn();

  constructor() {
    before(buildClient);
    beforeEach(async () => {
      this.folder = await mkdtemp(join(tmpdir(), "berth-alone-"));
      this.path = join(this.folder, "agent.sock");
      this.agent = new AgentStandIn();
    });
    afterEach(async () => {
      await this.agent.end();
      await rm(this.folder, { recursive: true, force: true });
    });
  }

  get spool(): string {
    return join(this.folder, "spool");
  }

  readonly env = (command: string, more: Record<string, string> = {}): Record<string, string> => ({
    ...{ CNI_COMMAND: command, CNI_CONTAINERID: "c1", CNI_IFNAME: "eth0", BERTH_SOCKET: this.path },
    ...more,
  });

  /** An agent that does the same to everybody who comes. */
  readonly misbehave = (act: (socket: Socket) => void) => this.agent.listen(this.path, act);
}

/** Of a client that fails as CNI has it. */
export function errorOf(finished: Finished): { code: number; msg: string } {
  assert.equal(finished.exit, 1);
  assert.equal(finished.stderr, "");
  assert.doesNotMatch(finished.stdout, FORBIDDEN);
  const { cniVersion, code, msg, ...rest } = JSON.parse(finished.stdout);
  assert.deepEqual([cniVersion, rest], ["1.1.0", {}]);
  return { code, msg };
}
