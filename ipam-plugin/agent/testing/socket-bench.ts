// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { type Logger, noopLogger } from "../../../allocator/base/ports.ts";
import { ManualClock } from "../../../system/testing/manual-clock.ts";
import type { Answer, Handler, Outcome } from "../rpc/connection.ts";
import type { Call, Reply } from "../rpc/frame.ts";
import { type SocketServer, serveSocket } from "../rpc/server.ts";
import { decodeReply } from "./client-frames.ts";

export const ACK = Buffer.of(6);
export const fine: Answer = { exitStatus: 0, stdout: "out", stderr: "err" };

/** A call of this container. */
export function callOf(containerID: string): Call {
  return { startNs: 1n, env: new Map([["CNI_CONTAINERID", containerID]]), stdin: Buffer.from("{}") };
}

/** Lets everything else run until it holds. */
export async function until(holds: () => boolean): Promise<void> {
  for (const giveUp = Date.now() + 20_000; Date.now() < giveUp; ) {
    if (holds()) return;
    await setImmediate();
  }
  assert.fail(`never came true: ${holds}`);
}

/** A client as plain as can be: what it got so far, and whether the server hung up. */
export class PlainClient {
  readonly socket: Socket;
  bytes: Buffer = Buffer.alloc(0);
  ended = false;

  constructor(path: string) {
    this.socket = connect(path);
    this.socket.on("data", (chunk: Buffer) => {
      this.bytes = Buffer.concat([this.bytes, chunk]);
    });
    this.socket.on("error", () => {});
    this.socket.on("close", () => {
      this.ended = true;
    });
  }

  async reply(): Promise<Reply> {
    await until(() => decodeReply(this.bytes).kind === "complete");
    const decoded = decodeReply(this.bytes);
    assert.ok(decoded.kind === "complete");
    return decoded.frame;
  }
}

/** A handler that does not answer before it is released; `begun` has the signal of every call that came. */
export function slowHandler() {
  const begun: AbortSignal[] = [];
  const outcomes: Outcome[] = [];
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  const handle: Handler = async (_call, signal) => {
    begun.push(signal);
    await released;
    return { ...fine, settle: (outcome) => void outcomes.push(outcome) };
  };
  return { handle, begun, outcomes, release };
}

/** A served socket in a folder of its own, with a clock that stands still and everybody who called. */
export class SocketBench {
  readonly folder: string;
  readonly clock = new ManualClock();
  /** What was logged as a warning or an error. */
  readonly lines: string[] = [];
  readonly log: Logger = {
    ...noopLogger,
    warn: (line) => this.lines.push(line),
    error: (line) => this.lines.push(line),
  };
  readonly #clients: PlainClient[] = [];
  path: string;
  server: SocketServer | undefined;

  private constructor(folder: string) {
    this.folder = folder;
    this.path = join(folder, "agent.sock");
  }

  static async open(): Promise<SocketBench> {
    return new SocketBench(await mkdtemp(join(tmpdir(), "berth-socket-")));
  }

  async close(): Promise<void> {
    for (const client of this.#clients) client.socket.destroy();
    await this.server?.close();
    await rm(this.folder, { recursive: true, force: true });
  }

  async serve(handle: Handler, limit: { maxConcurrent?: number } = {}): Promise<void> {
    this.server = await serveSocket({ path: this.path, handle, log: this.log, clock: this.clock, ...limit });
  }

  /** Serves an answer that waits for its outcome, and collects what it hears. */
  async serveSettling(): Promise<Outcome[]> {
    const outcomes: Outcome[] = [];
    await this.serve(async () => ({ ...fine, settle: (outcome) => void outcomes.push(outcome) }));
    return outcomes;
  }

  client(bytes?: Buffer): PlainClient {
    const made = new PlainClient(this.path);
    if (bytes !== undefined) made.socket.write(bytes);
    this.#clients.push(made);
    return made;
  }

  /** One second goes by. */
  async tick(): Promise<void> {
    await until(() => this.clock.sleeping > 0);
    this.clock.advance(1_000);
    await setImmediate();
  }
}
