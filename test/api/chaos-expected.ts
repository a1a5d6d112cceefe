// SPDX-License-Identifier: Apache-2.0

/** A sandbox that a runtime has, from the answer to its ADD until it is taken down. */
export interface Sandbox {
  readonly id: string;
  readonly node: string;
  /** As `namespace/name uid`, for words. */
  readonly pod: string;
  readonly addresses: readonly string[];
}

/** What a run of chaos knows by itself, without asking Berth: who has which address, and which identity keeps which. */
export class ExpectedUse {
  readonly #users = new Map<string, Sandbox>(); // address -> the live sandbox that has it
  readonly #keeps = new Map<string, string>(); // sticky identity -> its addresses
  readonly #story: string[] = [];
  readonly #began = performance.now();
  /** Everything that was wrong, in words. */
  readonly wrongs: string[] = [];

  get live(): number {
    return new Set(this.#users.values()).size;
  }

  /** The sandbox was given its addresses. `assigned` is what its pod was admitted with. */
  up(sandbox: Sandbox, assigned: readonly string[]): void {
    const { id, node, pod, addresses } = sandbox;
    this.tell(`up ${id} on ${node} of ${pod}: ${addresses.join(",")}`);
    if (addresses.join() !== assigned.join())
      this.wrong(`${pod} was admitted with ${assigned.join()}, its sandbox ${id} got ${addresses.join()}`);
    for (const address of addresses) {
      const other = this.#users.get(address);
      if (other !== undefined)
        this.wrong(
          `${address} of ${id} of ${pod} on ${node} is that of ${other.id} of ${other.pod} on ${other.node}`,
        );
      this.#users.set(address, sandbox);
    }
  }

  /** The sandbox uses its addresses no more. Repeatable. */
  down(sandbox: Sandbox): void {
    this.tell(`down ${sandbox.id}`);
    for (const address of sandbox.addresses)
      if (this.#users.get(address) === sandbox) this.#users.delete(address);
  }

  /** A sticky identity was given addresses: from now on these, until it is forgotten. */
  keeps(identity: string, addresses: readonly string[]): void {
    const before = this.#keeps.get(identity);
    if (before !== undefined && before !== addresses.join())
      this.wrong(`${identity} had ${before} and has ${addresses.join()} now`);
    this.#keeps.set(identity, addresses.join());
  }

  /** Its retention may have let the identity go. */
  forget(identity: string): void {
    this.tell(`forget ${identity}`);
    this.#keeps.delete(identity);
  }

  wrong(words: string): void {
    this.tell(`WRONG ${words}`);
    this.wrongs.push(words);
  }

  tell(line: string): void {
    this.#story.push(`${((performance.now() - this.#began) / 1000).toFixed(2)} ${line}`);
  }

  /** All that happened, line by line. */
  get story(): string {
    return this.#story.join("\n");
  }
}
