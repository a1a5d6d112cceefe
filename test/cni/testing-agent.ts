// SPDX-License-Identifier: Apache-2.0
import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Database, openDatabase } from "../../allocator/store/sqlite/database.ts";
import { type Agent, type AgentOptions, startAgent } from "../../ipam-plugin/agent/agent.ts";
import type { ClaimSource } from "../../ipam-plugin/agent/claims/claim-source.ts";
import { type Host, linuxHost } from "../../ipam-plugin/agent/journal/host.ts";
import { eventually } from "../support/eventually.ts";
import { hostDeps } from "../support/host-deps.ts";

const OWN_NETNS = "/proc/self/ns/net";

/** A node without claims: every pod is served from the configuration. */
export const noClaims: ClaimSource = {
  find: async () => ({ kind: "unclaimed" }),
  attach: async () => ({ kind: "unclaimed" }),
  attached: async () => {},
  detached: async () => {},
  lastSandboxes: async () => [],
  inUse: () => [],
  absent: async () => {},
};

/** An agent in a folder of its own, with its journal on the disk, that can be stopped and started again. */
export class TestingAgent {
  readonly folder: string;
  readonly socket: string;
  /** Makes commits of the journal fail while it is set. */
  diskFault: Error | undefined;
  /** What ADDs wait for before they take anything. */
  gate: Promise<void> = Promise.resolve();
  /** ADDs that came as far as the gate. */
  atGate = 0;
  readonly #claimSource: ClaimSource;
  /** The machine's own, as long as it is not rebooted: the client writes that into the names of spooled files. */
  #bootId = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  #agent: Agent | undefined;
  #database: Database | undefined;

  readonly #more: Pick<AgentOptions, "hostLocalLeases" | "host">;

  private constructor(
    folder: string,
    claimSource: ClaimSource,
    more: Pick<AgentOptions, "hostLocalLeases" | "host">,
  ) {
    this.folder = folder;
    this.#more = more;
    this.socket = join(folder, "run", "agent.sock");
    this.#claimSource = claimSource;
  }

  static async start(
    claimSource: ClaimSource = noClaims,
    more: Pick<AgentOptions, "hostLocalLeases" | "host"> = {},
  ): Promise<TestingAgent> {
    const agent = new TestingAgent(await mkdtemp(join(tmpdir(), "berth-cni-")), claimSource, more);
    await agent.start();
    return agent;
  }

  async start(): Promise<void> {
    const beforeCommit = () => {
      if (this.diskFault !== undefined) throw this.diskFault;
    };
    this.#database = openDatabase(join(this.folder, "agent.db"), { beforeCommit });
    this.#agent = await startAgent({
      database: this.#database,
      socketPath: this.socket,
      claimSource: this.#claimSource,
      ...hostDeps(),
      bootId: this.#bootId,
      host: this.#host(),
      ...this.#more,
    });
  }

  /** The real one, at which every ADD has a look once. */
  #host(): Host {
    return {
      ...linuxHost,
      identity: async (path) => {
        const identity = await linuxHost.identity(path);
        if (path === OWN_NETNS) return identity;
        this.atGate++;
        await this.gate;
        return identity;
      },
    };
  }

  /** Addresses in use, in the order in which the agent has them. */
  get held(): readonly string[] {
    return this.#agent?.held() ?? [];
  }

  /** Waits until exactly these are in use. */
  async untilHeld(...addresses: readonly string[]): Promise<void> {
    const wanted = addresses.toSorted().join(" and ");
    await eventually(`${wanted} are held, and nothing else`, () =>
      this.held.toSorted().join(" and ") === wanted ? true : undefined,
    );
  }

  async stop(): Promise<void> {
    await this.#agent?.close();
    this.#database?.close();
    this.#agent = undefined;
    this.#database = undefined;
  }

  /** What is not in the journal by now never gets there, as after kill -9. */
  async crash(): Promise<void> {
    this.#database?.close();
    await this.stop();
  }

  async restart(): Promise<void> {
    await this.stop();
    await this.start();
  }

  /** The next start is that of another boot. */
  reboot(): void {
    this.#bootId = `${this.#bootId}+`;
  }

  async remove(): Promise<void> {
    await this.stop();
    await rm(this.folder, { recursive: true, force: true });
  }
}
