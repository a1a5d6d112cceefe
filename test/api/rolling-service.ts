// SPDX-License-Identifier: Apache-2.0
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";

/** Between two looks of the kubelet; a Service hears of it a moment later. */
const LOOK_MS = 100;

/** Whether whoever listens on that port is to get new connections; undefined: it gave no answer in time. */
export type Look = (port: number) => Promise<boolean | undefined>;

/**
 * What a Service is to the API server: a new connection goes to the next of the ports that are ready; connections that
 * stand stay with whom they have. Readiness is asked for again and again, as kubelet does.
 */
export class TestService {
  readonly port: number;
  readonly #forwarder: ChildProcess;
  readonly #ready = new Set<number>();
  readonly #stop = new AbortController();
  #looking: Promise<unknown> = Promise.resolve();

  private constructor(forwarder: ChildProcess, port: number) {
    this.#forwarder = forwarder;
    this.port = port;
  }

  static async start(ports: readonly number[], look: Look): Promise<TestService> {
    const forwarder = fork(join(import.meta.dirname, "forwarder-main.ts"), { execArgv: [] });
    const [port]: readonly number[] = await once(forwarder, "message");
    if (port === undefined) throw new Error("the forwarder has no port");
    const service = new TestService(forwarder, port);
    service.#looking = Promise.all(ports.map((of) => service.#follow(of, look)));
    return service;
  }

  /** Whether whoever listens there gets new connections. */
  has(port: number): boolean {
    return this.#ready.has(port);
  }

  async close(): Promise<void> {
    this.#stop.abort();
    const ended = once(this.#forwarder, "exit");
    this.#forwarder.disconnect();
    await Promise.all([ended, this.#looking]);
  }

  async #follow(port: number, look: Look): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      const ready = await look(port);
      if (signal.aborted) return;
      // one answer that is late is not yet a failure to kubelet
      if (ready !== undefined && ready !== this.has(port)) {
        if (ready) this.#ready.add(port);
        else this.#ready.delete(port);
        this.#forwarder.send([...this.#ready]);
      }
      await pause(LOOK_MS, undefined, { signal }).catch(() => {});
    }
  }
}
