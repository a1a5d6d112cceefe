// SPDX-License-Identifier: Apache-2.0
import type { Connection } from "../../allocator/store/etcd/client.ts";
import { GRPC, GrpcError } from "../../allocator/store/etcd/grpc-frames.ts";
import { METHODS } from "../../allocator/store/etcd/messages.ts";
import type { SeededRandom } from "../support/random.ts";
import type { MemoryEtcd } from "./memory-etcd.ts";

/** `deaf`: what it writes is done, and it does not hear so. */
export type LinkState = "up" | "cut" | "deaf";

/** Of what is sent into a link that is cut, this part arrives once it is not any more. */
const LATE = 0.2;

/** How a process of a host reaches etcd. */
export class EtcdLink {
  readonly #etcd: MemoryEtcd;
  readonly #random: SeededRandom;
  #state: LinkState = "up";
  #late: (() => void)[] = [];
  #ended = false;

  constructor(etcd: MemoryEtcd, random: SeededRandom) {
    this.#etcd = etcd;
    this.#random = random;
  }

  get state(): LinkState {
    return this.#state;
  }

  set state(state: LinkState) {
    this.#state = state;
    if (state === "cut") return;
    for (const arrive of this.#late.splice(0)) arrive();
    this.#etcd.wake();
  }

  /** Its process is killed: it sends and hears nothing more, and what is on the way arrives all the same. */
  end(): void {
    this.#ended = true;
  }

  connection(): Connection {
    const isUp = () => this.#state !== "cut" && !this.#ended;
    return {
      unary: (path, request) => this.#unary(path, request),
      follow: (_path, request, { signal }) => this.#etcd.follow(request, isUp, signal),
      retire: async () => {},
      close: async () => {},
    };
  }

  async #unary(path: string, request: Uint8Array): Promise<Buffer> {
    await undefined; // others go first, now and then
    if (this.#random.below(2) === 0) await undefined;
    if (this.#ended) throw new GrpcError(GRPC.unavailable, "the process has ended", false);
    if (this.#state === "cut") throw this.#swallowed(path, request);
    const answer = this.#etcd.unary(path, request);
    await undefined;
    const isLost = path === METHODS.txn && this.#state !== "up";
    if (isLost) throw new GrpcError(GRPC.unavailable, "the answer is lost", true);
    return answer;
  }

  #swallowed(path: string, request: Uint8Array): GrpcError {
    if (path !== METHODS.txn || this.#random.fraction() >= LATE) {
      return new GrpcError(GRPC.unavailable, "etcd cannot be reached", false);
    }
    this.#late.push(() => this.#etcd.unary(path, request));
    return new GrpcError(GRPC.unavailable, "the request is on its way", true);
  }
}
