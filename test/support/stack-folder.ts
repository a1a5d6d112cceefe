// SPDX-License-Identifier: Apache-2.0
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Writable } from "node:stream";
import { setTimeout as pause } from "node:timers/promises";
import { type Claim, claimKey } from "../../allocator/model/claim.ts";
import { listed } from "../../allocator/store/contract/subject.ts";
import { type EmbeddedBackend, withEmbeddedBackend } from "../../cli/backend/embedded-backend.ts";
import { run as runBerthctl } from "../../cli/run.ts";
import type { CommandContext } from "../../cli/terminal/command.ts";
import { createClock } from "../../system/clock.ts";
import { createRandom } from "../../system/random.ts";
import { type Ended, run } from "./process.ts";
import { commandFolder } from "./programs.ts";

const PENDING_MS = 3_000;
export const BERTHCTL = join(commandFolder(), "berthctl");

/** Where a stack's webhook is, the PEM of the authority that its certificate is checked against, and a client's. */
export interface Endpoint {
  readonly url: string;
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
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
    const file: { webhook: string; ca: string; cert: string; key: string } = JSON.parse(
      readFileSync(join(this.dataDir, "stack.json"), "utf8"),
    );
    const [ca, cert, key] = [file.ca, file.cert, file.key].map((path) => readFileSync(path, "utf8"));
    return { url: file.webhook, ca: ca ?? "", cert: cert ?? "", key: key ?? "" };
  }

  /** Runs `berthctl ... --data DIR`. */
  async berthctl(...args: readonly string[]): Promise<Ended> {
    return await run(BERTHCTL, [...args, "--data", this.dataDir], { env: { PATH: "/usr/bin:/bin" } });
  }

  /**
   * What `berthctl check` finds, for a message; empty when the books are in order. What it calls pending is work that
   * is just being done, and has a moment to end.
   */
  async findings(): Promise<string> {
    for (const until = Date.now() + PENDING_MS; ; await pause(20)) {
      const found = await this.#check();
      if (!found.startsWith("pending") || Date.now() > until) return found;
    }
  }

  async #check(): Promise<string> {
    const printed: string[] = [];
    const scene = sceneOf(this.dataDir, printed);
    const code = await runBerthctl(["check", "-o", "json"], scene);
    return describeFindings(code, printed.join(""));
  }

  /** Reads records, objects and journal, whether the stack runs or not. */
  async read<T>(look: (ledger: EmbeddedBackend) => Promise<T>): Promise<T> {
    return await withEmbeddedBackend(sceneOf(this.dataDir, []), "read", look);
  }

  async claim(key: string): Promise<Claim | undefined> {
    return await this.read(async ({ store }) => (await store.get("claim", key))?.record);
  }

  /** Addresses that are taken -> namespace/name of the claim. Those that cool down are not in it. */
  async holders(): Promise<Readonly<Record<string, string>>> {
    return await this.read(async ({ store }) => {
      const taken = (await listed(store, "reservation")).filter(
        ({ record }) => record.releasedAt === undefined,
      );
      return Object.fromEntries(taken.map(({ record }) => [record.address, claimKey(record.claim)]));
    });
  }

  /** Addresses of all claims of a namespace: name -> addresses. */
  async claims(namespace: string): Promise<Readonly<Record<string, string>>> {
    return await this.read(async ({ store }) => {
      const own = (await listed(store, "claim")).filter(({ record }) => record.namespace === namespace);
      return Object.fromEntries(own.map(({ record }) => [record.name, record.addresses.join(",")]));
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
    return await this.read(async ({ store, admitted: objects, attachments }) => {
      const kept: unknown[] = [...attachments()];
      for (const kind of ["pool", "claim", "reservation"] as const) kept.push(...(await listed(store, kind)));
      for (const kind of ["Namespace", "Pod", "StatefulSet", "Deployment"])
        kept.push(await objects.objects(kind));
      return JSON.stringify(kept, (_, value) => (typeof value === "bigint" ? String(value) : value), 1);
    });
  }
}

/** What commands of berthctl need, where they run in this process; `printed` gets what they print. */
function sceneOf(dataDir: string, printed: string[]): CommandContext {
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
  const lines = report.findings.map(({ severity, message }) => `${severity}: ${message}`);
  return lines.sort().join("\n"); // defects first
}

/** Makes the folder, in which the file of pools is all that there is yet. */
async function prepareFolder({ manifests = [] }: TestStackOptions): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "berth-stack-"));
  const documents = manifests.map((manifest) => JSON.stringify(manifest));
  await writeFile(join(folder, "pools.yaml"), documents.join("\n---\n"));
  return folder;
}

/** Starts a stack in a folder of its own; one that does not start leaves nothing behind. */
export async function startIn<S extends { start(): Promise<void>; remove(): Promise<void> }>(
  options: TestStackOptions,
  make: (folder: string) => S,
): Promise<S> {
  const stack = make(await prepareFolder(options));
  try {
    await stack.start();
  } catch (error) {
    await stack.remove();
    throw error;
  }
  return stack;
}
