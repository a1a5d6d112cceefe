// SPDX-License-Identifier: Apache-2.0

import type { Clock } from "../../../../allocator/base/ports.ts";
import { isDetached } from "../../../../allocator/lifecycle/bind.ts";
import type { Claim, ClaimAttachment } from "../../../../allocator/model/claim.ts";
import { retryOnConflict } from "../../../../allocator/store/retry-on-conflict.ts";
import type { Store, Stored } from "../../../../allocator/store/store.ts";
import type { AttachmentKey, SandboxNotice } from "../claim-source.ts";
import { attachmentOf } from "../sandbox-status.ts";

interface StatusWriterOptions {
  readonly store: Pick<Store, "get" | "report">;
  /** This node's name. */
  readonly node: string;
  readonly clock: Clock;
}

/** A watch is behind for less. An etcd that was restored never tells of what was written after its snapshot. */
const UNTOLD_MS = 10_000;

interface Written {
  /** The revision that it replaced. */
  readonly before: string;
  readonly now: Stored<"claim">;
  /** Monotonic. */
  readonly at: number;
}

/**
 * Writes the status of claims that are bound to this node, and remembers which of them it may have released: once the
 * status says `detached`, the binding may move to another node, and an answer from memory would prove nothing.
 */
export class StatusWriter {
  readonly #options: StatusWriterOptions;
  readonly #released = new Map<string, string>(); // claim -> UID of the pod that it was, or may have been, released by
  readonly #written = new Map<string, Written>(); // claim -> what was written last, until the watch has told of something newer
  readonly #writing = new Map<string, { readonly before: string }>(); // claim -> what is being replaced, as far as the watch has told

  constructor(options: StatusWriterOptions) {
    this.#options = options;
  }

  /** The claim says that its pod's sandbox is gone, or this process wrote that, is writing it, or cannot know. */
  mayHaveReleased({ key, record }: Stored<"claim">): boolean {
    return isDetached(record) || this.#released.get(key) === record.binding?.podUID;
  }

  /** According to the watch, the claim belongs to another pod or node now. */
  forget(claim: string): void {
    this.#released.delete(claim);
    this.#written.delete(claim);
    this.#writing.delete(claim);
  }

  /** The watch has told of that revision. */
  told({ key, revision }: Stored<"claim">): void {
    for (const noted of [this.#written, this.#writing])
      if (noted.get(key)?.before !== revision) noted.delete(key);
  }

  /** What this process has made of exactly that revision, which the watch has not told yet; or the claim as it is given. */
  latest(seen: Stored<"claim">): Stored<"claim"> {
    const written = this.#written.get(seen.key);
    if (written?.before !== seen.revision) return seen;
    return this.#options.clock.monotonic() - written.at < UNTOLD_MS ? written.now : seen;
  }

  /**
   * The sandbox has the claim. `wanted` is asked about the stored claim before each write. Undefined: nothing was written,
   * because it was no longer wanted.
   */
  attached(
    claim: string | Stored<"claim">,
    sandbox: SandboxNotice,
    wanted: (claim: Claim) => boolean,
  ): Promise<Stored<"claim"> | undefined> {
    return this.#report(claim, (record) =>
      record.binding !== undefined && wanted(record)
        ? attachmentOf(record, sandbox, { ...this.#options, news: "attached" })
        : undefined,
    );
  }

  /**
   * No sandbox of this node has the claim, and its pod will get none: from here on the binding may move. Written only
   * while the claim is bound to the same pod. `sandbox` is the last one that had it, where it is known. Call it while
   * holding the claim's lock.
   */
  async detached(seen: Stored<"claim">, sandbox?: AttachmentKey): Promise<void> {
    const { node, podUID } = seen.record.binding ?? {};
    if (podUID === undefined) return;
    this.#released.set(seen.key, podUID);
    await this.#report(seen, ({ binding, status, ...claim }) => {
      if (binding?.podUID !== podUID || binding.node !== node) return undefined;
      if (isDetached({ ...claim, binding, status })) return undefined;
      const last = status.attachment?.podUID === podUID ? status.attachment : undefined;
      const { containerID = "", interface: name = binding.interface ?? "" } = sandbox ?? last ?? {};
      const ended = { attachment: { containerID, interface: name } };
      return attachmentOf({ binding }, ended, { ...this.#options, news: "detached" });
    });
  }

  /** Starts from the claim as it was seen, if given, and reads it from the store whenever that is out of date. */
  async #report(
    claim: string | Stored<"claim">,
    next: (claim: Claim) => ClaimAttachment | undefined,
  ): Promise<Stored<"claim"> | undefined> {
    const { store } = this.#options;
    const key = typeof claim === "string" ? claim : claim.key;
    const known = typeof claim === "string" ? {} : { seen: claim };
    const change = { kind: "claim", key, doing: "its status was written", ...known } as const;
    return await retryOnConflict(store, change, async (seen) => {
      const attachment = seen && next(seen.record);
      if (seen === undefined || attachment === undefined) return undefined;
      return await this.#write(seen, attachment);
    });
  }

  /** The watch may tell of it first, and even that the claim is gone: nobody tells of it again then, and it is not remembered. */
  async #write(seen: Stored<"claim">, attachment: ClaimAttachment): Promise<Stored<"claim"> | "conflict"> {
    const { store, clock } = this.#options;
    const { key, revision: before } = seen;
    const writing = { before };
    this.#writing.set(key, writing);
    try {
      const result = await store.report(seen, { attachment });
      if (result.kind !== "replaced") return "conflict";
      const isUntold = this.#writing.get(key) === writing;
      if (isUntold) this.#written.set(key, { before, now: result.stored, at: clock.monotonic() });
      return result.stored;
    } finally {
      if (this.#writing.get(key) === writing) this.#writing.delete(key);
    }
  }
}
