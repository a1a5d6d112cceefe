// SPDX-License-Identifier: Apache-2.0
import { chmod } from "node:fs/promises";
import { connect, type Server } from "node:net";
import { errnoOf } from "./path-error.ts";

/** Of folders, which another thread may be making in the same moment, it takes nothing that their owner needs. */
const OWNER_ALONE = 0o077;

/**
 * Listens on a unix socket that nobody but its owner and root may open, from its first moment on: what connects between listening and
 * chmod stays connected. Rejects with the error of the system.
 */
export async function listenPrivately(server: Server, path: string): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    const before = process.umask(OWNER_ALONE);
    try {
      server.listen(path, () => {
        server.removeListener("error", reject);
        resolve();
      });
    } finally {
      process.umask(before);
    }
  });
  await chmod(path, 0o600);
}

/** Whether somebody listens on the unix socket, in whatever PID or network namespace. Rejects with the error of the system for what is none, or is closed to this user. */
export function isServed(path: string): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const probe = connect(path, () => {
      probe.destroy();
      resolve(true);
    });
    probe.on("error", (error) => {
      const code = errnoOf(error);
      if (code === "ECONNREFUSED" || code === "ENOENT") resolve(false);
      else if (code === "EAGAIN")
        resolve(true); // its queue is full
      else reject(error);
    });
  });
}
