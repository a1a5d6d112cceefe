// SPDX-License-Identifier: Apache-2.0
import type { ChildProcess } from "node:child_process";
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import { type Claim, claimKey } from "../../allocator/claim.ts";
import { silent } from "../../allocator/ports.ts";
import type { Scene } from "../../cli/command.ts";
import { type Ledger, withLedger } from "../../cli/ledger.ts";
import { run as runBerthctl } from "../../cli/run.ts";
import { type Stack, startStack } from "../../cli/stack.ts";
import { createClock } from "../../system/clock.ts";
import { createRandom } from "../../system/random.ts";
import { LeapingClock } from "./leaping-clock.ts";
import { type Ended, type Started, start } from "./process.ts";

const BERTHCTL = fileURLToPath(new URL("../../build/berthctl", import.meta.url));

/** Where a stack's webhook is, and the PEM of the authority that its certificate is checked against. */
export interface Endpoint {
  readonly url: string;
  readonly ca: string;
}

export interface TestStackOptions {
  /** Manifests of pools and namespaces that the stack applies when it starts. */
  readonly manifests?: readonly object[];
}

/** A folder of a stack: its data, its socket and its pools. */
export abstract class StackFolder {
  readonly folder: string;
  readonly dataDir: string;
  readonly socket: string;
  readonly poolsFile: string;

  protected constructor(folder: string) {
    this.folder = folder;
    this.dataDir = join(folder, "data");
    this.socket = join(folder, "agent.sock");
    this.poolsFile = join(folder, "pools.yaml");
  }

  /** From what the running stack tells others about itself. */
  get endpoint(): Endpoint {
    const file: { webhook: string; ca: string } = JSON.parse(
      readFileSync(join(this.dataDir, "stack.json"), "utf8"),
    );
    return { url: file.webhook, ca: readFileSync(file.ca, "utf8") };
  }

  /** Runs `berthctl ... --data DIR`. */
  async berthctl(...args: readonly string[]): Promise<Ended> {
    return await start(BERTHCTL, [...args, "--data", this.dataDir], { env: { PATH: "/usr/bin:/bin" } }).ended;
  }

  /** What `berthctl check` finds, for a message; empty when the books are in order. */
  async findings(): Promise<string> {
    const printed: string[] = [];
    const scene = sceneOf(this.dataDir, printed);
    const code = await runBerthctl(["check", "-o", "json"], scene);
    return describeFindings(code, printed.join(""));
  }

  /** Reads records, objects and journal, whether the stack runs or not. */
  async read<T>(look: (ledger: Ledger) => Promise<T>): Promise<T> {
    return await withLedger(sceneOf(this.dataDir, []), "read", look);
  }

  async claim(key: string): Promise<Claim | undefined> {
    return await this.read(async ({ store }) => (await store.get("claim", key))?.record);
  }

  /** Addresses that are taken -> namespace/name of the claim. Those that cool down are not in it. */
  async holders(): Promise<Readonly<Record<string, string>>> {
    return await this.read(async ({ store }) => {
      const holders: Record<string, string> = {};
      for await (const { record } of store.list("reservation")) {
        if (record.releasedAt === undefined) holders[record.address] = claimKey(record.claim);
      }
      return holders;
    });
  }

  /** Addresses of all claims of a namespace: name -> addresses. */
  async claims(namespace: string): Promise<Readonly<Record<string, string>>> {
    return await this.read(async ({ store }) => {
      const claims: Record<string, string> = {};
      for await (const { record } of store.list("claim")) {
        if (record.namespace === namespace) claims[record.name] = record.addresses.join(",");
      }
      return claims;
    });
  }

  /** Live ones, by container id. */
  async attachedContainers(): Promise<readonly string[]> {
    return await this.read(async ({ attachments }) =>
      attachments()
        .map(({ containerID }) => containerID)
        .sort(),
    );
  }

  /** Everything that is kept, as text to compare. */
  async dump(): Promise<string> {
    return await this.read(async ({ store, shelf, attachments }) => {
      const kept: unknown[] = [...attachments()];
      for (const kind of ["pool", "claim", "reservation"] as const) {
        for await (const stored of store.list(kind)) kept.push(stored);
      }
      for (const kind of ["Namespace", "Pod", "StatefulSet", "Deployment"])
        kept.push(await shelf.objects(kind));
      return JSON.stringify(kept, (_, value) => (typeof value === "bigint" ? String(value) : value), 1);
    });
  }
}

/** What commands of berthctl need, where they run in this process; `printed` gets what they print. */
function sceneOf(dataDir: string, printed: string[]): Scene {
  const stream = new Writable({
    write: (chunk, _encoding, done) => {
      printed.push(String(chunk));
      done();
    },
  });
  const io = {
    stdout: stream,
    stderr: stream,
    stdin: async () => "",
    clock: createClock(),
    random: createRandom(),
    uuid: randomUUID,
    ending: () => new AbortController().signal,
  };
  return { io, dataDir, user: "test" };
}

function describeFindings(code: number, text: string): string {
  if (code !== 0) return `berthctl check exits with ${code}:\n${text}`;
  const report: { findings: readonly { severity: string; message: string }[] } = JSON.parse(text);
  return report.findings.map(({ severity, message }) => `${severity}: ${message}`).join("\n");
}

async function prepareFolder({ manifests = [] }: TestStackOptions): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "berth-stack-"));
  const documents = manifests.map((manifest) => JSON.stringify(manifest));
  await writeFile(join(folder, "pools.yaml"), documents.join("\n---\n"));
  return folder;
}

/** `berthctl up` as a process of its own, which can be stopped, killed and started again on the same data. */
export class ChildStack extends StackFolder {
  #running: Started | undefined;

  static async start(options: TestStackOptions = {}): Promise<ChildStack> {
    const stack = new ChildStack(await prepareFolder(options));
    try {
      await stack.start();
    } catch (error) {
      await stack.remove();
      throw error;
    }
    return stack;
  }

  async start(): Promise<void> {
    const flags = ["--data", this.dataDir, "--socket", this.socket, "--webhook-port", "0"];
    const running = start(BERTHCTL, ["up", ...flags, "--pools", this.poolsFile, "--log-level", "warn"], {
      env: { PATH: "/usr/bin:/bin" },
    });
    this.#running = running;
    const early = running.ended.then(({ rc, stderr }) => {
      throw new Error(`berthctl up ended with ${rc} before it was ready:\n${stderr}`);
    });
    await Promise.race([ready(running.child), early]);
    early.catch(() => {}); // it will end some time
  }

  /** As an init system stops it; throws unless it ends by itself, with success. */
  async stop(): Promise<void> {
    const { rc, signal, stderr } = await this.#signal("SIGTERM");
    if (rc !== 0) throw new Error(`berthctl up ended with ${rc} (${signal}):\n${stderr}`);
  }

  /** As the kernel does when memory is short: nothing of the process gets to run again. */
  async kill9(): Promise<void> {
    await this.#signal("SIGKILL");
  }

  async #signal(signal: NodeJS.Signals): Promise<Ended> {
    const running = this.#running;
    if (running === undefined) throw new Error("the stack does not run");
    this.#running = undefined;
    running.child.kill(signal);
    return await running.ended;
  }

  /** Ends it, however it is, and removes its folder. */
  async remove(): Promise<void> {
    if (this.#running !== undefined) await this.kill9();
    await rm(this.folder, { recursive: true, force: true });
  }
}

/** Resolves when it prints that it serves; never, when it does not. */
function ready({ stdout }: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    let printed = "";
    stdout?.on("data", (text: string) => {
      printed += text;
      if (printed.includes("ready\n")) resolve();
    });
  });
}

/** The same stack in this process, with a clock that can leap. */
export class TimedStack extends StackFolder {
  readonly clock = new LeapingClock();
  #stack: Stack | undefined;

  static async start(options: TestStackOptions = {}): Promise<TimedStack> {
    const stack = new TimedStack(await prepareFolder(options));
    try {
      await stack.start();
    } catch (error) {
      await stack.remove();
      throw error;
    }
    return stack;
  }

  async start(): Promise<void> {
    this.#stack = await startStack({
      dataDir: this.dataDir,
      socketPath: this.socket,
      poolsFile: this.poolsFile,
      clock: this.clock,
      random: createRandom(),
      log: silent,
    });
  }

  /** Leaps until the look finds something other than undefined; the time that passed is at most `withinMs`. */
  async passTime<T>(what: string, withinMs: number, look: () => Promise<T | undefined>): Promise<T> {
    for (let passed = 0; ; passed += STEP_MS) {
      const found = await look();
      if (found !== undefined) return found;
      if (passed + STEP_MS > withinMs)
        throw new Error(`did not happen within ${withinMs / 1000} s of its time: ${what}`);
      await this.clock.leap(STEP_MS);
    }
  }

  async stop(): Promise<void> {
    await this.#stack?.close();
    this.#stack = undefined;
  }

  async remove(): Promise<void> {
    await this.stop();
    await rm(this.folder, { recursive: true, force: true });
  }
}

const STEP_MS = 5_000;
