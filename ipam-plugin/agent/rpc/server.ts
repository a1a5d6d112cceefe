// SPDX-License-Identifier: Apache-2.0
import { lstatSync, rmSync, type Stats } from "node:fs";
import { lstat, mkdir, rm } from "node:fs/promises";
import { createServer, type Server, type Socket } from "node:net";
import { dirname } from "node:path";
import { BerthError, messageOf } from "../../../allocator/base/errors.ts";
import type { Clock, Logger } from "../../../allocator/base/ports.ts";
import { hasDescriptors } from "../../../system/descriptors.ts";
import { errnoOf } from "../../../system/path-error.ts";
import { isServed, listenPrivately } from "../../../system/private-socket.ts";
import { Connection, type Handler, type MemoryBudget } from "./connection.ts";
import { REQUEST_LIMIT } from "./frame.ts";

interface SocketOptions {
  /** Of the unix socket; its folder is made if there is none. */
  readonly path: string;
  readonly handle: Handler;
  readonly log: Logger;
  readonly clock: Clock;
  /** Calls at once; more are told to try again. A node of 110 pods needs about twice that after a reboot. */
  readonly maxConcurrent?: number;
}

export interface SocketServer {
  readonly path: string;
  /** Takes no more calls and resolves when those under way have ended, or were cut off after DRAIN_MS. Repeatable. */
  close(): Promise<void>;
}

const MAX_CONCURRENT = 512;
/** Unfinished requests in memory, all together. A usual configuration has 1 to 10 kB. */
const MEMORY_LIMIT = 8 * REQUEST_LIMIT;
const LOOK_EVERY_MS = 1_000;
/** For the socket itself and the first calls, so that it is not closed again at once. */
const DESCRIPTORS_TO_LISTEN = 8;
const DRAIN_MS = 5_000;
/** For handlers and settlements to notice that they were cut off. */
const CUT_OFF_MS = 1_000;

/**
 * Listens for CNI calls. Throws BerthError CONFIG_INVALID, naming the path, when another agent listens there or the
 * path cannot be used.
 */
export async function serveSocket(options: SocketOptions): Promise<SocketServer> {
  await makeFolderOf(options.path).catch((error) => unusable(options.path, error));
  await clearStale(options.path);
  const served = new ServedSocket(options);
  await served.listen();
  return served;
}

class ServedSocket implements SocketServer {
  readonly path: string;
  readonly #options: SocketOptions;
  #server: Server;
  /** The socket's own file, of the listener that there is. */
  #file: Stats | undefined;
  #isLost = false;
  /** For want of file descriptors. */
  #isPaused = false;
  readonly #calls = new Set<Connection>();
  readonly #refused = new Set<Connection>();
  readonly #stop = new AbortController();
  readonly #budget = createBudget(MEMORY_LIMIT);
  #emptied: (() => void) | undefined;
  #closing: Promise<void> | undefined;

  constructor(options: SocketOptions) {
    this.path = options.path;
    this.#options = options;
    this.#server = this.#serverOfCalls();
  }

  async listen(): Promise<void> {
    await this.#listenHere().catch((error) => unusable(this.path, error));
    this.#look().catch((error: unknown) =>
      this.#options.log.error("late clients are not looked for", { error }),
    );
  }

  close(): Promise<void> {
    this.#closing ??= this.#drain();
    return this.#closing;
  }

  #serverOfCalls(): Server {
    const server = createServer((socket) => this.#accept(socket));
    // Beyond the calls that are refused in words, connections are simply cut. A STATUS that is cut makes the node
    // NotReady, so that is far off.
    server.maxConnections = 8 * this.#limit;
    return server;
  }

  async #listenHere(): Promise<void> {
    const server = this.#server;
    await listenPrivately(server, this.path);
    this.#file = fileAt(this.path);
    server.on("error", (error) => this.#options.log.error("socket failed", { error }));
  }

  /** A socket that somebody has removed, with its folder perhaps, is made again: no call would reach this process any more. */
  async #makeAgainIfGone(): Promise<void> {
    const { path } = this;
    const { log } = this.#options;
    try {
      if (!(await this.#isGone())) {
        this.#isLost = false;
        return;
      }
      await makeFolderOf(path);
      if (!(await this.#isGone()) || this.#closing !== undefined) return;
      this.#server.close(); // to calls that came by it nothing happens
      rmSync(path, { force: true });
      this.#server = this.#serverOfCalls();
      await this.#listenHere();
      log.warn("the socket was gone, and is made again", { path });
      this.#isLost = false;
    } catch (error) {
      if (!this.#isLost)
        log.error("the socket is gone, and cannot be made again; no call comes", { path, error });
      this.#isLost = true;
    }
  }

  /**
   * Without a file descriptor no call can be accepted: Node says nothing of it, and tries again without end. So the socket is closed until
   * there are some, and made again as one that somebody has removed.
   */
  #pauseWithoutDescriptors(): void {
    const wasPaused = this.#isPaused;
    this.#isPaused = !hasDescriptors(wasPaused ? DESCRIPTORS_TO_LISTEN : 1);
    if (wasPaused || !this.#isPaused) return;
    this.#server.close(); // what it has accepted goes on
    const { path } = this;
    this.#options.log.error(
      "no file descriptor is left: the socket is closed, and no call comes, until there are some again",
      { path },
    );
  }

  /**
   * Also where another's socket stands in its place that nobody listens on: one that was moved away and back, or had a mount over it.
   * Throws for what is no socket, as the folder that a runtime makes to mount it while it is away.
   */
  async #isGone(): Promise<boolean> {
    const there = fileAt(this.path);
    if (there === undefined) return true;
    if (this.#file !== undefined && isSameFile(there, this.#file)) return false;
    if (!there.isSocket()) throw new Error("what is there now is no socket; remove it");
    return !(await isServed(this.path));
  }

  get #limit(): number {
    return this.#options.maxConcurrent ?? MAX_CONCURRENT;
  }

  #accept(socket: Socket): void {
    const { handle, log, clock } = this.#options;
    const full = this.#calls.size >= this.#limit;
    const members = full ? this.#refused : this.#calls;
    const over = (connection: Connection) => {
      members.delete(connection);
      if (this.#calls.size + this.#refused.size === 0) this.#emptied?.();
    };
    const connection = new Connection(socket, { handle, log, clock, budget: this.#budget, over });
    members.add(connection);
    if (!full) return;
    log.warn("too many calls at once");
    connection.refuse();
  }

  async #look(): Promise<void> {
    const { clock } = this.#options;
    while (!this.#stop.signal.aborted) {
      await clock.sleep(LOOK_EVERY_MS, this.#stop.signal);
      const now = clock.monotonic();
      for (const connection of [...this.#calls, ...this.#refused]) connection.check(now);
      if (this.#closing !== undefined) continue;
      this.#pauseWithoutDescriptors();
      if (!this.#isPaused) await this.#makeAgainIfGone();
    }
  }

  async #drain(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    await this.#untilEmpty(DRAIN_MS);
    for (const connection of [...this.#calls, ...this.#refused]) connection.abandon();
    await this.#untilEmpty(CUT_OFF_MS);
    this.#stop.abort();
    await closed;
  }

  async #untilEmpty(ms: number): Promise<void> {
    if (this.#calls.size + this.#refused.size === 0) return;
    const emptied = new AbortController();
    this.#emptied = () => emptied.abort();
    await this.#options.clock.sleep(ms, emptied.signal);
  }
}

function createBudget(limit: number): MemoryBudget {
  let left = limit;
  return {
    take(bytes) {
      if (bytes > left) return false;
      left -= bytes;
      return true;
    },
    give(bytes) {
      left += bytes;
    },
  };
}

/** Undefined: nothing is there. Throws where that is not known. */
function fileAt(path: string): Stats | undefined {
  return lstatSync(path, { throwIfNoEntry: false });
}

/** A number may be that of one that was removed. */
function isSameFile(one: Stats, other: Stats): boolean {
  return one.ino === other.ino && one.dev === other.dev && one.birthtimeMs === other.birthtimeMs;
}

async function makeFolderOf(path: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
}

/** A socket file outlives an agent that was killed. It is removed only when nobody accepts a connection to it. */
async function clearStale(path: string): Promise<void> {
  if (await requireUnserved(path)) await rm(path, { force: true });
}

/** Whether a socket of nobody is there. Throws CONFIG_INVALID when an agent listens there, or when it is no socket. */
export async function requireUnserved(path: string): Promise<boolean> {
  const found = await lstat(path).catch((error) =>
    errnoOf(error) === "ENOENT" ? undefined : unusable(path, error),
  );
  if (found === undefined) return false;
  if (!found.isSocket()) {
    throw new BerthError(
      "CONFIG_INVALID",
      `${path} exists and is no socket; remove it or choose another socket`,
    );
  }
  if (await isServed(path).catch((error) => unusable(path, error))) {
    throw new BerthError(
      "CONFIG_INVALID",
      `another berth agent listens on ${path}; stop it or choose another socket`,
    );
  }
  return true;
}

function unusableError(path: string, cause: unknown): BerthError {
  return new BerthError("CONFIG_INVALID", `cannot listen on ${path}: ${messageOf(cause)}`, { cause });
}

function unusable(path: string, cause: unknown): never {
  throw unusableError(path, cause);
}
