// SPDX-License-Identifier: Apache-2.0
import type { System } from "../model/dialect.ts";
import type { DialectReader } from "./dialect-values.ts";

export interface DialectRow {
  readonly system: System;
  /** With `<...>` for what is a name; then `matches` says which keys are meant. */
  readonly key: string;
  readonly matches?: RegExp;
  readonly on: readonly ("pod" | "namespace")[];
  /** From the system's own documents. */
  readonly example: string;
  /** What it asks for, in a line of docs/dialects.md. */
  readonly means: string;
  /** Present: Berth answers it. */
  readonly read?: DialectReader;
  /** Only of one that is read: whether it asks for an address or a pool, or says more about a request. */
  readonly asks?: "addresses" | "pools";
  /** It is a request only if its value contains this. */
  readonly containing?: string;
  /** Values that ask that system for nothing, as an empty one does. */
  readonly empty?: RegExp;
  /** The system has written the value itself where this other annotation is "true". */
  readonly unless?: string;
  /** What Berth does otherwise than the system, for some values. */
  readonly note?: (value: string) => string | undefined;
  /** It asks for what Berth cannot give: why, and what to do instead. */
  readonly refusal?: string;
  /** The system itself writes it on namespaces: there it asks for nothing. */
  readonly writtenOnNamespaces?: true;
  /** It has nothing to do with which address a pod has: what to know. */
  readonly beside?: string;
}

export const POD = ["pod"] as const;
export const NAMESPACE = ["namespace"] as const;
export const BOTH = ["pod", "namespace"] as const;
