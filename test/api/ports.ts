// SPDX-License-Identifier: Apache-2.0
import { createServer, type Server } from "node:net";

const LOOPBACK = "127.0.0.1";
/**
 * Ports for servers that are told theirs, and that may be stopped and started again: below those that a system gives
 * to connections and to servers that ask for any (32768 and up), and below the node ports of a cluster (30000 and up).
 */
const FIRST = 12_000;
const LAST = 29_999;

/** What this process has taken; a port stays its own until it ends, though nobody listens there for a while. */
const taken = new Set<Server>();
let next = FIRST + ((process.pid * 101) % (LAST - FIRST));

/** Listens on a port that is free. */
export function listening(server: Server, host: string = LOOPBACK): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, host, resolve);
  });
}

export function portOf(server: Server): number {
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("a server without a port");
  return address.port;
}

/** Ports that are free, and that no other test on this host is given while this process runs. */
export async function freePorts(count: number, host: string = LOOPBACK): Promise<number[]> {
  const ports: number[] = [];
  while (ports.length < count) ports.push(await freePort(host));
  return ports;
}

export async function freePort(host: string = LOOPBACK): Promise<number> {
  for (let looks = FIRST; looks <= LAST; looks += 1) {
    const port = next;
    next = next === LAST ? FIRST : next + 1;
    // taken before it is looked at: the look itself would be in the way of another test's server
    if ((await take(port)) && (await isFree(port, host))) return port;
  }
  throw new Error(`no port from ${FIRST} to ${LAST} is free`);
}

async function isFree(port: number, host: string): Promise<boolean> {
  const server = createServer();
  if (!(await listensAt(server, { port, host }))) return false;
  await new Promise((resolve) => server.close(resolve));
  return true;
}

/** An abstract socket of that name: one process has it, and it is gone with the process. */
async function take(port: number): Promise<boolean> {
  const server = createServer().unref();
  if (!(await listensAt(server, { path: `\0berth-test-port-${port}` }))) return false;
  taken.add(server);
  return true;
}

/** Whether it listens now; not, where somebody else does. */
function listensAt(server: Server, at: { port: number; host: string } | { path: string }): Promise<boolean> {
  return new Promise((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) =>
      error.code === "EADDRINUSE" ? resolve(false) : reject(error),
    );
    server.listen(at, () => resolve(true));
  });
}
