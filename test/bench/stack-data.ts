// SPDX-License-Identifier: Apache-2.0
import { mkdirSync, readFileSync } from "node:fs";
import { isRefusal } from "../../allocator/base/errors.ts";
import { noopLogger } from "../../allocator/base/ports.ts";
import { type Address, fromNumber, parseCidr } from "../../allocator/ip/address.ts";
import { readObject } from "../../allocator/manifest/kubernetes-object.ts";
import { type Claim, DEFAULT_RETENTION } from "../../allocator/model/claim.ts";
import { type AdmittedObjects, openAdmittedObjects } from "../../allocator/store/sqlite/admitted-objects.ts";
import { openDatabase } from "../../allocator/store/sqlite/database.ts";
import { openSqliteStore } from "../../allocator/store/sqlite/store.ts";
import type { Store } from "../../allocator/store/store.ts";
import { databaseOf } from "../../cli/backend/embedded-backend.ts";
import type { Attachment, Position } from "../../ipam-plugin/agent/journal/attachment.ts";
import { Journal } from "../../ipam-plugin/agent/journal/journal.ts";
import { createClock } from "../../system/clock.ts";
import { createRandom } from "../../system/random.ts";
import { type Json, statefulPod, workload } from "../support/objects.ts";

/** The name that the stacks of the bench have for their node. */
export const NODE = "bench";
/** Pods of one StatefulSet. */
const ORDINALS = 100;
/** Works that share a transaction; the store takes no more than 500 into one. */
const AT_ONCE = 500;
const BOOT_ID = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();

/** The pool that claims have their addresses from. */
export const POOL = { name: "fixed", cidr: "10.64.0.0/12" };

/** The pool that pods which ask for nothing have theirs from: the node owns blocks of it. */
export const CUT = { name: "cut", cidr: "10.96.0.0/12", blockSize: { ipv4: 22 } };

/** The n-th address of a CIDR, counted from its network address. */
export function nth(cidr: string, n: number): Address {
  const { base, family } = parseCidr(cidr) ?? { base: 0n, family: "IPv4" };
  return fromNumber(base + BigInt(n), family);
}

/** A pod whose address was reserved before it came. */
export interface FixedPod {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly address: Address;
}

/** What a stack keeps in its data folder, written by the code that writes it there; no stack may run on it. */
export class StackData {
  readonly #store: Store;
  readonly #objects: AdmittedObjects;
  readonly #journal: Journal;
  readonly #close: () => Promise<void>;
  readonly #random = createRandom();
  #works: Promise<unknown>[] = [];
  #claims = 0;
  #sets = 0;

  private constructor(made: {
    store: Store;
    objects: AdmittedObjects;
    journal: Journal;
    close: () => Promise<void>;
  }) {
    this.#store = made.store;
    this.#objects = made.objects;
    this.#journal = made.journal;
    this.#close = made.close;
  }

  /** Opens the folder's books, or begins them with the pool, for `work`. */
  static async write(dataDir: string, work: (data: StackData) => Promise<void>): Promise<void> {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 });
    const clock = createClock();
    const database = openDatabase(databaseOf(dataDir));
    const store = openSqliteStore(database, { clock, random: createRandom(), log: noopLogger });
    const close = async () => {
      await store.close();
      database.close();
    };
    const auditInput = new StackData({
      store,
      objects: openAdmittedObjects(database),
      journal: new Journal(database),
      close,
    });
    await store.create("pool", { name: POOL.name, spec: { ranges: [{ cidr: POOL.cidr }] } });
    const { name, cidr, blockSize } = CUT;
    await store.create("pool", { name, spec: { ranges: [{ cidr }], blockSize } });
    await work(auditInput);
    await auditInput.#settle();
    await auditInput.#close();
  }

  /** So many claims of StatefulSets that were admitted, each with its reservation; no pod has come yet. */
  async reserve(count: number): Promise<readonly FixedPod[]> {
    const pods: FixedPod[] = [];
    for (let left = count; left > 0; left -= ORDINALS) {
      const set = `set-${this.#sets++}`;
      const namespace = `namespace-${this.#sets % 100}`;
      await this.#keep(workload("StatefulSet", set, { namespace, uid: `uid-of-${set}`, replicas: ORDINALS }));
      for (let ordinal = 0; ordinal < Math.min(left, ORDINALS); ordinal++) {
        pods.push(await this.#reserveFor(namespace, set, ordinal));
      }
    }
    return pods;
  }

  /** The pods exist: among the admitted objects, as after their admission. */
  async admit(pods: readonly FixedPod[]): Promise<void> {
    for (const { namespace, name, uid } of pods) {
      const [set = "", ordinal = ""] = name.split(/-(?=\d+$)/);
      const annotations = { "berth.dev/pools": POOL.name, "berth.dev/claim": name };
      await this.#keep(statefulPod(set, Number(ordinal), { namespace, uid, annotations }));
    }
  }

  /** Their sandboxes run on this node. */
  async attach(pods: readonly FixedPod[], netns: string): Promise<void> {
    const put: Attachment[] = [];
    for (const pod of pods) {
      const { namespace, name, uid } = pod;
      const attachment = attachmentOf({ containerID: `sandbox-of-${name}`, address: pod.address, netns });
      put.push({
        ...attachment,
        source: "claim",
        scope: { network: "fixed", dataDir: "/var/lib/cni/networks" },
        pod: { namespace, name, uid },
        claim: `${namespace}/${name}`,
      });
      await this.#bind(pod, attachment);
    }
    await this.#journal.write({ put });
  }

  /** So many addresses of a node-local range are in use. */
  async fillRange(of: {
    cidr: string;
    count: number;
    scope: Attachment["scope"];
    netns: string;
  }): Promise<void> {
    const { cidr, count, scope, netns } = of;
    for (let i = 0; i < count; i += AT_ONCE) {
      const size = Math.min(AT_ONCE, count - i);
      const put = Array.from({ length: size }, (_, k): Attachment => {
        const made = { containerID: `before-${i + k}`, address: nth(cidr, FIRST_HOST + i + k), netns };
        return { ...attachmentOf(made), scope };
      });
      const last = put.at(-1)?.result.addresses[0]?.address;
      const positions: Position[] = last === undefined ? [] : [{ scope, rangeSet: 0, address: last }];
      await this.#journal.write({ put, positions });
    }
  }

  async #reserveFor(namespace: string, set: string, ordinal: number): Promise<FixedPod> {
    const name = `${set}-${ordinal}`;
    const address = nth(POOL.cidr, ++this.#claims);
    const nonce = this.#random.token();
    const claim: Claim = {
      namespace,
      name,
      identity: { kind: "StatefulSet", apiVersion: "apps/v1", name: set, uid: `uid-of-${set}`, ordinal },
      request: { pools: [POOL.name] },
      retention: DEFAULT_RETENTION,
      addresses: [address],
      nonce,
      admittedAt: Date.now(),
      status: {},
    };
    const reservation = { address, pool: POOL.name, claim: { namespace, name }, nonce };
    await this.#do(this.#store.create("reservation", reservation));
    await this.#do(this.#store.create("claim", claim));
    return { namespace, name, uid: `uid-of-${name}`, address };
  }

  async #bind({ namespace, name, uid }: FixedPod, { containerID, attachedAt }: Attachment): Promise<void> {
    await this.#settle();
    const seen = await this.#store.get("claim", `${namespace}/${name}`);
    if (seen === undefined) throw new Error(`${name} has no claim`);
    const binding = {
      token: "",
      podName: name,
      podUID: uid,
      node: NODE,
      interface: "eth0",
      since: attachedAt,
    };
    const bound = await this.#store.replace("claim", seen, { ...seen.record, binding });
    if (bound.kind === "conflict") throw new Error(`somebody else writes the claim of ${name}`);
    const attachment = {
      node: NODE,
      containerID,
      interface: "eth0",
      podUID: uid,
      since: attachedAt,
      detached: false,
    };
    await this.#store.report(bound.stored, { attachment });
  }

  async #keep(json: Json): Promise<void> {
    const object = readObject(json);
    if (isRefusal(object)) throw new Error(object.message);
    await this.#do(this.#objects.keep(object));
  }

  async #do(work: Promise<unknown>): Promise<void> {
    this.#works.push(work);
    if (this.#works.length >= AT_ONCE) await this.#settle();
  }

  async #settle(): Promise<void> {
    await Promise.all(this.#works);
    this.#works = [];
  }
}

/** host-local's default gateway is the first address, which it gives to nobody. */
export const FIRST_HOST = 2;

function attachmentOf(of: { containerID: string; address: Address; netns: string }): Attachment {
  return {
    scope: { network: "", dataDir: "" },
    containerID: of.containerID,
    interface: "eth0",
    state: "attached",
    source: "ranges",
    netns: of.netns,
    netnsSeen: true,
    result: { addresses: [{ address: of.address, prefixLength: 16 }], routes: [], dns: {} },
    startNs: process.hrtime.bigint(),
    attachedAt: Date.now(),
    bootId: BOOT_ID,
    detachedAt: 0,
    deadlineNs: 0n,
    noticePending: false,
  };
}
