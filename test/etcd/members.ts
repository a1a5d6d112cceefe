// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { closeSync, mkdirSync, mkdtempSync, openSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { ON_ONE_PROCESSOR, partOf, withVariables } from "../api/binaries.ts";
import { Daemon } from "../api/daemon.ts";
import { freePorts } from "../api/ports.ts";
import { patient } from "../support/eventually.ts";

/** One etcd of several that are one cluster. */
export interface Member {
  readonly name: string;
  readonly url: string;
  readonly daemon: Daemon;
}

export interface Members {
  readonly all: readonly Member[];
  readonly urls: readonly string[];
  /** The JSON gateway of the first member that answers: past what is tested. */
  ask(path: string, body: unknown): Promise<Readonly<Record<string, unknown>>>;
  /** Waits until a majority takes writes. */
  ready(): Promise<void>;
  /** Leaves no byte of the small disk free. */
  fillDisk(): void;
  /** What filled it is gone. */
  freeDisk(): void;
  /** All data of all members is lost. They start anew with nothing, as the same cluster. */
  loseAll(): Promise<void>;
  /** Ends all, and removes what they wrote. */
  close(): Promise<void>;
}

export interface MembersOptions {
  /** Three if absent. */
  readonly count?: number;
  /** The first member's data is on a disk of its own, which can be filled. Needs root. */
  readonly smallDisk?: boolean;
  /** Further flags of each. */
  readonly flags?: readonly string[];
  /** Paths of the server's certificate and its key, and of the authority of clients' certificates. */
  readonly tls?: { readonly cert: string; readonly key: string; readonly ca: string };
}

const PATIENCE_MS = 60_000;

/** Starts a cluster of etcd on free ports of this host, with its data below the folder for temporary files. */
export async function startMembers(options: MembersOptions = {}): Promise<Members> {
  const { count = 3, flags = [], tls, smallDisk = false } = options;
  const folder = mkdtempSync(join(tmpdir(), "etcd-"));
  const disk = smallDisk ? mountDisk(join(folder, "m0")) : undefined;
  const ports = await freePorts(2 * count);
  const scheme = tls === undefined ? "http" : "https";
  const places = Array.from({ length: count }, (_, i) => ({
    name: `m${i}`,
    url: `${scheme}://127.0.0.1:${ports[2 * i]}`,
    peer: `http://127.0.0.1:${ports[2 * i + 1]}`,
  }));
  const cluster = places.map(({ name, peer }) => `${name}=${peer}`).join(",");
  const secure = tls && [`--cert-file=${tls.cert}`, `--key-file=${tls.key}`, `--trusted-ca-file=${tls.ca}`];
  const all = places.map(({ name, url, peer }) => {
    mkdirSync(join(folder, name), { mode: 0o700, recursive: true });
    const command = [
      ...withVariables(ON_ONE_PROCESSOR),
      partOf("etcd"),
      ...[`--name=${name}`, `--data-dir=${join(folder, name)}`, "--unsafe-no-fsync", "--log-level=warn"],
      ...[`--listen-client-urls=${url}`, `--advertise-client-urls=${url}`],
      ...[`--listen-peer-urls=${peer}`, `--initial-advertise-peer-urls=${peer}`],
      ...[`--initial-cluster=${cluster}`, `--initial-cluster-token=${folder}`],
      ...(secure === undefined ? [] : [...secure, "--client-cert-auth"]),
      ...flags,
    ];
    return { name, url, daemon: new Daemon(name, command, join(folder, `${name}.log`)) };
  });
  for (const { daemon } of all) daemon.start();
  const members = new LocalMembers(all, folder, disk);
  try {
    if (tls === undefined) await members.ready();
    return members;
  } catch (error) {
    await members.close();
    throw error;
  }
}

/** Unary calls that all members have answered so far, as they count them. */
export async function callsOf(members: Members): Promise<number> {
  const texts = await Promise.all(
    members.urls.map(async (url) => await (await fetch(`${url}/metrics`)).text()),
  );
  const lines = texts.flatMap((text) => text.split("\n"));
  return lines
    .filter((line) => line.startsWith("grpc_server_handled_total{") && line.includes('grpc_type="unary"'))
    .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" ") + 1)), 0);
}

/** Forgets what was before now. */
export async function compact(members: Members): Promise<void> {
  const { header } = await members.ask("kv/range", { key: "AA==", limit: 1 });
  await members.ask("kv/compaction", { revision: (header as { revision: string }).revision });
}

class LocalMembers implements Members {
  readonly all: readonly Member[];
  readonly #folder: string;
  readonly #disk: string | undefined;

  constructor(all: readonly Member[], folder: string, disk: string | undefined) {
    this.all = all;
    this.#folder = folder;
    this.#disk = disk;
  }

  get urls(): readonly string[] {
    return this.all.map(({ url }) => url);
  }

  async ask(path: string, body: unknown): Promise<Readonly<Record<string, unknown>>> {
    let last: unknown;
    for (const { url } of this.all) {
      try {
        const init = { method: "POST", body: JSON.stringify(body), signal: AbortSignal.timeout(5_000) };
        const answer = await fetch(`${url}/v3/${path}`, init);
        if (answer.ok) return (await answer.json()) as Readonly<Record<string, unknown>>;
        last = new Error(`${path}: ${await answer.text()}`);
      } catch (error) {
        last = error;
      }
    }
    throw last;
  }

  async ready(): Promise<void> {
    const key = Buffer.from("ready").toString("base64");
    for (const deadline = Date.now() + patient(PATIENCE_MS); ; await pause(100)) {
      try {
        await this.ask("kv/put", { key, value: key });
        return;
      } catch (error) {
        if (Date.now() < deadline) continue;
        const tails = this.all.map(({ daemon }) => daemon.tail(5)).join("\n");
        throw new Error(`etcd does not become ready:\n${tails}`, { cause: error });
      }
    }
  }

  fillDisk(): void {
    const file = openSync(join(this.#disk ?? "", "filler"), "w");
    try {
      for (const bytes of [1 << 20, 1 << 12]) for (;;) if (!writes(file, bytes)) break;
    } finally {
      closeSync(file);
    }
  }

  freeDisk(): void {
    rmSync(join(this.#disk ?? "", "filler"));
  }

  async loseAll(): Promise<void> {
    await Promise.all(this.all.map(({ daemon }) => daemon.stop("SIGKILL")));
    for (const { name, daemon } of this.all) {
      rmSync(join(this.#folder, name, "member"), { recursive: true, force: true });
      daemon.start();
    }
    await this.ready();
  }

  async close(): Promise<void> {
    await Promise.all(this.all.map(({ daemon }) => daemon.stop("SIGKILL")));
    if (this.#disk !== undefined) spawnSync("umount", [this.#disk]);
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** etcd reserves two segments of its log, of 64 MiB each. */
const DISK = "size=200m,mode=700";

function mountDisk(folder: string): string {
  mkdirSync(folder, { mode: 0o700 });
  const { status, stderr } = spawnSync("mount", ["-t", "tmpfs", "-o", DISK, "tmpfs", folder]);
  assert.equal(status, 0, String(stderr));
  return folder;
}

/** Whether there was room for all of it. */
function writes(file: number, bytes: number): boolean {
  try {
    return writeSync(file, Buffer.alloc(bytes)) === bytes;
  } catch {
    return false;
  }
}
