// SPDX-License-Identifier: Apache-2.0
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import type { Environment } from "../api/binaries.ts";

/** What was made on this machine, written down before it is made: `down` goes by it, whatever `up` came to. */
export interface ClusterState {
  /** Values before the cluster, by file. */
  readonly sysctls: Readonly<Record<string, string>>;
  readonly machines: readonly MachineRecord[];
  /** Everything answered once. */
  readonly complete: boolean;
}

export interface MachineRecord {
  readonly name: string;
  /** In the arguments of its first process and of no other process of this host. */
  readonly token: string;
}

const NOTHING: ClusterState = { sysctls: {}, machines: [], complete: false };

/** Where one cluster keeps everything: certificates, logs, disks of its machines. */
export class StateFolder {
  readonly path: string;

  constructor(path: string) {
    this.path = path;
  }

  /** `BERTH_CLUSTER`, or a place for states of the user. */
  static of(environment: Environment): StateFolder {
    const state = environment["XDG_STATE_HOME"] || join(homedir(), ".local/state");
    return new StateFolder(environment["BERTH_CLUSTER"] || join(state, "berth/cluster"));
  }

  get exists(): boolean {
    return existsSync(this.path);
  }

  get kubeconfig(): string {
    return this.file("kubeconfig");
  }

  file(...names: readonly string[]): string {
    return join(this.path, ...names);
  }

  /** A folder in it, made if it is not there. */
  folder(...names: readonly string[]): string {
    const path = this.file(...names);
    mkdirSync(path, { recursive: true, mode: 0o755 });
    return path;
  }

  read(): ClusterState {
    try {
      return { ...NOTHING, ...(JSON.parse(readFileSync(this.file("state.json"), "utf8")) as ClusterState) };
    } catch (error) {
      if (error instanceof Error && "code" in error && error.code === "ENOENT") return NOTHING;
      throw error;
    }
  }

  /** Whole or not at all. */
  write(change: Partial<ClusterState>): void {
    this.folder();
    const text = JSON.stringify({ ...this.read(), ...change }, undefined, 2);
    writeFileSync(this.file("state.json.new"), text, { mode: 0o600 });
    renameSync(this.file("state.json.new"), this.file("state.json"));
  }

  remove(): void {
    rmSync(this.path, { recursive: true, force: true, maxRetries: 5 });
  }
}
