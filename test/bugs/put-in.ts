// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { registerHooks } from "node:module";
import { type Mutation, sourceOf } from "./mutations.ts";

type Place = Pick<Mutation, "name" | "file" | "from" | "to">;

/** From here on this process reads the mutated source. Throws when the place of the mutation is not there once. */
export function putIn(mutation: Place): void {
  const target = sourceOf(mutation).href;
  registerHooks({
    load(url, context, nextLoad) {
      const loaded = nextLoad(url, context);
      if (url !== target) return loaded;
      const source = Buffer.from(loaded.source as Uint8Array).toString("utf8");
      return { ...loaded, source: mutated(source, mutation) };
    },
  });
}

/** Throws when the place of the mutation is not there exactly once, or nothing would change. */
export function mutated(source: string, { name, file, from, to }: Place): string {
  const [place, ...more] = source.matchAll(anyLayout(from));
  assert.ok(place !== undefined && more.length === 0, `${name}: its place is gone from ${file}`);
  const end = place.index + place[0].length;
  const changed = source.slice(0, place.index) + to + source.slice(end);
  assert.notEqual(changed, source, `${name}: nothing changes in ${file}`);
  return changed;
}

/** The same tokens, however a formatter breaks the lines: it also puts a comma after the last of several lines. */
function anyLayout(code: string): RegExp {
  const tokens = code.match(/\w+|[^\w\s]/g) ?? [];
  const pattern = tokens.map((token, i) => {
    const between = /\w/.test(token) && /\w$/.test(tokens[i - 1] ?? "") ? String.raw`\s+` : String.raw`\s*`;
    const comma = /[)\]}]/.test(token) ? String.raw`(?:,\s*)?` : "";
    return (i === 0 ? "" : between + comma) + (/\w/.test(token) ? token : `\\${token}`);
  });
  return new RegExp(pattern.join(""), "g");
}
