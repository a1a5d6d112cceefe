// SPDX-License-Identifier: Apache-2.0
import { parsed, poolRecord } from "../../../test/support/fixtures.ts";
import type { Answer } from "../rpc/connection.ts";
import { type Asked, errorOf, NodeBench } from "./node-bench.ts";

/** A node whose network serves pods out of blocks of pool db. */
export class BlocksBench extends NodeBench {
  static override async open(): Promise<BlocksBench> {
    const bench = new BlocksBench();
    await bench.restart();
    bench.ipam = { pools: ["db"] };
    bench.pool("db", "10.0.0.0/24", { ipv4: 30 });
    return bench;
  }

  pool(name: string, cidrs: string | string[], blockSize: object, spec: object = {}): void {
    this.blockSource.stored.set(name, parsed(poolRecord(name, cidrs, { blockSize, ...spec })));
  }

  async grant(...cidrs: readonly string[]): Promise<void> {
    for (const cidr of cidrs) this.blockSource.grant("db", cidr);
    await this.hearBlocks();
  }

  /** The ADD of a node that may get its first block at any moment waits for 5 s. */
  async ended(answer: Promise<Answer>): Promise<Answer> {
    const over = answer.then(() => true);
    while (!(await Promise.race([over, new Promise((resolve) => void setImmediate(resolve, false))])))
      await this.clock.advance(1_000);
    return await answer;
  }

  async refused(asked: Asked = {}) {
    return errorOf(await this.ended(this.call("ADD", asked)));
  }

  async refusal(asked: Asked = {}): Promise<string> {
    return (await this.refused(asked)).msg;
  }
}
