// SPDX-License-Identifier: Apache-2.0
import { readFile } from "node:fs/promises";
import { basename } from "node:path";
import { BerthError, messageOf } from "../../../allocator/base/errors.ts";
import type { Clock, Logger } from "../../../allocator/base/ports.ts";
import { warnOfEarlier } from "./earlier-conflists.ts";
import { remember, removeFormer } from "./former-conflist.ts";
import { conflistPath, type Installation, installConflist, prepareConflist } from "./plugin-binary.ts";
import { fillPodCidrs, needsPodCidr } from "./pod-cidr.ts";
import { validateConflist } from "./validate-conflist.ts";

/** Often enough: a kubelet itself takes up to a minute to bring a changed ConfigMap to the pod. */
const LOOK_MS = 5_000;
/** How soon after the agent is ready the node may become Ready. */
const READY_MS = 200;

interface ConflistOptions extends Installation {
  readonly node: string;
  /** The pod CIDRs of the node, for a list with placeholders for them. */
  readonly podCidrs: () => Promise<readonly string[]>;
  /** The UID of the Node object that has them, if it is known: a node that joined again has another object and other CIDRs. */
  readonly nodeUID: () => string | undefined;
  /** Whether the agent can serve every ADD; once it can, it always can. */
  readonly isReady: () => boolean;
  readonly clock: Clock;
  readonly log: Logger;
  /** The file in which the agent remembers what it wrote. Absolute. */
  readonly record: string;
  /** Other names of the plugin. */
  readonly aliases?: readonly string[];
}

/**
 * Writes the host's CNI configuration: when the agent is ready, since the kubelet calls a node Ready that has one, and again when
 * the mounted file changes. Where the changed file is invalid, the configuration before it stays. It also stays when the agent
 * ends: without it the node would be NotReady, while an ADD that meets no agent is tried again.
 */
export class Conflist {
  readonly #options: ConflistOptions;
  readonly #stop = new AbortController();
  #running: Promise<void> | undefined;
  /** As last read from the mounted file. */
  #seen: string | undefined;
  #wanted: string | undefined;
  #written: string | undefined;
  /** The UID of the Node object whose CIDRs are in what was written; undefined: it was not known, or none are. */
  #writtenOf: string | undefined;
  /** The last look failed, which was logged. */
  #failing = false;

  private constructor(options: ConflistOptions) {
    this.#options = options;
  }

  /** Throws CONFIG_INVALID for a file that is no conflist and a folder that cannot be written. */
  static async open(options: ConflistOptions): Promise<Conflist> {
    const { from, clock } = options;
    const conflist = new Conflist(options);
    const text = await readFile(from, "utf8").catch((cause: unknown) => {
      throw new BerthError("CONFIG_INVALID", `BERTH_CONFLIST ${from} cannot be read: ${messageOf(cause)}`, {
        cause,
      });
    });
    const why = conflist.#accept(text);
    if (why !== undefined) {
      throw new BerthError(
        "CONFIG_INVALID",
        `BERTH_CONFLIST ${from} is no CNI configuration list: it ${why}`,
      );
    }
    await prepareConflist(options, clock);
    conflist.#running = conflist.#follow();
    return conflist;
  }

  /** The host has it. */
  get isWritten(): boolean {
    return this.#written !== undefined;
  }

  /** Leaves the file where it is. */
  async close(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  async #follow(): Promise<void> {
    const { clock } = this.#options;
    const { signal } = this.#stop;
    while (!signal.aborted) {
      await this.#look();
      await clock.sleep(this.isWritten || this.#failing ? LOOK_MS : READY_MS, signal);
    }
  }

  async #look(): Promise<void> {
    const { from, log } = this.#options;
    try {
      await this.#read();
      await this.#write();
      this.#failing = false;
    } catch (error) {
      if (!this.#failing) log.error("conflist is not brought to the host", { file: from, error });
      this.#failing = true;
    }
  }

  async #read(): Promise<void> {
    const { from, log } = this.#options;
    const text = await readFile(from, "utf8");
    if (text === this.#seen) return;
    const why = this.#accept(text);
    if (why !== undefined)
      log.error("new conflist is refused; the one before stays", { file: from, error: why });
  }

  /** Why it is refused, if it is. */
  #accept(text: string): string | undefined {
    const { from, log, aliases } = this.#options;
    this.#seen = text;
    const verdict = validateConflist(text, aliases);
    if (verdict.kind === "invalid") return verdict.why;
    if (!verdict.asksBerth) log.warn("no plugin of the conflist has ipam.type berth", { file: from });
    this.#wanted = text;
    return undefined;
  }

  async #write(): Promise<void> {
    const { isReady, log, node, podCidrs, nodeUID, from, record, folder, aliases = [] } = this.#options;
    const wanted = this.#wanted;
    if (wanted === undefined || !isReady()) return;
    const hasPlaceholders = needsPodCidr(wanted);
    // read before the CIDRs: if the Node object is replaced in between, the next look reads both again
    const owner = hasPlaceholders ? nodeUID() : undefined;
    if (wanted === this.#written && (owner === undefined || owner === this.#writtenOf)) return;
    const text = hasPlaceholders ? fillPodCidrs(wanted, node, await podCidrs()) : wanted;
    const next = { name: basename(from), text };
    await remember(next, record);
    const isNew = await installConflist(this.#options, text);
    if (isNew) log.info("conflist written", { path: conflistPath(this.#options) });
    await removeFormer(next, { folder, record, log });
    await warnOfEarlier({ name: next.name, folder, plugins: ["berth", ...aliases], log });
    this.#written = wanted;
    this.#writtenOf = owner;
  }
}
