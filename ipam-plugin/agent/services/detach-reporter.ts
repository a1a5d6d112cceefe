// SPDX-License-Identifier: Apache-2.0
import { Backoff } from "../../../allocator/base/backoff.ts";
import type { Clock, Logger, Random } from "../../../allocator/base/ports.ts";
import type { ClaimSource, SandboxNotice } from "../claims/claim-source.ts";
import { orAborted } from "../claims/deadline.ts";
import { type Attachment, attachedNoticeOf, attachmentKey, noticeOf } from "../journal/attachment.ts";
import type { AttachmentCache } from "../journal/attachment-cache.ts";

const AT_ONCE = 8;
const RETRY = { base: 1_000, longest: 60_000 };
/** A reason that is made once: every DEL wakes the reporter, and a reason of its own costs a stack trace. */
const WOKEN = "there may be something to report";

interface Retry {
  readonly backoff: Backoff;
  /** On the monotonic clock. */
  readonly at: number;
}

interface DetachReporterOptions {
  readonly attachments: AttachmentCache;
  readonly claimSource: ClaimSource;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
}

/**
 * Reports in the claim's status that its sandbox is gone: after the DEL was answered, and again until the report is accepted,
 * across restarts, because until then the claim cannot move to another node.
 */
export class DetachReporter {
  readonly #options: DetachReporterOptions;
  readonly #sending = new Map<string, Promise<void>>(); // key of the attachment -> its report under way
  readonly #retries = new Map<string, Retry>(); // key of the attachment -> when to try again
  readonly #stop = new AbortController();
  #wake = new AbortController();
  #running: Promise<void> | undefined;

  constructor(options: DetachReporterOptions) {
    this.#options = options;
  }

  /** Begins with what an earlier process did not report. */
  start(): void {
    this.#running ??= this.#run();
  }

  /** There may be something to report. */
  wake(): void {
    this.#wake.abort(WOKEN);
  }

  /** Reports one detachment, and journals that it was reported. Rejects with what the claim source throws. */
  deliver(attachment: Attachment): Promise<void> {
    const id = attachmentKey(attachment);
    const running = this.#sending.get(id);
    if (running !== undefined) return running;
    const sending = this.#send(attachment).finally(() => this.#sending.delete(id));
    this.#sending.set(id, sending);
    return sending;
  }

  /** Stops at once. A report under way may have been accepted; the next process sends it again. */
  async close(): Promise<void> {
    this.#stop.abort();
    this.#wake.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { clock } = this.#options;
    while (!this.#stop.signal.aborted) {
      this.#wake = new AbortController();
      await orAborted(this.#reportDue(), this.#stop.signal);
      if (this.#stop.signal.aborted) return;
      await clock.sleep(this.#nextIn(), this.#wake.signal);
    }
  }

  async #reportDue(): Promise<void> {
    const now = this.#options.clock.monotonic();
    const due = this.#options.attachments
      .unreported()
      .filter((attachment) => (this.#retries.get(attachmentKey(attachment))?.at ?? 0) <= now);
    for (let i = 0; i < due.length && !this.#stop.signal.aborted; i += AT_ONCE) {
      await Promise.all(due.slice(i, i + AT_ONCE).map((attachment) => this.#report(attachment)));
    }
  }

  async #report(attachment: Attachment): Promise<void> {
    const id = attachmentKey(attachment);
    const { containerID, claim } = attachment;
    try {
      await this.deliver(attachment);
      this.#retries.delete(id);
    } catch (error) {
      const { clock, random, log } = this.#options;
      const backoff = this.#retries.get(id)?.backoff ?? new Backoff(RETRY, random);
      this.#retries.set(id, { backoff, at: clock.monotonic() + backoff.next() });
      log.warn("detachment was not reported", { claim, containerID, error });
    }
  }

  async #send(attachment: Attachment): Promise<void> {
    const { claimSource, attachments } = this.#options;
    const notice = noticeOf(attachment);
    const remaining = this.#remaining(attachment);
    if (notice !== undefined && !this.#isUpBeside(attachment))
      await claimSource.detached({ ...notice, ...(remaining && { remaining }) });
    await attachments.commit({ reported: [attachment] });
  }

  /** Of an ADD that was given up after its claim was attached: the sandbox before it has not ended. */
  #remaining({ claim = "", containerID, pod }: Attachment): SandboxNotice | undefined {
    const other = this.#options.attachments
      .ofClaim(claim)
      .find(
        (one) => one.containerID !== containerID && one.pod?.name === pod?.name && one.pod?.uid === pod?.uid,
      );
    return other && attachedNoticeOf(other);
  }

  /** Another interface of the container still has the claim: the sandbox releases it with the last one. */
  #isUpBeside({ claim = "", containerID }: Attachment): boolean {
    return this.#options.attachments.ofClaim(claim).some((other) => other.containerID === containerID);
  }

  /** Milliseconds until the next retry; without one, an hour, which `wake` cuts short. */
  #nextIn(): number {
    const unreported = new Set(this.#options.attachments.unreported().map(attachmentKey));
    const now = this.#options.clock.monotonic();
    let next = now + 3_600_000;
    for (const [id, { at }] of this.#retries) {
      if (unreported.has(id)) next = Math.min(next, at);
      else this.#retries.delete(id);
    }
    return Math.max(0, next - now);
  }
}
