// SPDX-License-Identifier: Apache-2.0
import { mkdirSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Shop } from "../bench/bench.ts";

/** Where figures of a real API server are made. */
export class ApiShop implements Shop {
  readonly folder: string;
  readonly quick: boolean;
  readonly lacks: readonly string[] = [];
  readonly #closers: (() => Promise<void>)[] = [];
  #rooms = 0;

  private constructor(folder: string, quick: boolean) {
    this.folder = folder;
    this.quick = quick;
  }

  /** In the folder for temporary files, where the control planes have theirs. */
  static async open(quick: boolean): Promise<ApiShop> {
    return new ApiShop(await mkdtemp(join(tmpdir(), "berth-bench-api-")), quick);
  }

  /** An empty folder. */
  room(): string {
    this.#rooms++;
    const path = join(this.folder, String(this.#rooms));
    mkdirSync(path);
    return path;
  }

  /** What is to be ended when the figure is done, the last first. */
  defer(close: () => Promise<void>): void {
    this.#closers.push(close);
  }

  async tidy(): Promise<void> {
    for (let close = this.#closers.pop(); close !== undefined; close = this.#closers.pop()) await close();
  }

  async close(): Promise<void> {
    await this.tidy();
    await rm(this.folder, { recursive: true, force: true });
  }

  say(words: string): void {
    process.stderr.write(`  ${words}\n`);
  }
}
