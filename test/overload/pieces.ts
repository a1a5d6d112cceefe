// SPDX-License-Identifier: Apache-2.0
// Strangers who send bodies in chunks of one byte, as fast as they are taken, in a process of their own: it reads an order and begins, and
// with each further line says what came of it.
import { setPriority } from "node:os";
import { createInterface } from "node:readline";
import { setTimeout as pause } from "node:timers/promises";
import { connect, type TLSSocket } from "node:tls";

export interface PiecesOrder {
  readonly port: number;
  readonly count: number;
}

export interface PiecesDeeds {
  /** Status of the answer -> times. */
  readonly answers: Readonly<Record<string, number>>;
  /** Bodies that the webhook ended before they were sent. */
  readonly cutOff: number;
  /** Bodies that it took to their end. */
  readonly taken: number;
}

/** Of a body: 6 bytes for each byte, 48 MiB on the way, many times what the kernel holds for a connection. */
const PIECES = 8 * 1024 * 1024;
const PIECES_AT_ONCE = 8 * 1024;
const SOME = Buffer.from("1\r\n \r\n".repeat(PIECES_AT_ONCE));
/** Reviews, and what Node or Express would answer by itself. */
const BEGINNINGS = [
  "POST /mutate/pods HTTP/1.1\r\n",
  "POST /mutate/pods HTTP/1.1\r\nExpect: the-unexpected\r\n",
  "POST http://[::/mutate/pods HTTP/1.1\r\n",
] as const;
const REST = "Host: berth\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";

const answers: Record<string, number> = {};
let cutOff = 0;
let taken = 0;

async function live(port: number, n: number): Promise<void> {
  const head = `${BEGINNINGS[n % BEGINNINGS.length]}${REST}`;
  for (;;) {
    const from = { host: "127.0.0.1", port, localAddress: `127.0.2.${1 + (n % 250)}` };
    const socket = connect({ ...from, rejectUnauthorized: false });
    const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
    socket.on("error", () => {}); // the webhook hangs up in the midst of it
    socket.on("data", (text: Buffer) => {
      const status = /^HTTP\/1\.1 (\d+)/.exec(text.toString("latin1"))?.[1];
      if (status !== undefined) answers[status] = (answers[status] ?? 0) + 1;
    });
    await Promise.race([send(socket, head), closed]);
    socket.destroy();
    await pause(10);
  }
}

async function send(socket: TLSSocket, head: string): Promise<void> {
  socket.write(head);
  for (let sent = 0; sent < PIECES; sent += PIECES_AT_ONCE) {
    const isTaken = await new Promise<boolean>((resolve) => {
      socket.write(SOME, (error) => resolve(error === undefined || error === null));
    });
    if (isTaken && !socket.destroyed) continue;
    cutOff++;
    return;
  }
  taken++;
}

// others' machines do not take the processor from the webhook and from whoever measures
setPriority(19);
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const { port, count }: PiecesOrder = JSON.parse((await lines.next()).value ?? "");
for (let n = 0; n < count; n++) void live(port, n);
console.log(JSON.stringify("begun"));
while ((await lines.next()).done !== true)
  console.log(JSON.stringify({ answers, cutOff, taken } satisfies PiecesDeeds));
process.exit(0);
