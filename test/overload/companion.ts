// SPDX-License-Identifier: Apache-2.0
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { compileCache, type Started, start } from "../support/process.ts";

/** As the chart and the image start the webhook. */
export const WEBHOOK_FLAGS = ["--max-semi-space-size=4", "--heap-growing-percent=20"];

/** A program of this folder that answers a line with a line. */
export class Companion {
  readonly started: Started;
  readonly #lines: AsyncIterator<string>;

  constructor(
    file: string,
    { flags = [], args = [] }: { flags?: readonly string[]; args?: readonly string[] } = {},
  ) {
    const path = fileURLToPath(new URL(file, import.meta.url));
    const env = { PATH: "/usr/bin:/bin", ...compileCache() };
    this.started = start(process.execPath, [...flags, path, ...args], { env, stdin: "later" });
    const { stdout, stderr } = this.started.child;
    stderr?.pipe(process.stderr);
    if (stdout === null) throw new Error("it has no output");
    this.#lines = createInterface({ input: stdout })[Symbol.asyncIterator]();
  }

  get pid(): number {
    return this.started.child.pid ?? 0;
  }

  async next<T>(): Promise<T> {
    const { done, value } = await this.#lines.next();
    if (done === true) throw new Error("it ended before it answered");
    return JSON.parse(value);
  }

  async ask<T>(line = "?"): Promise<T> {
    this.say(line);
    return await this.next();
  }

  say(line: string): void {
    this.started.child.stdin?.write(`${line}\n`);
  }

  async end(): Promise<void> {
    this.started.child.kill("SIGKILL");
    await this.started.ended;
  }
}
