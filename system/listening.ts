// SPDX-License-Identifier: Apache-2.0
import type { Server } from "node:net";

/** Where a server listens. */
export interface ListeningPlace {
  /** Absent: every address of this host. */
  readonly host?: string | undefined;
  /** 0: any that is free. */
  readonly port: number;
}

/** Of IPv6, and of IPv4 with it. */
const ALL = "::";
const ALL_IPV4 = "0.0.0.0";
/** A kernel without IPv6 (`ipv6.disable=1`) has no such sockets. */
const NO_SUCH_FAMILY = "EAFNOSUPPORT";

/** Rejects with the error of the system when the place cannot be listened on; the server has no handler of errors then, nor after. */
export async function listenAt(server: Server, { host, port }: ListeningPlace): Promise<void> {
  if (host !== undefined) return await listen(server, host, port);
  await listen(server, ALL, port).catch(async (error: unknown) => {
    if (!(error instanceof Error && "code" in error && error.code === NO_SUCH_FAMILY)) throw error;
    await listen(server, ALL_IPV4, port);
  });
}

/** For messages. */
export function placeWords({ host = "every address", port }: ListeningPlace): string {
  return `${host} port ${port}`;
}

async function listen(server: Server, host: string, port: number): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once("error", reject);
  server.listen(port, host, resolve);
  await promise.finally(() => {
    server.removeListener("error", reject);
    server.removeListener("listening", resolve);
  });
}
