// SPDX-License-Identifier: Apache-2.0
// What kubelets and runtimes do with the pods of the nodes, by the API server's objects and calls of build/berth.
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { messageOf } from "../../allocator/base/errors.ts";
import type { Connection } from "../../kube/api/connection.ts";
import { type KubeItem, PODS } from "../../kube/api/resource.ts";
import { Reflector } from "../../kube/watch/reflector.ts";
import { hostDeps } from "../support/host-deps.ts";
import { sandbox } from "./agent-cluster.ts";
import type { AgentNode } from "./agent-node.ts";
import { forceDelete, hasEnded, merge } from "./day-calls.ts";
import { ENDS, FAILS, type Json, KEEPS, NAMESPACE_OF_DAY } from "./day-objects.ts";

/** It looks again after this at what its watch has told it. */
const LOOK_MS = 250;
/** A sandbox that could not be made is tried again after this. */
const AGAIN_MS = 1_000;
/** A container that is to end does so after this. */
const WORK_MS = 1_500;
/** Calls of the runtime at a time. */
const AT_ONCE = 8;

/** What all kubelets of a day have seen. */
export interface DayBook {
  /** Pod that keeps its addresses -> those that it had first. */
  readonly kept: Map<string, string>;
  /** Pods of which somebody made another one meanwhile. */
  readonly excused: Set<string>;
  /** Pod and what is wrong with it. */
  readonly wrongs: { readonly pod: string; readonly what: string }[];
}

/** What is said of the kubelet itself. */
const LOOK = "kubelet";

interface Box {
  readonly id: string;
  readonly addresses: string;
}

/** One node's kubelet: a sandbox for each of its pods that has not ended, and none for the others. */
export class DayKubelet {
  readonly #connection: Connection;
  readonly #node: AgentNode;
  readonly #stop = new AbortController();
  readonly #boxes = new Map<string, Box>(); // uid -> its sandbox
  readonly #busy = new Set<string>(); // uid
  readonly #said = new Map<string, string>(); // pod -> why it has no sandbox
  readonly #tried = new Map<string, number>(); // uid -> when its last ADD failed, monotonic
  readonly #expected: DayBook;
  /** Of the node, as kubelets have them. */
  readonly #pods: Reflector<KubeItem>;
  #calls = 0;
  #count = 0;
  #off = false;
  readonly #running: Promise<void>;

  constructor(connection: Connection, node: AgentNode, expected: DayBook) {
    this.#connection = connection;
    this.#node = node;
    this.#expected = expected;
    this.#pods = new Reflector({
      ...{ connection, resource: PODS, project: (item: KubeItem) => item },
      selection: { namespace: NAMESPACE_OF_DAY, fieldSelector: `spec.nodeName=${node.name}` },
      ...hostDeps(),
    });
    this.#running = this.#run();
  }

  get name(): string {
    return this.#node.name;
  }

  /** Sandboxes that were made. */
  get made(): number {
    return this.#count;
  }

  /** Why pods of the node wait. */
  get waiting(): readonly string[] {
    return [...this.#said].map(([pod, why]) => `${pod}: ${why}`);
  }

  /** Addresses of the sandboxes that live. */
  addresses(): readonly string[] {
    return [...this.#boxes.values()].flatMap(({ addresses }) => addresses.split(","));
  }

  /** The node loses its power: every sandbox is gone, and nobody is told. Its agent starts with it. */
  async reboot(): Promise<void> {
    this.#off = true;
    while (this.#busy.size > 0) await pause(50);
    await this.#node.stop("SIGKILL");
    for (const { id } of this.#boxes.values()) rmSync(this.#netns(id), { force: true });
    this.#boxes.clear();
    await this.#node.start();
    this.#off = false;
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop;
    const watching = this.#pods.run(signal);
    while (!signal.aborted) {
      this.#said.delete(LOOK);
      if (!this.#off && this.#pods.isSynced) this.#look();
      await pause(LOOK_MS, undefined, { signal }).catch(() => {});
    }
    await watching;
    while (this.#busy.size > 0) await pause(50);
  }

  #look(): void {
    const items = [...this.#pods.all()].map(([, item]) => item);
    const there = new Set(items.map(({ metadata }) => metadata.uid));
    for (const [uid, box] of this.#boxes) {
      if (!there.has(uid)) this.#begin(uid, () => this.#down({ name: "gone", uid }, box));
    }
    for (const item of items) this.#begin(item.metadata.uid, () => this.#serve(item));
    const names = new Set(items.map(({ metadata }) => metadata.name));
    for (const pod of this.#said.keys()) if (!names.has(pod)) this.#said.delete(pod);
    for (const uid of this.#tried.keys()) if (!there.has(uid)) this.#tried.delete(uid);
  }

  #begin(uid: string, work: () => Promise<void>): void {
    if (this.#off || this.#busy.has(uid)) return;
    this.#busy.add(uid);
    void work()
      .catch((error: unknown) => this.#said.set(LOOK, messageOf(error)))
      .finally(() => this.#busy.delete(uid));
  }

  async #serve(item: KubeItem): Promise<void> {
    const { name, uid, deletionTimestamp } = item.metadata;
    const box = this.#boxes.get(uid);
    if (deletionTimestamp !== undefined || hasEnded(item)) {
      this.#said.delete(name);
      if (box !== undefined) await this.#down({ name, uid }, box);
      if (deletionTimestamp !== undefined)
        await forceDelete(this.#connection, PODS, { namespace: NAMESPACE_OF_DAY, name }, uid);
      return;
    }
    const failed = this.#tried.get(uid) ?? Number.NEGATIVE_INFINITY;
    if (box === undefined && performance.now() - failed > AGAIN_MS) await this.#up(item);
  }

  async #up(item: KubeItem): Promise<void> {
    const { name, uid, annotations = {} } = item.metadata;
    const id = `${this.#node.name}-${++this.#count}`;
    const netns = this.#netns(id);
    mkdirSync(dirname(netns), { recursive: true });
    writeFileSync(netns, "");
    const run = await this.#call("ADD", { name, uid }, id);
    if (run.rc !== 0) {
      this.#said.set(name, `${run.stdout}${run.stderr}`.replaceAll(/\s+/g, " "));
      await this.#down({ name, uid }, { id, addresses: "" });
      this.#tried.set(uid, performance.now());
      return;
    }
    this.#said.delete(name);
    const { ips = [] }: { ips?: readonly { readonly address: string }[] } = JSON.parse(run.stdout);
    const addresses = ips.map(({ address }) => address.slice(0, address.indexOf("/"))).join(",");
    this.#boxes.set(uid, { id, addresses });
    this.#compare(name, annotations, addresses);
    await this.#report(item, addresses);
  }

  /** With what its review said, and with what the pod of the name had before. */
  #compare(name: string, annotations: Readonly<Record<string, string>>, addresses: string): void {
    const { kept, wrongs } = this.#expected;
    const assigned = annotations["berth.dev/addresses"] ?? "";
    if (addresses !== assigned)
      wrongs.push({ pod: name, what: `was admitted with ${assigned} and got ${addresses}` });
    if (annotations[KEEPS] === undefined) return;
    const first = kept.get(name) ?? addresses;
    kept.set(name, first);
    if (first !== addresses) wrongs.push({ pod: name, what: `had ${first} and has ${addresses} now` });
  }

  /** It runs and is ready; a Job's does its work, and some that are told to fail. */
  async #report(item: KubeItem, podIP: string): Promise<void> {
    const ready = { type: "Ready", status: "True" };
    await this.#status(item, { phase: "Running", podIP, podIPs: [{ ip: podIP }], conditions: [ready] });
    const { [ENDS]: ends, [FAILS]: fails } = item.metadata.annotations ?? {};
    if (ends === undefined) return;
    await pause(WORK_MS);
    const failed = fails !== undefined && this.#count % Number(fails) === 0;
    await this.#status(item, { phase: failed ? "Failed" : "Succeeded" });
  }

  async #status({ metadata: { name, uid } }: KubeItem, status: Json): Promise<void> {
    await merge(this.#connection, PODS, name, { metadata: { uid }, status });
  }

  async #down(pod: { readonly name: string; readonly uid: string }, { id }: Box): Promise<void> {
    this.#boxes.delete(pod.uid);
    const run = await this.#call("DEL", pod, id);
    rmSync(this.#netns(id), { force: true });
    if (run.rc !== 0)
      this.#expected.wrongs.push({ pod: pod.name, what: `DEL failed: ${run.stdout}${run.stderr}` });
  }

  /** A runtime does not make hundreds of sandboxes at once. */
  async #call(verb: "ADD" | "DEL", pod: { readonly name: string; readonly uid: string }, id: string) {
    while (this.#calls >= AT_ONCE) await pause(20);
    this.#calls++;
    try {
      return await this.#node.runtime.call(verb, sandbox(pod, id, { netns: this.#netns(id) }));
    } finally {
      this.#calls--;
    }
  }

  #netns(id: string): string {
    return join(this.#node.folder, "netns", id);
  }
}
