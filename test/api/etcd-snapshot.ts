// SPDX-License-Identifier: Apache-2.0
import { cpSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { OwnControlPlane } from "./harness.ts";

/** What etcd had at one moment, to which it can be put back while everybody else lives on. */
export class EtcdSnapshot {
  readonly #plane: OwnControlPlane;

  constructor(plane: OwnControlPlane) {
    this.#plane = plane;
  }

  /** Keeps what etcd has now. */
  async take(): Promise<void> {
    await this.#stopped(() => cpSync(this.#data, this.#copy, { recursive: true }));
  }

  /** Whatever was written since never was. */
  async restore(): Promise<void> {
    await this.#stopped(() => {
      rmSync(this.#data, { recursive: true });
      cpSync(this.#copy, this.#data, { recursive: true });
    });
  }

  get #data(): string {
    return join(this.#plane.folder, "etcd");
  }

  get #copy(): string {
    return join(this.#plane.folder, "etcd-snapshot");
  }

  async #stopped(work: () => void): Promise<void> {
    await this.#plane.apiServer.stop("SIGKILL");
    await this.#plane.etcd.stop("SIGTERM");
    work();
    await this.#plane.start();
  }
}
