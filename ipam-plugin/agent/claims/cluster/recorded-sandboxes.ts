// SPDX-License-Identifier: Apache-2.0
import type { Claim, ClaimAttachment } from "../../../../allocator/model/claim.ts";
import type { Host } from "../../journal/host.ts";
import type { RuntimeRecord, RuntimeRecords } from "../../journal/runtime-records.ts";

interface RecordedSandboxesOptions {
  readonly records: RuntimeRecords;
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
  #records: Promise<readonly RuntimeRecord[]> | undefined;

  constructor(options: RecordedSandboxesOptions) {
    this.#options = options;
  }

  /** One that has an address of the claim, by the runtime's record. */
  async of({ addresses }: Claim): Promise<ClaimAttachment | undefined> {
    const { node, bootId } = this.#options;
    this.#records ??= this.#seen();
    const found = (await this.#records).find((record) =>
      addresses.some((address) => record.addresses.includes(address)),
    );
    if (found?.netns === undefined) return undefined;
    const { containerID, interface: name, netns, podUID = "" } = found;
    return { node, containerID, interface: name, podUID, since: 0, detached: false, netns, bootID: bootId };
  }

  /** Those whose namespace is there to be seen: of others it could never be said that they are gone. */
  async #seen(): Promise<readonly RuntimeRecord[]> {
    const { records, host } = this.#options;
    const seen: RuntimeRecord[] = [];
    for (const record of await records()) {
      const { netns } = record;
      if (netns !== undefined && hasName(netns) && (await host.look(netns)) === "present") seen.push(record);
    }
    return seen;
  }
}

/** The path of a process may be another one's by now. */
function hasName(netns: string): boolean {
  return !netns.startsWith("/proc/");
}
