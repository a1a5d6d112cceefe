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
  /** Only of one that is read: whether it asks for an address, a pool or a MAC address beside one, or says more about a request. */
  readonly asks?: "addresses" | "pools" | "mac";
  /** It says families, and those of the pod's first interface alone. */
  readonly ofFirst?: true;
  /** It is a request only if its value, which is JSON, has a field of this name somewhere, as Go's encoding/json reads it. */
  readonly containing?: string;
  /** Values that ask that system for nothing, as an empty one does. */
  readonly empty?: Pick<RegExp, "test">;
  /** The system has written the value itself where this other annotation is "true". */
  readonly unless?: (key: string) => string;
  /** What Berth does otherwise than the system, for some values. */
  readonly note?: (value: string) => string | undefined;
  /** It asks for what Berth cannot give: why, and what to do instead. */
  readonly refusal?: string;
  /** What it names, whether or not that counts beside others: whose request it is follows from it. */
  readonly names?: DialectReader;
  /** Its system gives the address that it names, whoever has it: of Berth's it is refused. */
  readonly gives?: true;
  /** The system itself writes it on namespaces: there it asks for nothing. */
  readonly writtenOnNamespaces?: true;
  /** The system reads it as a label as well, which Berth does not. */
  readonly alsoLabel?: true;
  /** It has nothing to do with which address a pod has: what to know. */
  readonly beside?: string;
}

/**
 * Whether a value may have that field: in any letter case, or with an escape in it. The same in Go's regular expressions, which the chart's
 * conditions use.
 */
export function fieldPattern(field: string): string {
  return `"${field}"|\\\\u`;
}

export const POD = ["pod"] as const;
export const NAMESPACE = ["namespace"] as const;
export const BOTH = ["pod", "namespace"] as const;
