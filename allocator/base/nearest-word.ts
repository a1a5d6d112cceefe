// SPDX-License-Identifier: Apache-2.0

/** Nobody meant a word by a text that is longer, and to compare it costs. */
const LONGEST = 40;

/** The word that `text` was probably meant to be: the one with the fewest letters changed, a third of them at most. */
export function nearestWord(text: string, words: readonly string[]): string | undefined {
  if (text.length > LONGEST) return undefined;
  const scored = words
    .map((word) => ({ word, distance: distance(text.toLowerCase(), word.toLowerCase()) }))
    .filter(({ word, distance }) => distance <= Math.max(1, Math.floor(word.length / 3)))
    .sort((a, b) => a.distance - b.distance);
  return scored[0]?.word;
}

/** How many letters must be put in, left out, exchanged or swapped with their neighbour (optimal string alignment). */
function distance(a: string, b: string): number {
  let twoAbove: number[] = [];
  let above = Array.from({ length: b.length + 1 }, (_, j) => j); // distances from a's prefix to each prefix of b
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const ways = [at(above, j) + 1, at(row, j - 1) + 1, at(above, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1)];
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      row.push(Math.min(...ways, swapped ? at(twoAbove, j - 2) + 1 : Number.POSITIVE_INFINITY));
    }
    [twoAbove, above] = [above, row];
  }
  return at(above, b.length);
}

/** The distance at an index that is known to be inside. */
function at(row: readonly number[], i: number): number {
  return row[i] ?? 0;
}
