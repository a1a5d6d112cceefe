// SPDX-License-Identifier: Apache-2.0
// A control plane that files of tests use one after the other, each as if it were new: started once for all of them.
import { once } from "node:events";
import { mkdtempSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { isDeepStrictEqual } from "node:util";
import { startControlPlane } from "./harness.ts";
import { ControlPlane, type PlaneAccess, type TestUser, WEBHOOK_USER } from "./plane.ts";

/** The socket of whoever has control planes to share; absent where a file is run by itself. */
export const PLANES_VARIABLE = "BERTH_CONTROL_PLANES";

/** Whom every shared API server knows, besides the administrator. */
export const SHARED_USERS: readonly TestUser[] = [
  WEBHOOK_USER,
  { name: "stranger", groups: ["system:serviceaccounts"] },
  ...["nobody", "shopkeeper", "releaser"].map((name) => ({ name, groups: [] })),
];

/** What is said to whoever asks for a control plane. */
export type Offer = { readonly access: PlaneAccess } | { readonly error: string };

/** One that others had before, or will have, and that nobody else has now. */
class SharedControlPlane extends ControlPlane {
  readonly #lease: Socket;

  constructor(access: PlaneAccess, lease: Socket) {
    super(access, mkdtempSync(join(tmpdir(), "berth-api-")));
    this.#lease = lease;
  }

  override async close(): Promise<void> {
    await super.close();
    if (this.#lease.destroyed) return;
    const closed = once(this.#lease.ref(), "close");
    this.#lease.end();
    await closed;
  }
}

/**
 * A control plane with nothing of anybody else's on it, and Berth's definitions perhaps: one that is shared, where there
 * are such, or a new one. It must not be stopped, and stays as it was started: for anything else there is
 * `startControlPlane`. Whoever calls this closes it.
 */
export async function openControlPlane(users: readonly TestUser[] = []): Promise<ControlPlane> {
  const path = process.env[PLANES_VARIABLE];
  const strange = users.find((user) => !SHARED_USERS.some((known) => isDeepStrictEqual(known, user)));
  if (strange !== undefined) throw new Error(`${strange.name} must be one of SHARED_USERS`);
  if (path === undefined || path === "") return await startControlPlane({ users: SHARED_USERS });
  const lease = connect(path);
  const [line] = (await once(createInterface({ input: lease }), "line")) as [string];
  const offer = JSON.parse(line) as Offer;
  if ("error" in offer) {
    lease.destroy();
    throw new Error(offer.error);
  }
  lease.unref(); // it ends with the process, if with nothing before
  return new SharedControlPlane(offer.access, lease);
}
