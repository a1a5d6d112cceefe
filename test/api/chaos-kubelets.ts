// SPDX-License-Identifier: Apache-2.0
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import type { Run } from "../cni/plugin.ts";
import { sandbox as sandboxOf } from "./agent-cluster.ts";
import type { AgentNode } from "./agent-node.ts";
import { type ChaosPod, PATIENCE_MS } from "./chaos-api.ts";
import type { ExpectedUse, Sandbox } from "./chaos-expected.ts";
import type { ChaosTally } from "./chaos-tally.ts";

/** A sandbox, and the pod whose it is. */
export interface Box extends Sandbox {
  readonly of: ChaosPod;
}

/** kubelet's 6 to 15 s, in less time. */
const RETRY_MS = 300;
/** What the configuration of the callers names. */
const NETWORK = "net";

/** What the kubelets and runtimes of the nodes ask of build/berth. */
export class ChaosKubelets {
  readonly #nodes: ReadonlyMap<string, AgentNode>; // name -> node
  readonly #expected: ExpectedUse;
  readonly #tally: ChaosTally;
  readonly #late = new Set<Promise<void>>();
  #boxes = 0;
  #longestMs = 0;

  constructor(nodes: ReadonlyMap<string, AgentNode>, expected: ExpectedUse, tally: ChaosTally) {
    this.#nodes = nodes;
    this.#expected = expected;
    this.#tally = tally;
  }

  /** A sandbox for the pod: each try is another container, and what failed is taken down. */
  async up(pod: ChaosPod, node: string): Promise<Box> {
    let said = "";
    for (const until = Date.now() + PATIENCE_MS; Date.now() < until; await pause(RETRY_MS)) {
      const id = this.newId();
      const run = await this.add(pod, node, id);
      if (run.rc === 0) return this.#entered(run, { id, node, of: pod });
      said = wordsOf(run);
      this.#tally.note(`ADD refused with ${codeOf(run)}`);
      this.#expected.tell(`refused ${id} of ${pod.name} ${pod.uid} on ${node}: ${said}`);
      await this.#del(pod, node, { id });
    }
    throw new Error(`pod ${pod.name} ${pod.uid} never came up on ${node}: ${said}`);
  }

  /** How long the longest ADD took, in whole milliseconds. */
  get longestMs(): number {
    return Math.round(this.#longestMs);
  }

  newId(): string {
    return `c${++this.#boxes}`;
  }

  /** One ADD, whatever it gives. */
  async add(pod: ChaosPod, node: string, id: string): Promise<Run> {
    const netns = this.#netns(node, id);
    mkdirSync(dirname(netns), { recursive: true });
    writeFileSync(netns, "");
    const began = performance.now();
    const { runtime } = this.#on(node);
    const run = await runtime.call("ADD", sandboxOf(pod, id, { netns }));
    this.#longestMs = Math.max(this.#longestMs, performance.now() - began);
    if (run.rc === 0) this.#record(node, id, { netns, result: JSON.parse(run.stdout) });
    return run;
  }

  /** The sandbox is dead, and its runtime says so so many times. */
  async down(box: Box, times = 1): Promise<void> {
    this.#expected.down(box);
    for (let n = 0; n < times; n++) await this.#del(box.of, box.node, { id: box.id, late: n > 0 });
  }

  /** The sandbox died with everything around it: nobody was told. */
  lost(box: Box): void {
    this.#expected.down(box);
    rmSync(this.#netns(box.node, box.id), { force: true });
  }

  /** A DEL of a sandbox that is gone for long, without its netns. */
  delLater(box: Box, afterMs: number): void {
    const deleting = (async () => {
      await pause(afterMs);
      await this.#del(box.of, box.node, { id: box.id, late: true });
    })();
    this.#late.add(deleting);
    void deleting
      .catch((error: unknown) => this.#expected.wrong(`DEL of ${box.id} cannot be sent: ${String(error)}`))
      .finally(() => this.#late.delete(deleting));
  }

  /** Waits for the DELs that are under way. */
  async settled(): Promise<void> {
    await Promise.all(this.#late);
  }

  #entered(run: Run, box: Pick<Box, "id" | "node" | "of">): Box {
    const { ips = [] }: { ips?: readonly { readonly address: string }[] } = JSON.parse(run.stdout);
    const addresses = ips.map(({ address }) => address.slice(0, address.indexOf("/")));
    const whole: Box = { ...box, pod: `${box.of.name} ${box.of.uid}`, addresses };
    this.#tally.note("ADD");
    this.#expected.up(whole, box.of.assigned);
    return whole;
  }

  async #del(
    pod: ChaosPod,
    node: string,
    { id, late = false }: { id: string; late?: boolean },
  ): Promise<void> {
    const netns = this.#netns(node, id);
    const run = await this.#on(node).runtime.call("DEL", sandboxOf(pod, id, { netns: late ? "" : netns }));
    rmSync(netns, { force: true });
    rmSync(this.#recordPath(node, id), { force: true });
    this.#tally.note("DEL");
    if (run.rc !== 0 || run.stdout + run.stderr !== "")
      this.#expected.wrong(`DEL of ${id} of ${pod.name} on ${node} failed: ${JSON.stringify(run)}`);
  }

  /** As libcni does once the ADD of the whole network has ended. */
  #record(node: string, id: string, said: { readonly netns: string; readonly result: unknown }): void {
    const config = { name: NETWORK, plugins: [{ type: "bridge", ipam: { type: "berth" } }] };
    const record = {
      ...{ kind: "cniCacheV1", containerId: id, ifName: "eth0", networkName: NETWORK, ...said },
      config: Buffer.from(JSON.stringify(config)).toString("base64"),
    };
    const path = this.#recordPath(node, id);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, JSON.stringify(record));
  }

  #recordPath(node: string, id: string): string {
    return join(this.#on(node).folder, "results", `${NETWORK}-${id}-eth0`);
  }

  /** A file in its place: what the agent looks at is whether it is there. */
  #netns(node: string, id: string): string {
    return join(this.#on(node).folder, "netns", id);
  }

  #on(node: string): AgentNode {
    const found = this.#nodes.get(node);
    if (found === undefined) throw new Error(`there is no node ${node}`);
    return found;
  }
}

export function codeOf({ stdout }: Run): number {
  const { code = 0 }: { code?: number } = JSON.parse(stdout);
  return code;
}

function wordsOf({ stdout, stderr }: Run): string {
  return `${stdout}${stderr}`.replaceAll(/\s+/g, " ");
}
