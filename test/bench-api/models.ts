// SPDX-License-Identifier: Apache-2.0
// Models of what others do, as small as they can be. They are no measurements of any product.
import { setTimeout as pause } from "node:timers/promises";
import { Client } from "../../kube/api/client.ts";
import type { Connection } from "../../kube/api/connection.ts";
import { itemPath, type KubeItem } from "../../kube/api/resource.ts";
import type { ObservedLease } from "../../kube/controller/leader-election.ts";
import { kubeLeaseLock } from "../../kube/controller/lease-lock.ts";
import { addressAt, type Contender, NAMESPACE, POOL, POOL_CIDR } from "./contender.ts";
import { ALLOCATION_LISTS } from "./stand-ins.ts";

const PLACE = { namespace: NAMESPACE, name: POOL };
/** client-go, retry.DefaultBackoff: for an object that is under active management by others. Then all begins anew. */
const BACKOFF = { firstMs: 10, factor: 5, jitter: 0.1, steps: 4 };
/** client-go, leaderelection: JitterFactor. */
const LEASE_JITTER = 1.2;

type Allocations = Readonly<Record<string, { readonly podRef: string }>>;

/** Makes the pool's one object, with so many addresses taken. */
export async function makeList(connection: Connection, taken: number): Promise<void> {
  const entries = Array.from({ length: taken }, (_, i) => [addressAt(i), entryOf(`taken-${i}`)] as const);
  const spec = { range: POOL_CIDR, allocations: Object.fromEntries(entries) };
  await new Client(connection, ALLOCATION_LISTS).create(PLACE, { spec });
}

/** As long as what such lists hold: pod, container and interface. */
function entryOf(name: string) {
  return { podRef: `${NAMESPACE}/${name}`, id: name.padEnd(64, "0"), ifName: "eth0" };
}

/** One object for the pool: read, choose, write if it is still as it was read; else wait a little and begin again. */
export class OneObject implements Contender {
  readonly #client: Client;
  readonly #made = new Set<string>();

  constructor(connection: Connection) {
    this.#client = new Client(connection, ALLOCATION_LISTS);
  }

  async take(name: string, signal: AbortSignal): Promise<number | undefined> {
    for (let again = 0; !signal.aborted; again++) {
      const seen = await this.read();
      if (await this.write(seen, name)) return again;
      const ms = BACKOFF.firstMs * BACKOFF.factor ** (again % BACKOFF.steps);
      await pause(ms * (1 + BACKOFF.jitter * Math.random()), undefined, { signal }).catch(() => {});
    }
    return undefined;
  }

  async read(): Promise<KubeItem> {
    const item = await this.#client.get(PLACE);
    if (item === undefined) throw new Error("the pool's object is gone");
    return item;
  }

  /**
   * The lowest address that is free. Of all ways to write, the one that costs the API server least: the change alone,
   * behind a test of the revision, which fails before anything else is done.
   */
  async write(seen: KubeItem, name: string): Promise<boolean> {
    const { allocations = {} } = (seen as KubeItem & { spec: { allocations?: Allocations } }).spec;
    let n = 0;
    while (allocations[addressAt(n)] !== undefined) n++;
    const { status } = await this.#client.connection.call({
      method: "PATCH",
      path: itemPath(ALLOCATION_LISTS, PLACE),
      contentType: "application/json-patch+json",
      body: [
        { op: "test", path: "/metadata/resourceVersion", value: seen.metadata.resourceVersion },
        { op: "add", path: `/spec/allocations/${addressAt(n)}`, value: entryOf(name) },
      ],
    });
    if (status === 409 || status === 422) return false;
    if (status !== 200) throw new Error(`the pool's object cannot be changed: ${status}`);
    this.#made.add(addressAt(n));
    return true;
  }

  async clear(): Promise<void> {
    if (this.#made.size === 0) return;
    const allocations = Object.fromEntries([...this.#made].map((address) => [address, null]));
    this.#made.clear();
    await this.#client.patch(PLACE, { type: "merge", body: { spec: { allocations } } });
  }
}

/**
 * A lease around the same: whoever wants an address becomes the holder of a Lease, reads and writes the pool's object,
 * and gives the Lease back. Who finds it held looks again after `retryMs` and up to 1.2 times as much more.
 */
export class LeaseAround implements Contender {
  readonly #list: OneObject;
  readonly #box: ReturnType<typeof kubeLeaseLock>;
  readonly #retryMs: number;

  constructor(connection: Connection, retryMs: number) {
    this.#list = new OneObject(connection);
    this.#box = kubeLeaseLock(connection, PLACE);
    this.#retryMs = retryMs;
  }

  async take(name: string, signal: AbortSignal): Promise<number | undefined> {
    for (let again = 0; !signal.aborted; again++) {
      const held = await this.#acquire(name);
      if (held !== undefined) {
        const written = await this.#list.write(await this.#list.read(), name);
        await this.#box.replace(held, { ...held.record, holder: "", durationMs: 1_000 });
        if (!written) throw new Error("somebody wrote who did not hold the lease");
        return again;
      }
      const ms = this.#retryMs * (1 + LEASE_JITTER * Math.random());
      await pause(ms, undefined, { signal }).catch(() => {});
    }
    return undefined;
  }

  async #acquire(holder: string): Promise<ObservedLease | undefined> {
    const now = Date.now();
    const record = { holder, durationMs: 15_000, acquiredAt: now, renewedAt: now, transitions: 0 };
    const seen = await this.#box.read();
    if (seen === undefined) return await this.#box.create(record);
    return seen.record.holder === "" ? await this.#box.replace(seen, record) : undefined;
  }

  async clear(): Promise<void> {
    await this.#list.clear();
  }
}
