// SPDX-License-Identifier: Apache-2.0
// Forwards connections to the ports that its parent names. A process of its own: what a busy test has not forwarded yet is lost with a
// connection that the other end closes, as no kernel would lose it.
import { connect, createServer, type Socket } from "node:net";
import { listening, portOf } from "./ports.ts";

let ready: readonly number[] = [];
let next = 0;

function accept(client: Socket): void {
  prepare(client);
  const port = ready[next++ % Math.max(ready.length, 1)];
  if (port === undefined) {
    client.resetAndDestroy();
    return;
  }
  const server = connect(port, "127.0.0.1");
  prepare(server);
  client.pipe(server).pipe(client);
  client.once("close", () => server.destroy());
  server.once("close", () => client.destroy());
}

function prepare(socket: Socket): void {
  socket.setNoDelay(true);
  socket.on("error", () => {}); // the other end is told by close
}

const server = createServer(accept);
await listening(server, "localhost");
process.on("message", (ports: readonly number[]) => {
  ready = ports;
});
process.once("disconnect", () => process.exit());
process.send?.(portOf(server));
