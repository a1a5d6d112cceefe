// SPDX-License-Identifier: Apache-2.0
import { type CniError, isCniError } from "../../cni/errors.ts";
import type { IpamConfig } from "../../cni/ipam-config.ts";

/** Networks that are remembered. Whoever may define networks can name as many as they like. */
const MOST_NETWORKS = 64;
/** A usual configuration has 1 to 10 kB. */
const MOST_BYTES = 16 * 1024;

interface Known {
  readonly stdin: Buffer;
  readonly ipam: IpamConfig;
}

/** Configurations as they were read last: a network has the same one for all of its pods, as a rule, to the byte. */
export class KnownConfigurations {
  readonly #known = new Map<string, Known>(); // network -> what it had last

  /** What `read` makes of the bytes, which must depend on them alone. What it refuses is read again each time. */
  ipam(network: string, stdin: Buffer, read: () => IpamConfig | CniError): IpamConfig | CniError {
    const known = this.#known.get(network);
    if (known?.stdin.equals(stdin) === true) return known.ipam;
    const ipam = read();
    if (!isCniError(ipam) && stdin.length <= MOST_BYTES) this.#keep(network, { stdin, ipam });
    return ipam;
  }

  #keep(network: string, { stdin, ipam }: Known): void {
    this.#known.delete(network);
    // a copy: the bytes are part of a buffer that holds the whole call
    this.#known.set(network, { stdin: Buffer.from(stdin), ipam });
    const [oldest] = this.#known.size > MOST_NETWORKS ? this.#known.keys() : [];
    if (oldest !== undefined) this.#known.delete(oldest);
  }
}
