// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { run } from "../support/process.ts";

const PATH = "/usr/sbin:/usr/bin:/sbin:/bin";

/** Network namespaces of random names, as runtimes name those of sandboxes; whoever makes them closes them. */
export class Sandboxes {
  #names: string[] = [];

  /** Makes one and gives its path. */
  async make(): Promise<string> {
    return await this.#name("add");
  }

  /** Names the one that this process is in. */
  async ofHost(): Promise<string> {
    return await this.#name("attach", `${process.pid}`);
  }

  /** Ends it without a word to anybody. */
  async remove(path: string): Promise<void> {
    const name = path.slice(path.lastIndexOf("/") + 1);
    this.#names = this.#names.filter((other) => other !== name);
    await ip("netns", "del", name);
  }

  async close(): Promise<void> {
    for (const name of this.#names) await this.remove(name);
  }

  async #name(verb: string, ...rest: readonly string[]): Promise<string> {
    const name = `berth-pod-${process.env["BERTH_RUN"] ?? ""}${randomBytes(4).toString("hex")}`;
    await ip("netns", verb, name, ...rest);
    this.#names.push(name);
    return `/var/run/netns/${name}`;
  }
}

async function ip(...args: readonly string[]): Promise<void> {
  const { rc, stderr } = await run("ip", args, { env: { PATH } });
  assert.equal(rc, 0, stderr);
}
