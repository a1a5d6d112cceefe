// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { setImmediate as nextTurn } from "node:timers/promises";
import { noopLogger } from "../../../allocator/base/ports.ts";
import type { Block } from "../../../allocator/model/block.ts";
import { type Database, openDatabase } from "../../../allocator/store/sqlite/database.ts";
import { openSqliteStore } from "../../../allocator/store/sqlite/store.ts";
import type { Store, Stored } from "../../../allocator/store/store.ts";
import { parsed, poolRecord } from "../../../test/support/fixtures.ts";
import { SeededRandom } from "../../../test/support/random.ts";
import { BlockReporter } from "../blocks/block-reporter.ts";
import { NodeBench } from "./node-bench.ts";

export const ONE = "10.0.0.4/31";

/** A node with blocks of pool db, the store that has them, and the reporter between the two. */
export class ReporterBench {
  readonly node: NodeBench;
  readonly realStore: Store;
  /** What happens around the write of a status. */
  around: (
    write: () => ReturnType<Store["reportBlock"]>,
    seen: Stored<"block">,
  ) => ReturnType<Store["reportBlock"]> = (write) => write();
  written = 0;
  reporter: BlockReporter;
  /** The agent tells an API server of its blocks, and gives from none before that has heard of it. */
  isProving = false;
  readonly #database: Database;

  private constructor(node: NodeBench) {
    this.node = node;
    node.ipam = { pools: ["db"] };
    node.blockSource.stored.set("db", parsed(poolRecord("db", "10.0.0.0/24", { blockSize: { ipv4: 31 } })));
    this.#database = openDatabase(":memory:");
    const random = new SeededRandom(1);
    this.realStore = openSqliteStore(this.#database, { clock: node.clock, random, log: noopLogger });
    this.reporter = this.reporterOfNode();
  }

  static async open(): Promise<ReporterBench> {
    return new ReporterBench(await NodeBench.open());
  }

  async close(): Promise<void> {
    await this.node.close();
    await this.realStore.close();
    this.#database.close();
  }

  reporterOfNode(): BlockReporter {
    const { blocks, blockFollower: follower, clock, log } = this.node.parts;
    const store: Pick<Store, "get" | "reportBlock"> = {
      get: (kind, key) => this.realStore.get(kind, key),
      reportBlock: (seen, status) => {
        this.written++;
        return this.around(() => this.realStore.reportBlock(seen, status), seen);
      },
    };
    const source = this.node.blockSource;
    if (this.isProving) source.statuses = { node: "node-a", store };
    return new BlockReporter({ source, blocks, follower, store, node: "node-a", clock, log });
  }

  /** Another process on the same journal. */
  async restart(): Promise<void> {
    await this.node.restart();
    this.reporter = this.reporterOfNode();
  }

  async grant(...cidrs: readonly string[]): Promise<void> {
    for (const cidr of cidrs) {
      const record = { cidr, pool: "db", node: "node-a", nodeUID: "u", holes: [], granted: true };
      assert.equal((await this.realStore.create("block", record)).kind, "created");
    }
    await this.hear();
  }

  async change(cidr: string, over: Partial<Block>): Promise<void> {
    const seen = (await this.realStore.get("block", cidr)) ?? assert.fail(cidr);
    assert.equal((await this.realStore.replace("block", seen, { ...seen.record, ...over })).kind, "replaced");
  }

  /** So much time passes for a reporter that was started, second by second. */
  async pass(ms: number): Promise<void> {
    for (let passed = 0; passed <= ms; passed += 1_000) {
      if (passed > 0) this.node.clock.advance(1_000);
      for (let turn = 0; turn < 8; turn++) await nextTurn();
    }
  }

  /** The watch has come as far as the store. */
  async hear(): Promise<void> {
    const { records } = this.node.blockSource;
    records.clear();
    for await (const stored of this.realStore.list("block")) records.set(stored.key, stored);
    await this.node.hearBlocks();
  }

  async statusOf(cidr: string): Promise<Block["status"]> {
    return (await this.realStore.get("block", cidr))?.record.status;
  }

  async isReturned(cidr: string): Promise<boolean> {
    return (await this.statusOf(cidr))?.returnedAt !== undefined;
  }

  given() {
    return this.node.parts.blocks.get(ONE)?.state;
  }
}
