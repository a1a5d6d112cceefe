// SPDX-License-Identifier: Apache-2.0
import { parseArgs } from "node:util";
import type { BerthError } from "../../allocator/base/errors.ts";
import { nearestWord } from "../../allocator/base/nearest-word.ts";
import { type Flag, type Flags, needlessArgument, usageError, withHelp } from "./flags.ts";

/** The arguments of one call, checked against the command's flags. */
export class Arguments {
  readonly #texts: ReadonlyMap<string, readonly string[]>; // flag -> its values
  readonly #switches: ReadonlySet<string>;
  readonly operands: readonly string[];

  constructor(
    texts: ReadonlyMap<string, readonly string[]>,
    switches: ReadonlySet<string>,
    operands: readonly string[],
  ) {
    this.#texts = texts;
    this.#switches = switches;
    this.operands = operands;
  }

  text(flag: string): string | undefined {
    return this.#texts.get(flag)?.at(-1);
  }

  texts(flag: string): readonly string[] {
    return this.#texts.get(flag) ?? [];
  }

  has(flag: string): boolean {
    return this.#switches.has(flag);
  }

  /** The operands, which must be as many as there are names; throws a misuse that names the missing or needless one. */
  expect(...names: readonly string[]): readonly string[] {
    const missing = names[this.operands.length];
    if (missing !== undefined) throw usageError(`${missing} is missing`);
    const needless = this.operands[names.length];
    if (needless !== undefined) throw needlessArgument(needless);
    return this.operands;
  }
}

/** Reads the arguments behind the command's name; throws a misuse for a flag that is unknown or has no value, which names flags of `offered`. */
export function readArguments(
  command: { readonly name: string; readonly flags: Flags },
  argv: readonly string[],
  offered: Flags = withHelp(command.flags),
): Arguments {
  const flags = withHelp(command.flags);
  const texts = new Map<string, string[]>(); // flag -> its values
  const switches = new Set<string>();
  const operands: string[] = [];
  for (const token of tokensOf(flags, argv)) {
    if (token.kind === "positional") operands.push(token.value);
    if (token.kind !== "option") continue;
    const flag = Object.hasOwn(flags, token.name) ? flags[token.name] : undefined;
    if (flag === undefined) throw unknownFlag(command.name, token.rawName, offered);
    const value = valueFrom(token, flag, texts.has(token.name));
    if (value === undefined) switches.add(token.name);
    else texts.set(token.name, [...(texts.get(token.name) ?? []), value]);
  }
  return new Arguments(texts, switches, operands);
}

/** Not strict: node's own complaints would not suggest what was meant. */
function tokensOf(flags: Flags, argv: readonly string[]) {
  const options = Object.fromEntries(
    Object.entries(flags).map(([name, { type, short }]) => [
      name,
      short === undefined ? { type } : { type, short },
    ]),
  );
  const how = { options, strict: false, tokens: true, allowPositionals: true } as const;
  return parseArgs({ args: [...argv], ...how }).tokens;
}

interface GivenFlag {
  readonly rawName: string;
  readonly value?: string | undefined;
  readonly inlineValue?: boolean | undefined;
}

/** The flag's value, undefined for a switch. `-f --dry-run` has forgotten the value of -f, and `-f -` has not. */
function valueFrom(given: GivenFlag, flag: Flag, repeated: boolean): string | undefined {
  const { rawName, value, inlineValue } = given;
  if (flag.type === "boolean") {
    if (value === undefined) return undefined;
    throw usageError(`${rawName} takes no value; say ${rawName}`);
  }
  if (repeated && flag.multiple !== true) throw usageError(`${rawName} is given twice`);
  const isFlag = inlineValue !== true && value !== undefined && /^-./.test(value);
  if (value !== undefined && value !== "" && !isFlag) return value;
  throw usageError(`${rawName} needs a value: ${rawName} ${flag.value ?? "VALUE"}`);
}

function unknownFlag(command: string, rawName: string, flags: Flags): BerthError {
  const known = Object.keys(flags).map((name) => `--${name}`);
  const near = nearestWord(rawName, known);
  const advice = near === undefined ? `it has ${known.join(", ")}` : `did you mean ${near}?`;
  return usageError(`${command} has no flag ${rawName}; ${advice}`);
}
