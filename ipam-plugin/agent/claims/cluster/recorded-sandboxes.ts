// SPDX-License-Identifier: Apache-2.0
import type { Claim, ClaimAttachment } from "../../../../allocator/model/claim.ts";
import type { Host } from "../../journal/host.ts";
import { isFindable, type RuntimeRecord, type RuntimeRecords } from "../../journal/runtime-records.ts";
import type { UnreadRecord, UnreadRecords } from "../../journal/unread-records.ts";
import type { AttachmentKey, IsKnown } from "../claim-source.ts";

interface RecordedSandboxesOptions {
  readonly records: RuntimeRecords;
  /** Records of which it is not known whose they are. */
  readonly unread: UnreadRecords;
  /** Whether the runtime has the record still. Throws when it cannot know. */
  readonly isStillThere: (record: RuntimeRecord) => Promise<boolean>;
  readonly host: Pick<Host, "look">;
  /** This node's name. */
  readonly node: string;
  readonly bootId: string;
}

/**
 * Sandboxes that the runtime knew of when this process was first asked, by their addresses. What came later is in the
 * journal; of what came before, one that was adopted may know nothing (ADR 0009).
 */
export class RecordedSandboxes {
  readonly #options: RecordedSandboxesOptions;
  /** Known to the journal before the records were read; undefined once they were: what came later is not in them. */
  #journalled: Set<string> | undefined = new Set();
  #reading: Promise<void> | undefined;
  #unjournalled: readonly RuntimeRecord[] = [];
  /** Records that said nothing when the others were read, and may have become whole since. */
  #cutOff: readonly UnreadRecord[] = [];

  constructor(options: RecordedSandboxesOptions) {
    this.#options = options;
  }

  /** All that have an address of the claim, by the runtime's records. Throws when these cannot be read: then nothing is known. */
  async of({ addresses }: Claim): Promise<readonly ClaimAttachment[]> {
    const { node, bootId, isStillThere } = this.#options;
    await this.#read();
    const found: ClaimAttachment[] = [];
    for (const record of this.#unjournalled) {
      const { containerID, interface: name, netns, podUID = "" } = record;
      if (netns === undefined || !addresses.some((address) => record.addresses.includes(address))) continue;
      if (!(await isStillThere(record))) continue;
      const where = { node, containerID, interface: name, netns, bootID: bootId };
      found.push({ ...where, podUID, since: 0, detached: false });
    }
    return found;
  }

  /**
   * A record of a container that the journal does not know and that cannot be read: it may be of any claim's sandbox. One that has become
   * whole since the others were read is not among those that `of` goes by, and is of the claim whose addresses it has.
   */
  async unreadable(
    isKnown: IsKnown,
    { addresses }: Pick<Claim, "addresses">,
  ): Promise<UnreadRecord | undefined> {
    const [unread] = await this.#options.unread(isKnown);
    if (unread !== undefined) return unread;
    const whole = this.#cutOff.filter((one) => !isKnown(one));
    if (whole.length === 0) return undefined;
    const up = await this.#readThoseUp();
    const found = ({ path }: UnreadRecord) => up.find((record) => record.path === path);
    this.#cutOff = this.#cutOff.filter((one) => isKnown(one) || found(one) !== undefined);
    return whole.find((one) => addresses.some((address) => found(one)?.addresses.includes(address)));
  }

  /** The journal knows of it, and will know of its end: the record says nothing more. */
  journalled(attachment: AttachmentKey): void {
    const key = keyOf(attachment);
    this.#journalled?.add(key);
    this.#unjournalled = this.#unjournalled.filter((record) => keyOf(record) !== key);
  }

  /** Once; what could not be read is read again the next time. */
  async #read(): Promise<void> {
    this.#reading ??= this.#readRecords();
    try {
      await this.#reading;
    } catch (error) {
      this.#reading = undefined;
      throw error;
    }
  }

  async #readRecords(): Promise<void> {
    const cutOff = await this.#options.unread(() => false); // first: what is whole by the next line is read there
    const seen = await this.#readThoseUp();
    this.#unjournalled = seen.filter((record) => this.#journalled?.has(keyOf(record)) !== true);
    this.#cutOff = cutOff;
    this.#journalled = undefined;
  }

  /** Those whose namespace is there to be seen: of others it could never be said that they are gone. */
  async #readThoseUp(): Promise<readonly RuntimeRecord[]> {
    const { records, host } = this.#options;
    const seen: RuntimeRecord[] = [];
    for (const record of await records()) {
      const { netns } = record;
      if (netns !== undefined && isFindable(record) && (await host.look(netns)) === "present")
        seen.push(record);
    }
    return seen;
  }
}

function keyOf({ containerID, interface: name }: Pick<AttachmentKey, "containerID" | "interface">): string {
  return `${containerID} ${name}`;
}
