// SPDX-License-Identifier: Apache-2.0

/** What is found in the books of a stack. */
export interface Found {
  /** name of the claim -> addresses, in order, with commas */
  readonly claims: Readonly<Record<string, string>>;
  /** id of an attached container -> addresses, in order, with commas */
  readonly attached: ReadonlyMap<string, string>;
}

/**
 * What a stack has answered and must stand by, whatever becomes of its process. A question that is under way, or
 * whose answer was lost, makes uncertain what it is about: both outcomes are right then.
 */
export class Promises {
  readonly #claims = new Map<string, string>(); // name of the claim -> addresses
  readonly #attached = new Map<string, string>(); // container id -> addresses
  readonly #detached = new Set<string>(); // container ids

  /** The pod was admitted, and kept, with these addresses. */
  admitted(claim: string, addresses: string): void {
    this.#claims.set(claim, addresses);
  }

  /** Something was sent that may end the claim. */
  claimUncertain(claim: string): void {
    this.#claims.delete(claim);
  }

  addressesOf(claim: string): string | undefined {
    return this.#claims.get(claim);
  }

  /** An ADD ended with success. */
  attached(containerID: string, addresses: string): void {
    this.#attached.set(containerID, addresses);
  }

  /** Something was sent that may end the attachment: a DEL, or an ADD of its successor. */
  attachmentUncertain(containerID: string): void {
    this.#attached.delete(containerID);
  }

  /** A DEL ended with success, and no ADD of the container was under way. */
  detached(containerID: string): void {
    this.#detached.add(containerID);
  }

  get size(): number {
    return this.#claims.size + this.#attached.size;
  }

  /** What is found against what was promised, in words; a release that waits on the spool may still come. */
  broken({ claims, attached }: Found): readonly string[] {
    const lostClaims = [...this.#claims]
      .filter(([name, addresses]) => claims[name] !== addresses)
      .map(([name, addresses]) => `claim ${name} had ${addresses} and has ${claims[name] ?? "gone"}`);
    const lost = [...this.#attached]
      .filter(([id, addresses]) => attached.get(id) !== addresses)
      .map(
        ([id, addresses]) => `container ${id} was given ${addresses} and has ${attached.get(id) ?? "none"}`,
      );
    return [...lostClaims, ...lost];
  }

  /** Containers that were released and are attached all the same. */
  unreleased({ attached }: Found): readonly string[] {
    return [...this.#detached].filter((id) => attached.has(id));
  }
}
