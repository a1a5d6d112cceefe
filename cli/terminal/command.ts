// SPDX-License-Identifier: Apache-2.0
import type { Writable } from "node:stream";
import type { Clock, Random } from "../../allocator/base/ports.ts";
import type { Arguments } from "./arguments.ts";
import type { Flags } from "./flags.ts";
import type { ClusterTarget, EnvDefaults, EtcdTarget } from "./target.ts";

/** 0: done. 1: refused, or defects were found. 2: called wrongly, or it could not be done or known. */
export type ExitCode = 0 | 1 | 2;

/** What a command may touch of the world around its records. */
export interface Io {
  readonly stdout: Writable;
  readonly stderr: Writable;
  /** Everything on standard input. */
  readonly stdin: () => Promise<string>;
  readonly clock: Clock;
  readonly random: Random;
  /** A random UUID, as the API server gives to objects and requests. */
  readonly uuid: () => string;
  /** From the call on, a signal that tells the process to end aborts this instead of ending it. */
  readonly ending: () => AbortSignal;
}

/** The context of a command: `io`, and what the environment says where no flag does. */
export interface CommandContext {
  readonly io: Io;
  readonly dataDir: string;
  /** Who sends reviews, as the webhook is told. */
  readonly user: string;
  /** Absent: there are data folders and nothing else. */
  readonly setting?: EnvDefaults;
  /** The cluster that this call is about; absent: the data folder. */
  readonly cluster?: ClusterTarget;
  /** The etcd that this call is about, which hosts without Kubernetes share. */
  readonly etcd?: EtcdTarget;
  /** How long a stack that starts on the folder is waited for; 30 s if absent. */
  readonly waitMs?: number;
  /** Called before a command that writes nothing but its output. */
  readonly onlyReads?: () => void;
  /** The program and its arguments up to the command, for one that goes on in the background. */
  readonly self?: readonly string[];
}

export interface Command {
  readonly name: string;
  /** One line for the list of commands. */
  readonly summary: string;
  /** What follows `berthctl` on a usage line; one line for each form. */
  readonly usage: readonly string[];
  readonly flags: Flags;
  /** It writes nothing but its output: without a reader of that it may end at any moment. Absent: it may write. */
  readonly onlyReads?: true;
  /** For a command of data folders alone: what does its work in a cluster. */
  readonly inCluster?: string;
  /** How it reads as `kubectl berth`, if that does less. */
  readonly asKubectl?: Pick<Command, "summary" | "usage">;
  /** Lines that each can be typed as they are. */
  readonly examples: readonly string[];
  run(args: Arguments, context: CommandContext): Promise<ExitCode>;
}
