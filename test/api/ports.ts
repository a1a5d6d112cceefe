// SPDX-License-Identifier: Apache-2.0
import { createServer, type Server } from "node:net";

const LOOPBACK = "127.0.0.1";

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

/** Ports that were free a moment ago, each of them another one. */
export async function freePorts(count: number, host: string = LOOPBACK): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer());
  await Promise.all(servers.map((server) => listening(server, host)));
  const ports = servers.map(portOf);
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}

export async function freePort(host: string = LOOPBACK): Promise<number> {
  const [port] = await freePorts(1, host);
  if (port === undefined) throw new Error("no port is free");
  return port;
}
