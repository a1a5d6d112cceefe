// SPDX-License-Identifier: Apache-2.0

/** The first of them in a sentence, and how many more there are: `a, b and 3 more`. */
export function listed<T>(items: readonly T[], most: number, wordOf: (item: T) => string = String): string {
  const more = items.length > most ? ` and ${items.length - most} more` : "";
  return `${items.slice(0, most).map(wordOf).join(", ")}${more}`;
}
