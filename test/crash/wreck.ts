// SPDX-License-Identifier: Apache-2.0
import { copyFileSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { openDatabase } from "../../allocator/store/sqlite/database.ts";
import { adopt } from "../../ipam-plugin/agent/journal/adopt.ts";
import { ApiServer, type Kept } from "../support/api-server.ts";
import { namespace, pod, pool } from "../support/manifests.ts";
import { networkOf, Runtime, type Sandbox, sandboxOf } from "../support/runtime.ts";
import { ChildStack } from "../support/stack.ts";

const HEADER = 32;
const FRAME = 24 + 4096;

/** Something that was answered, and how long the log was then: what makes it true is before. */
export interface Answered {
  readonly pod: string;
  readonly address: string;
  /** Absent: the pod was admitted. Otherwise this sandbox of it was attached. */
  readonly sandbox?: Sandbox;
  readonly logLength: number;
}

/** A stack that was killed after it had answered this and that, and the ways to damage what it left. */
export class Wreck {
  readonly stack: ChildStack;
  readonly answered: readonly Answered[];
  /** The -wal as it was left. */
  readonly log: Buffer;
  readonly #backup: string;

  private constructor(stack: ChildStack, answered: readonly Answered[]) {
    this.stack = stack;
    this.answered = answered;
    this.log = readFileSync(`${this.database}-wal`);
    this.#backup = mkdtempSync(join(tmpdir(), "berth-backup-"));
    copyFileSync(this.database, join(this.#backup, "berth.db"));
  }

  static async make(pods: number): Promise<Wreck> {
    const manifests = [namespace("shop"), pool("db", ["10.20.0.0/24"])];
    const stack = await ChildStack.start({ manifests });
    const api = new ApiServer(stack.endpoint);
    try {
      const answered: Answered[] = [];
      for (let i = 0; i < pods; i++) answered.push(...(await live(stack, api, i)));
      await stack.kill9();
      return new Wreck(stack, answered);
    } catch (error) {
      await stack.remove();
      throw error;
    } finally {
      api.close();
    }
  }

  get database(): string {
    return join(this.stack.dataDir, "berth.db");
  }

  /** Offsets behind the last frame of each transaction. */
  get commits(): readonly number[] {
    const frames = Math.floor((this.log.length - HEADER) / FRAME);
    const starts = Array.from({ length: frames }, (_, i) => HEADER + i * FRAME);
    return starts.filter((at) => this.log.readUInt32BE(at + 4) !== 0).map((at) => at + FRAME);
  }

  /** Puts the files back as the killed stack left them, or with this log. */
  restore(log: Buffer = this.log): void {
    copyFileSync(join(this.#backup, "berth.db"), this.database);
    writeFileSync(`${this.database}-wal`, log);
    rmSync(`${this.database}-shm`, { force: true });
  }

  /** Nothing says any more what has served, as after a boot: what is there now is older than that. */
  forgetBoot(): void {
    rmSync(`${this.stack.socket}.journal`, { force: true });
  }

  /** A person lets what is there serve, as docs/recovery.md says. */
  async adopt(): Promise<void> {
    const bootId = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
    const { socket: socketPath } = this.stack;
    const runtimeRecords = async () => [];
    await adopt({ database: this.database, socketPath, bootId, confirmed: true, runtimeRecords });
  }

  /** Opens the files as a stack does, which reads and ends the log. */
  open(): void {
    openDatabase(this.database).close();
  }

  /** Changes records by hand, as only a broken disk or a person does. */
  edit(...statements: readonly string[]): void {
    const database = new DatabaseSync(this.database);
    try {
      for (const statement of statements) database.exec(statement);
    } finally {
      database.close();
    }
  }

  /** What was answered until the log had that length, and is not so. */
  async lost(until: number): Promise<readonly string[]> {
    const claims = await this.stack.claims("shop");
    const attached = await this.stack.read(async ({ attachments }) =>
      attachments().map(({ containerID, result }) => `${containerID} ${result.addresses[0]?.address}`),
    );
    return this.answered
      .filter(({ logLength }) => logLength <= until)
      .filter(({ pod: name, address, sandbox }) =>
        sandbox === undefined
          ? claims[name] !== address
          : !attached.includes(`${sandbox.containerID} ${address}`),
      )
      .map(({ pod: name, sandbox }) => `${name} ${sandbox === undefined ? "claim" : "attachment"}`);
  }

  async remove(): Promise<void> {
    rmSync(this.#backup, { recursive: true, force: true });
    await this.stack.remove();
  }
}

async function live(stack: ChildStack, api: ApiServer, i: number): Promise<readonly Answered[]> {
  const [name, address] = [`p${i}`, `10.20.0.${10 + i}`];
  const logLength = () => statSync(join(stack.dataDir, "berth.db-wal")).size;
  const kept: Kept = await api.create(pod("shop", name, { "berth.dev/ips": address }));
  const admitted = { pod: name, address, logLength: logLength() };
  const sandbox = sandboxOf(kept);
  await new Runtime({ socket: stack.socket, network: networkOf() }).attach(sandbox);
  return [admitted, { pod: name, address, sandbox, logLength: logLength() }];
}

/** Why a stack does not start on what is there. */
export async function whyNot(stack: ChildStack): Promise<string> {
  const started = await stack.start().then(
    () => "it started",
    (error: Error) => error.message,
  );
  await stack.kill9();
  return started;
}
