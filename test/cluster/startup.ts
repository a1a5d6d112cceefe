// SPDX-License-Identifier: Apache-2.0
// Starts of many pods at once, timed from outside.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { partOf } from "../api/binaries.ts";
import type { Lab } from "./lab.ts";

/** One start of all pods. Times in milliseconds. */
export interface Start {
  /** From the command to the last pod that is ready. */
  readonly total: number;
  /** Of each pod, from its first event to that in which it is ready. */
  readonly pods: readonly number[];
  /** By pod: its first address. */
  readonly addresses: ReadonlyMap<string, string>;
}

interface Life {
  readonly name: string;
  readonly seen: number;
  ready?: number;
  address: string;
}

/** Until a watch that ended is begun again. */
const AGAIN_MS = 200;
/** Until that has told what is there. */
const TOLD_MS = 15_000;

const FORMAT =
  '-o=jsonpath={.type}{" "}{.object.metadata.name}{" "}{.object.metadata.uid}{" "}' +
  '{.object.status.podIP}{" "}{.object.status.conditions[?(@.type=="Ready")].status}{"\\n"}';

/**
 * Watches the pods of a label, and notes when kubectl says what. An API server ends a watch that does not keep up with two hundred
 * pods, and kubectl ends with it and without a word: another one goes on from what is there.
 */
export class PodWatch {
  #lives = new Map<string, Life>(); // UID -> its life
  /** What was known when the last watch ended. */
  #before: ReadonlyMap<string, Life> = new Map();
  readonly #label: string;
  readonly #lab: Lab;
  #child: ReturnType<typeof spawn> | undefined;
  #closed = false;

  constructor(lab: Lab, label: string) {
    this.#lab = lab;
    this.#label = label;
    this.#start();
  }

  close(): void {
    this.#closed = true;
    this.#child?.kill("SIGKILL");
  }

  #start(): void {
    if (this.#closed) return;
    const { namespace, environment, cluster } = this.#lab;
    // what is there before kubectl watches is told first
    const flags = ["--namespace", namespace, "-l", this.#label, "--watch", "--output-watch-events", FORMAT];
    const env = { ...environment, KUBECACHEDIR: `${cluster.state.path}/kubectl` };
    const child = spawn(partOf("kubectl"), ["get", "pods", ...flags], {
      env,
      stdio: ["ignore", "pipe", "inherit"],
    });
    this.#child = child;
    if (child.stdout !== null)
      createInterface({ input: child.stdout }).on("line", (line) => this.#note(line));
    child.once("close", (code) => {
      if (this.#closed) return;
      console.log(`a watch of ${this.#label} ended with ${code} and is begun again`);
      this.#before = this.#lives;
      this.#lives = new Map();
      setTimeout(() => this.#start(), AGAIN_MS);
      // by then it has told what is there; what it has not is gone
      setTimeout(() => {
        this.#before = new Map();
      }, TOLD_MS).unref();
    });
  }

  /** Pods that are there; deleted ones are forgotten. */
  get count(): number {
    return this.#lives.size || this.#before.size;
  }

  /** Pods that are ready. */
  get ready(): readonly Required<Life>[] {
    return [...this.#lives.values()].filter((life): life is Required<Life> => life.ready !== undefined);
  }

  #note(line: string): void {
    const [type = "", name = "", uid = "", address = "", ready = ""] = line.split(" ");
    if (type === "DELETED") {
      this.#lives.delete(uid);
      return;
    }
    const life = this.#lives.get(uid) ?? this.#before.get(uid) ?? { name, seen: performance.now(), address };
    life.address = address;
    if (ready === "True") life.ready ??= performance.now();
    this.#lives.set(uid, life);
  }
}

/** Scales a StatefulSet up from nothing, and waits until all of its pods are ready. */
export async function startAll(lab: Lab, watch: PodWatch, set: string, count: number): Promise<Start> {
  const begin = performance.now();
  await lab.must(["scale", `statefulset/${set}`, `--replicas=${count}`]);
  await lab.until(`${count} pods start`, async () => watch.ready.length === count, 600_000);
  const { ready } = watch;
  return {
    total: Math.max(...ready.map((life) => life.ready)) - begin,
    pods: ready.map((life) => life.ready - life.seen),
    addresses: new Map(ready.map(({ name, address }) => [name, address])),
  };
}

export async function stopAll(lab: Lab, watch: PodWatch, set: string): Promise<void> {
  await lab.must(["scale", `statefulset/${set}`, "--replicas=0"]);
  await lab.until("the pods end", async () => watch.count === 0, 600_000);
}

export function quantile(values: readonly number[], q: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))] ?? 0;
}
