// SPDX-License-Identifier: Apache-2.0
// A control plane that files of tests use one after the other, each as if it were new: started once for all of them.
import { once } from "node:events";
import { mkdtempSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { ControlPlaneOptions } from "./harness.ts";
import { ControlPlane, type PlaneAccess, type TestUser, WEBHOOK_USER } from "./plane.ts";

/** The socket of whoever has control planes to share; absent where a file is run by itself. */
export const PLANES_VARIABLE = "BERTH_CONTROL_PLANES";

/** A kubelet, who may do what the API server's authorizer of nodes and NodeRestriction let it. */
export const KUBELET: TestUser = {
  name: "system:node:node-a",
  groups: ["system:nodes", "system:authenticated"],
};

/** Whom every shared API server knows, besides the administrator. Nobody has rights but those that a test gives him. */
const SHARED_USERS: readonly TestUser[] = [
  WEBHOOK_USER,
  KUBELET,
  { name: "stranger", groups: ["system:serviceaccounts"] },
  ...["nobody", "shopkeeper", "releaser"].map((name) => ({ name, groups: [] })),
];

/** As on kubeadm's API servers, besides what all of the tests have. */
const SHARED_FLAGS = ["--authorization-mode=Node", "--enable-admission-plugins=NodeRestriction"];
/** How each is started. */
export const SHARED_OPTIONS: ControlPlaneOptions = {
  users: SHARED_USERS,
  apiServerFlags: SHARED_FLAGS,
  audited: true,
};

/** What is said to whoever asks for a control plane. */
export type Offer = { readonly access: PlaneAccess } | { readonly error: string };

/** What whoever has one wants of its processes, each a line, and what is said to that. */
export type Order =
  | { readonly act: "start" | "undefine" }
  | { readonly act: "stop"; readonly part: PartName; readonly signal?: NodeJS.Signals }
  | { readonly act: "pause" | "resume"; readonly part: PartName };
export type Done = { readonly done: true } | { readonly error: string };
type PartName = "etcd" | "apiServer";

/** A process of a control plane. What is paused stands still, as a host that hangs. */
export interface PlanePart {
  stop(signal?: NodeJS.Signals): Promise<void>;
  pause(): Promise<void> | void;
  resume(): Promise<void> | void;
}

/** A control plane that nobody else has now, so that its processes may be stopped. */
export interface StoppablePlane extends ControlPlane {
  readonly etcd: PlanePart;
  readonly apiServer: PlanePart;
  /** Starts what does not run, and waits until the API server is ready. */
  start(): Promise<void>;
}

/** One that others had before, or will have, and that nobody else has now. */
class SharedControlPlane extends ControlPlane implements StoppablePlane {
  readonly etcd = this.#part("etcd");
  readonly apiServer = this.#part("apiServer");
  readonly #lease: Socket;
  readonly #answers: AsyncIterator<string>;
  #pending = 0;

  constructor(access: PlaneAccess, lease: Socket, answers: AsyncIterator<string>) {
    super(access, mkdtempSync(join(tmpdir(), "berth-api-")));
    this.#lease = lease;
    this.#answers = answers;
  }

  async start(): Promise<void> {
    await this.#order({ act: "start" });
  }

  /** Takes Berth's definitions away. */
  async undefine(): Promise<void> {
    await this.#order({ act: "undefine" });
  }

  #part(part: PartName): PlanePart {
    return {
      stop: (signal) => this.#order({ act: "stop", part, ...(signal && { signal }) }),
      pause: () => this.#order({ act: "pause", part }),
      resume: () => this.#order({ act: "resume", part }),
    };
  }

  /** The answers come in the order of what was wanted. */
  async #order(order: Order): Promise<void> {
    this.#pending++;
    this.#lease.ref().write(`${JSON.stringify(order)}\n`);
    try {
      const answer = await nextLine<Done>(this.#answers);
      if ("error" in answer) throw new Error(answer.error);
    } finally {
      if (--this.#pending === 0) this.#lease.unref();
    }
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
 * are such, or a new one. It has the flags that it was started with: for others there is `startControlPlane`. Whoever
 * calls this closes it.
 */
export async function openControlPlane(): Promise<StoppablePlane> {
  return (await openShared()) ?? (await startOne());
}

/** The same, and without Berth's definitions. */
export async function openUndefinedPlane(): Promise<StoppablePlane> {
  const shared = await openShared();
  await shared?.undefine();
  return shared ?? (await startOne());
}

/** Where there are some to share, nothing that starts one is loaded. */
async function startOne(): Promise<StoppablePlane> {
  const { startControlPlane } = await import("./harness.ts");
  return await startControlPlane(SHARED_OPTIONS);
}

/** Undefined: there are none to share. */
async function openShared(): Promise<SharedControlPlane | undefined> {
  const path = process.env[PLANES_VARIABLE];
  if (path === undefined || path === "") return undefined;
  const lease = connect(path);
  const lines = createInterface({ input: lease })[Symbol.asyncIterator]();
  const offer = await nextLine<Offer>(lines);
  if ("error" in offer) {
    lease.destroy();
    throw new Error(offer.error);
  }
  lease.unref(); // it ends with the process, if with nothing before
  return new SharedControlPlane(offer.access, lease, lines);
}

async function nextLine<T>(lines: AsyncIterator<string>): Promise<T> {
  const { done, value } = await lines.next();
  if (done === true) throw new Error("whoever has the shared control planes has ended");
  return JSON.parse(value) as T;
}
