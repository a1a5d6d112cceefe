// SPDX-License-Identifier: Apache-2.0
import { mkdirSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Where figures are made: a folder of its own, and everything that has to be ended afterwards. */
export class FigureFolder {
  readonly folder: string;
  readonly quick: boolean;
  readonly #closers: (() => Promise<void>)[] = [];
  #rooms = 0;

  protected constructor(folder: string, quick: boolean) {
    this.folder = folder;
    this.quick = quick;
  }

  /** In the folder for temporary files. Short: a unix socket's path has at most 107 bytes. */
  protected static async make(prefix: string): Promise<string> {
    return await mkdtemp(join(tmpdir(), prefix));
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

  /** Ends what a figure started; the folder stays for the next one. */
  async tidy(): Promise<void> {
    for (let close = this.#closers.pop(); close !== undefined; close = this.#closers.pop()) await close();
  }

  async close(): Promise<void> {
    await this.tidy();
    await rm(this.folder, { recursive: true, force: true });
  }

  /** Progress, for whoever waits; the report goes to stdout. */
  say(words: string): void {
    process.stderr.write(`  ${words}\n`);
  }
}
