// SPDX-License-Identifier: Apache-2.0
import type { ContenderName } from "./contender.ts";
import type { Hours, Shift } from "./shift.ts";

/** What a process of workers is told to do, one at a time. */
export type Order =
  | {
      readonly verb: "open";
      /** A kubeconfig as text. */
      readonly access: string;
      /** Connections, each for a copy of Berth's records of its own; workers are divided among them. */
      readonly replicas: number;
      /** A number that no other process of this API server has. */
      readonly number: number;
    }
  | {
      readonly verb: "work";
      readonly contender: ContenderName;
      readonly workers: number;
      readonly hours: Hours;
      /** Part of the names of what is made. */
      readonly tag: string;
    }
  /** Keeps its copies of the records up to date, or does not any more. */
  | { readonly verb: "watch" | "rest" }
  /** Gives back what was taken since. */
  | { readonly verb: "clear" };

/** With every answer: the processor time that its process has used so far. */
export type Reply =
  | { readonly done: true; readonly shift?: Shift; readonly cpuMs: number }
  | { readonly done: false; readonly error: string };
