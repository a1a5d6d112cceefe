// SPDX-License-Identifier: Apache-2.0
import { parseArgs } from "node:util";

export interface Options {
  /** A minute or so, to see that everything runs; its numbers say little. */
  readonly quick: boolean;
  /** Names of figures; absent: all of them. */
  readonly only: readonly string[] | undefined;
}

export const USAGE = "usage: main.ts [--quick] [--only NAME]...";

/** Reads the arguments; `known` are the names of the figures. Throws TypeError with words for whoever wrote them. */
export function readOptions(argv: readonly string[], known: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...argv],
    options: { quick: { type: "boolean" }, only: { type: "string", multiple: true } },
  });
  const only = values.only?.flatMap((names) => names.split(","));
  const unknown = only?.find((name) => !known.includes(name));
  if (unknown !== undefined)
    throw new TypeError(`there is no figure ${unknown}; there are ${known.join(", ")}`);
  return { quick: values.quick === true, only };
}
