// SPDX-License-Identifier: Apache-2.0
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Writable } from "node:stream";
import type { TestContext } from "node:test";
import { noopLogger } from "../../allocator/base/ports.ts";
import { parseAddress } from "../../allocator/ip/address.ts";
import { type KubeObject, readObject } from "../../allocator/manifest/kubernetes-object.ts";
import type { Claim } from "../../allocator/model/claim.ts";
import type { Reservation } from "../../allocator/model/reservation.ts";
import type { PoolRecord } from "../../allocator/pool/pool.ts";
import { openAdmittedObjects } from "../../allocator/store/sqlite/admitted-objects.ts";
import { type Database, openDatabase } from "../../allocator/store/sqlite/database.ts";
import { openSqliteStore, type SqliteStoreDeps } from "../../allocator/store/sqlite/store.ts";
import type { Attachment } from "../../ipam-plugin/agent/journal/attachment.ts";
import { Journal } from "../../ipam-plugin/agent/journal/journal.ts";
import { ManualClock } from "../../system/testing/manual-clock.ts";
import { SeededRandom } from "../../test/support/random.ts";
import { databaseOf } from "../backend/embedded-backend.ts";
import { run } from "../run.ts";
import type { CommandContext, ExitCode } from "../terminal/command.ts";

/** A clock on which sleeping takes no time. */
class HastyClock extends ManualClock {
  override async sleep(ms: number): Promise<void> {
    this.advance(ms);
  }
}

/** An attachment of the pod's sandbox in namespace shop, as the journal has it. */
export function attachment(pod: string, address: string, claim?: string): Attachment {
  const parsed = parseAddress(address);
  if (parsed === undefined) throw new TypeError(`${address} is no address`);
  return {
    scope: { network: "net", dataDir: "/var/lib/cni/networks" },
    containerID: `sandbox-of-${pod}`,
    interface: "eth0",
    state: "attached",
    source: claim === undefined ? "ranges" : "claim",
    netns: `/run/netns/${pod}`,
    netnsSeen: false,
    pod: { namespace: "shop", name: pod, uid: `uid-of-${pod}` },
    ...(claim === undefined ? {} : { claim }),
    result: { addresses: [{ address: parsed, prefixLength: 24 }], routes: [], dns: {} },
    startNs: 1n,
    attachedAt: Date.UTC(2026, 0, 1),
    bootId: "boot-1",
    detachedAt: 0,
    deadlineNs: 0n,
    noticePending: false,
  };
}

/** What a call printed and how it ended. */
export interface Called {
  readonly code: ExitCode;
  readonly stdout: string;
  readonly stderr: string;
}

/** What a folder has in it before a test. */
export interface Contents {
  readonly pools?: readonly PoolRecord[];
  readonly claims?: readonly Claim[];
  readonly reservations?: readonly Reservation[];
  readonly attachments?: readonly Attachment[];
  readonly objects?: readonly unknown[];
}

function partsOf(database: Database, deps: SqliteStoreDeps) {
  const store = openSqliteStore(database, deps);
  return { store, admittedObjects: openAdmittedObjects(database), journal: new Journal(database) };
}

let empty: Buffer | undefined;

/** A database with all its tables and nothing in them: it is the same for all, and to make it waits a dozen times for the disk. */
function emptyDatabase(): Buffer {
  if (empty !== undefined) return empty;
  const folder = mkdtempSync(join(tmpdir(), "berthctl-empty-"));
  try {
    const database = openDatabase(databaseOf(folder));
    partsOf(database, { clock: new ManualClock(), random: new SeededRandom(), log: noopLogger });
    database.close();
    empty = readFileSync(databaseOf(folder));
    return empty;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** A data folder without a stack, and berthctl called on it. It is removed when its test is over. */
export class Folder {
  readonly dataDir: string;
  readonly clock = new HastyClock();
  #uuids = 0;
  #tokens = 0;

  private constructor(dataDir: string) {
    this.dataDir = dataDir;
  }

  /** Nothing is in it, not even a database. */
  static async empty(test: Pick<TestContext, "after">): Promise<Folder> {
    const dataDir = await mkdtemp(join(tmpdir(), "berthctl-"));
    test.after(() => rm(dataDir, { recursive: true, force: true }));
    return new Folder(dataDir);
  }

  /** As a stack that served these would have left it. */
  static async of(test: Pick<TestContext, "after">, contents: Contents): Promise<Folder> {
    const folder = await Folder.empty(test);
    await folder.#fill(contents);
    return folder;
  }

  async #fill(contents: Contents): Promise<void> {
    writeFileSync(databaseOf(this.dataDir), emptyDatabase(), { mode: 0o600 });
    const database = openDatabase(databaseOf(this.dataDir));
    const { clock, random } = this.context().io;
    const { store, admittedObjects, journal } = partsOf(database, { clock, random, log: noopLogger });
    await journal.write({ put: contents.attachments ?? [] });
    // in this order, and the disk is waited for once
    await Promise.all([
      ...(contents.pools ?? []).map((pool) => store.create("pool", pool)),
      ...(contents.claims ?? []).map((claim) => store.create("claim", claim)),
      ...(contents.reservations ?? []).map((reservation) => store.create("reservation", reservation)),
    ]);
    for (const object of contents.objects ?? []) await admittedObjects.keep(readObject(object) as KubeObject);
    await store.close();
    database.close();
  }

  /** Surroundings that print into `out`, with uuids and tokens that count from 1. */
  context(out: { stdout: string; stderr: string } = { stdout: "", stderr: "" }, stdin = ""): CommandContext {
    const into = (name: "stdout" | "stderr") =>
      new Writable({
        decodeStrings: false,
        write(text: string, _encoding, done) {
          out[name] += text;
          done();
        },
      });
    return {
      dataDir: this.dataDir,
      user: "tester",
      io: {
        stdout: into("stdout"),
        stderr: into("stderr"),
        stdin: () => Promise.resolve(stdin),
        clock: this.clock,
        random: { token: () => `token${++this.#tokens}`.padEnd(26, "a"), fraction: () => 0.5 },
        uuid: () => `uuid-${++this.#uuids}`,
        ending: () => new AbortController().signal,
      },
    };
  }

  async call(...argv: readonly string[]): Promise<Called> {
    return await this.callWith("", ...argv);
  }

  async callWith(stdin: string, ...argv: readonly string[]): Promise<Called> {
    const out = { stdout: "", stderr: "" };
    const code = await run(argv, this.context(out, stdin));
    return { code, ...out };
  }
}
