// SPDX-License-Identifier: Apache-2.0
import { join } from "node:path";
import { BerthError, messageOf } from "../../../allocator/base/errors.ts";
import type { Clock, Logger } from "../../../allocator/base/ports.ts";
import { isFull } from "../../../system/path-error.ts";
import {
  type Aliases,
  type Installation,
  installAliases,
  installPlugin,
  isServedUnder,
  PLUGIN,
} from "./plugin-binary.ts";

/** How soon what could not be written is tried again. */
const AGAIN_MS = 5_000;

interface PluginOptions extends Installation {
  readonly aliases?: Aliases | undefined;
  readonly clock: Clock;
  readonly log: Logger;
  /** Aborts as soon as the agent is told to end: whoever took the plugin away meanwhile is not to find it again. */
  readonly signal?: AbortSignal;
}

/** One name of the plugin. */
interface Named {
  install(): Promise<void>;
  /** Whether the node's pods can be served as it is. */
  isServed(): Promise<boolean>;
}

/**
 * The plugin in the host's folder, under all its names. What cannot be written is tried again until it is: a node whose plugin is of an
 * earlier version serves its pods meanwhile, for every version speaks the same frames with the agent.
 */
export class InstalledPlugin {
  readonly #options: PluginOptions;
  readonly #stop = new AbortController();
  readonly #ends: AbortSignal;
  #pending: readonly Named[];
  #isServed = true;
  #why: string | undefined;
  #said: string | undefined;
  #running: Promise<void> | undefined;

  private constructor(options: PluginOptions) {
    this.#options = options;
    const { signal } = this.#stop;
    this.#ends = options.signal === undefined ? signal : AbortSignal.any([signal, options.signal]);
    this.#pending = namesOf(options);
  }

  /** Throws what installPlugin throws where there is no plugin to serve with, unless it is for want of room: that can end by itself. */
  static async open(options: PluginOptions): Promise<InstalledPlugin> {
    const plugin = new InstalledPlugin(options);
    const error = await plugin.#install();
    if (error !== undefined && !plugin.isServed && !isForRoom(error)) throw error;
    plugin.#say();
    plugin.#running = plugin.#follow();
    return plugin;
  }

  /** Why the host has not this version's plugin under each name; undefined: it has. */
  get failing(): string | undefined {
    return this.#why;
  }

  /** A runtime that calls any of the names reaches the agent, if by an earlier version. */
  get isServed(): boolean {
    return this.#isServed;
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  async #follow(): Promise<void> {
    while (this.#pending.length > 0 && !this.#ends.aborted) {
      await this.#options.clock.sleep(AGAIN_MS, this.#ends);
      if (this.#ends.aborted) return;
      await this.#install();
      this.#say();
    }
  }

  /** The first error, one of a name that is not served before any other. */
  async #install(): Promise<unknown> {
    const failed: { readonly named: Named; readonly error: unknown; readonly isServed: boolean }[] = [];
    for (const named of this.#pending) {
      try {
        await named.install();
      } catch (error) {
        failed.push({ named, error, isServed: await named.isServed() });
      }
    }
    const worst = failed.find(({ isServed }) => !isServed) ?? failed[0];
    this.#pending = failed.map(({ named }) => named);
    this.#isServed = worst?.isServed ?? true;
    this.#why = worst && messageOf(worst.error);
    return worst?.error;
  }

  #say(): void {
    const error = this.#why;
    if (error !== undefined && error !== this.#said) {
      const message = this.#isServed
        ? "the CNI plugin cannot be replaced; pods are served with the one that is there"
        : "the CNI plugin cannot be installed; no pod can start with it";
      this.#options.log.error(message, { error });
    }
    this.#said = error;
  }
}

function namesOf({ aliases, clock, log, ...installation }: PluginOptions): readonly Named[] {
  const { folder } = installation;
  const { names = [], replace = false } = aliases ?? {};
  const own: Named = {
    install: () => installPlugin(installation, { clock, log }),
    isServed: () => isServedUnder(join(folder, PLUGIN), { orOthers: false }),
  };
  const others = names.map((name) => ({
    install: () => installAliases(installation, { names: [name], replace }, { clock, log }),
    isServed: () => isServedUnder(join(folder, name), { orOthers: !replace }),
  }));
  return [own, ...others];
}

function isForRoom(error: unknown): boolean {
  return error instanceof BerthError && isFull(error.cause);
}
