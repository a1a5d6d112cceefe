// SPDX-License-Identifier: Apache-2.0
// The control planes that the files of one run share: `node --test --test-global-setup=test/api/plane-pool.ts`.
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { globalSetup as makePrograms } from "../support/programs.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { dataOf, type OwnControlPlane, startControlPlane } from "./harness.ts";
import { Baseline } from "./plane-baseline.ts";
import { keepTemplate, TEMPLATE_VARIABLE } from "./plane-template.ts";
import { CERTIFICATE_VARIABLE, keepCertificate } from "./serving-certificate.ts";
import { type Done, type Offer, type Order, PLANES_VARIABLE, SHARED_OPTIONS } from "./shared-plane.ts";

interface Ready {
  readonly plane: OwnControlPlane;
  readonly baseline: Baseline;
}

/**
 * Starts one when somebody asks and none is free. One that is given back is as new before the next has it, and stands still
 * until then: one that nobody uses would take a thirtieth of a processor.
 */
class PlanePool {
  readonly #folder = mkdtempSync(join(tmpdir(), "planes-"));
  readonly #server: Server;
  readonly #free: Ready[] = [];
  readonly #all = new Set<OwnControlPlane>();
  readonly #sockets = new Set<Socket>();
  readonly #pending = new Set<Promise<void>>();

  private constructor() {
    this.#server = createServer((socket) => this.#keep(this.#serve(socket)));
  }

  static async open(): Promise<PlanePool> {
    const pool = new PlanePool();
    pool.#server.listen(pool.path);
    await once(pool.#server, "listening");
    return pool;
  }

  /** Starts the first, of which all later ones have what it wrote. */
  async begin(): Promise<void> {
    const first = await this.#start();
    const { etcd, folder } = first.plane;
    process.env[TEMPLATE_VARIABLE] = keepTemplate(etcd, dataOf(folder), this.#folder);
    process.env[CERTIFICATE_VARIABLE] = await keepCertificate(this.#folder);
    this.#rest(first);
  }

  get path(): string {
    return join(this.#folder, "s");
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
    await Promise.allSettled(this.#pending);
    for (const plane of this.#all) await plane.close();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #keep(work: Promise<void>): void {
    this.#pending.add(work);
    work.finally(() => this.#pending.delete(work)).catch(console.error);
  }

  async #serve(socket: Socket): Promise<void> {
    this.#sockets.add(socket);
    socket.on("error", () => {}); // the end is told by close
    const closed = once(socket, "close");
    const orders = createInterface({ input: socket });
    try {
      const ready = (await this.#firstFree()) ?? (await this.#start());
      let last = Promise.resolve();
      orders.on("line", (line) => {
        last = last.then(async () => say(socket, await done(ready, JSON.parse(line) as Order)));
      });
      say(socket, { access: ready.plane.access });
      await closed;
      await last;
      await this.#takeBack(ready);
    } catch (error) {
      say(socket, { error: String(error) });
    } finally {
      socket.end();
      this.#sockets.delete(socket);
    }
  }

  /** One that still runs: what has ended meanwhile is no use to anybody, and is said. */
  async #firstFree(): Promise<Ready | undefined> {
    for (let ready = this.#free.pop(); ready !== undefined; ready = this.#free.pop()) {
      const { plane } = ready;
      const ended = [plane.etcd, plane.apiServer].filter(({ running }) => !running);
      if (ended.length === 0) {
        for (const part of [plane.etcd, plane.apiServer]) part.resume();
        return ready;
      }
      for (const part of ended) console.error(`a shared ${part.name} has ended:\n${part.tail()}`);
      await this.#discard(plane);
    }
    return undefined;
  }

  async #discard(plane: OwnControlPlane): Promise<void> {
    this.#all.delete(plane);
    await plane.close();
  }

  async #start(): Promise<Ready> {
    const plane = await startControlPlane({ ...SHARED_OPTIONS, definitions: true });
    this.#all.add(plane);
    return { plane, baseline: await Baseline.take(plane) };
  }

  #rest(ready: Ready): void {
    for (const part of [ready.plane.apiServer, ready.plane.etcd]) part.pause();
    this.#free.push(ready);
  }

  async #takeBack(ready: Ready): Promise<void> {
    for (const part of [ready.plane.etcd, ready.plane.apiServer]) {
      if (!part.running) return await this.#discard(ready.plane);
      part.resume();
    }
    // whoever was killed with the test may have had a last write under way
    for (let tries = 0; tries < 3; tries++) {
      const result = await ready.baseline.restore().catch(String);
      if (result === "restored") {
        this.#rest(ready);
        return;
      }
    }
    await this.#discard(ready.plane);
  }
}

/** What became of it. */
async function done({ plane, baseline }: Ready, order: Order): Promise<Done> {
  try {
    switch (order.act) {
      case "start":
        await plane.start();
        break;
      case "undefine":
        await baseline.undefine();
        break;
      case "stop":
        await plane[order.part].stop(order.signal);
        break;
      default:
        plane[order.part][order.act]();
    }
    return { done: true };
  } catch (error) {
    return { error: String(error) };
  }
}

function say(socket: Socket, said: Offer | Done): void {
  if (!socket.destroyed) socket.write(`${JSON.stringify(said)}\n`);
}

let pool: PlanePool | undefined;

export async function globalSetup(): Promise<void> {
  if (!havePartsOrSkip(["etcd", "kube-apiserver"])) return;
  makePrograms();
  pool = await PlanePool.open();
  await pool.begin();
  process.env[PLANES_VARIABLE] = pool.path;
}

export async function globalTeardown(): Promise<void> {
  await pool?.close();
}
