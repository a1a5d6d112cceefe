// SPDX-License-Identifier: Apache-2.0
import { mkdirSync } from "node:fs";
import { access, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Shop } from "./bench.ts";
import { buildDriver } from "./driver.ts";

const HOST_LOCAL = ["/usr/lib/cni/host-local", "/opt/cni/bin/host-local"];

/** Where figures are made: a folder of its own, and everything that has to be ended afterwards. */
export class Workshop implements Shop {
  readonly folder: string;
  readonly quick: boolean;
  /** Of test/bench/driver.c. */
  readonly driver: string;
  /** The plugin to compare with; undefined where it is not installed. */
  readonly hostLocal: string | undefined;
  readonly #closers: (() => Promise<void>)[] = [];
  #rooms = 0;

  private constructor(made: Pick<Workshop, "folder" | "quick" | "driver" | "hostLocal">) {
    this.folder = made.folder;
    this.quick = made.quick;
    this.driver = made.driver;
    this.hostLocal = made.hostLocal;
  }

  static async open(quick: boolean): Promise<Workshop> {
    const driver = await buildDriver();
    const hostLocal = await firstThatIs(HOST_LOCAL);
    // Short: a unix socket's path has at most 107 bytes.
    const folder = await mkdtemp(join(tmpdir(), "berth-bench-"));
    return new Workshop({ folder, quick, driver, hostLocal });
  }

  get lacks(): readonly string[] {
    if (this.hostLocal !== undefined) return [];
    return [
      "host-local is not installed: there is nothing to compare with (Debian: containernetworking-plugins)",
    ];
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

async function firstThatIs(paths: readonly string[]): Promise<string | undefined> {
  for (const path of paths) {
    const there = await access(path).then(
      () => true,
      () => false,
    );
    if (there) return path;
  }
  return undefined;
}
