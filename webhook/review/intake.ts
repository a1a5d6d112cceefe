// SPDX-License-Identifier: Apache-2.0
/** A bound for all callers together and one for each peer, which is what `peerOf` makes of a remote address. */
interface Bound {
  readonly inAll: number;
  readonly perPeer: number;
}

export interface IntakeLimits {
  /** Reviews that are read or decided at a time. An API server changes 200 objects at a time unless it is told otherwise. */
  readonly reviews: Bound;
  /** Bytes of their bodies. Decoded they take up to three times as much again. */
  readonly bytes: Bound;
}

const MIB = 1024 * 1024;
const INTAKE_LIMITS: IntakeLimits = {
  reviews: { inAll: 1_024, perPeer: 512 },
  bytes: { inAll: 32 * MIB, perPeer: 16 * MIB },
};

/** Whose bound is reached: the peer's own, or that of all together. */
export type Busy = "peer" | "all";

/** One review, from its headers on until its answer is out. */
export interface Place {
  /** Whether there is room for so many more bytes of its body. */
  grow(bytes: number): Busy | undefined;
  /** The body is here: from now on it is decided, and no longer made to go for another's sake. */
  complete(): void;
  /** Repeatable. */
  leave(): void;
}

interface Peer {
  reviews: number;
  bytes: number;
  /** In the order in which they came. */
  readonly unfinished: Set<Entry>;
}

interface Entry {
  readonly peer: string;
  bytes: number;
  left: boolean;
  readonly giveUp: () => void;
}

/**
 * What is read and decided at a time is bounded. Where all together are at their bound, a peer that has more than the one
 * that comes gives up the body that it has been sending for longest, so that one peer cannot keep the others out.
 */
export class Intake {
  readonly #limits: IntakeLimits;
  readonly #peers = new Map<string, Peer>();
  #reviews = 0;
  #bytes = 0;

  constructor(limits: IntakeLimits = INTAKE_LIMITS) {
    this.#limits = limits;
  }

  get reviews(): number {
    return this.#reviews;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** A place for a review of the peer, or whose bound keeps it out. `giveUp` is called, at most once, when its body must go. */
  enter(name: string, giveUp: () => void): Place | Busy {
    const { inAll, perPeer } = this.#limits.reviews;
    const peer = this.#peers.get(name) ?? { reviews: 0, bytes: 0, unfinished: new Set<Entry>() };
    if (peer.reviews >= perPeer) return "peer";
    if (this.#reviews >= inAll && !this.#displace("reviews", peer, 1)) return "all";
    const entry: Entry = { peer: name, bytes: 0, left: false, giveUp };
    this.#peers.set(name, peer);
    peer.unfinished.add(entry);
    peer.reviews++;
    this.#reviews++;
    return {
      grow: (bytes) => this.#grow(peer, entry, bytes),
      complete: () => void peer.unfinished.delete(entry),
      leave: () => this.#leave(peer, entry),
    };
  }

  #grow(peer: Peer, entry: Entry, bytes: number): Busy | undefined {
    const { inAll, perPeer } = this.#limits.bytes;
    if (entry.left || peer.bytes + bytes > perPeer) return "peer";
    while (this.#bytes + bytes > inAll) {
      if (!this.#displace("bytes", peer, bytes)) return "all";
    }
    entry.bytes += bytes;
    peer.bytes += bytes;
    this.#bytes += bytes;
    return undefined;
  }

  /** Whether a peer that has more gave something up for one that would then have as much at the most. */
  #displace(of: "reviews" | "bytes", newcomer: Peer, more: number): boolean {
    let most = newcomer;
    for (const peer of this.#peers.values()) {
      if (peer.unfinished.size > 0 && peer[of] > most[of]) most = peer;
    }
    const [victim] = most.unfinished;
    if (most === newcomer || victim === undefined || most[of] < newcomer[of] + more) return false;
    this.#leave(most, victim);
    victim.giveUp();
    return true;
  }

  #leave(peer: Peer, entry: Entry): void {
    if (entry.left) return;
    entry.left = true;
    peer.unfinished.delete(entry);
    peer.reviews--;
    peer.bytes -= entry.bytes;
    this.#reviews--;
    this.#bytes -= entry.bytes;
    if (peer.reviews === 0) this.#peers.delete(entry.peer);
  }
}
