// SPDX-License-Identifier: Apache-2.0

/** Nanoseconds of each unit of Go's time.ParseDuration. */
const UNITS: ReadonlyMap<string, bigint> = new Map([
  // unit -> nanoseconds
  ["ns", 1n],
  ["us", 1_000n],
  ["µs", 1_000n], // micro sign
  ["μs", 1_000n], // Greek mu
  ["ms", 1_000_000n],
  ["s", 1_000_000_000n],
  ["m", 60_000_000_000n],
  ["h", 3_600_000_000_000n],
]);
const WHOLE = /^(?:(?:\d+(?:\.\d*)?|\.\d+)[a-z\u00b5\u03bc]+)+$/;
const PART = /(\d*)(?:\.(\d*))?([a-z\u00b5\u03bc]+)/g;
/** Go keeps a duration in 63 bits of nanoseconds, about 292 years. */
const LONGEST = (1n << 63n) - 1n;
const MS = 1_000_000n;

/**
 * The milliseconds of a Go duration (`30s`, `1h30m`, `1.5h`, `0`); undefined for anything else and for a negative
 * one. Parts of a millisecond round up, so that no duration but 0 becomes 0, if Go still reads what comes of it.
 */
export function parseDuration(text: string): number | undefined {
  if (text === "0") return 0;
  if (text.length > 64 || !WHOLE.test(text)) return undefined;
  let total = 0n;
  for (const [, digits = "", fraction = "", unit = ""] of text.matchAll(PART)) {
    const nanoseconds = UNITS.get(unit);
    if (nanoseconds === undefined) return undefined;
    const scale = 10n ** BigInt(fraction.length);
    total += (BigInt(digits + fraction) * nanoseconds) / scale;
  }
  if (total > LONGEST) return undefined;
  const longest = LONGEST / MS;
  const rounded = (total + MS - 1n) / MS;
  return Number(rounded > longest ? longest : rounded);
}

/** As Go prints it: `0s`, `500ms`, `1.5s`, `1h30m0s`. `ms` is whole and not negative. */
export function formatDuration(ms: number): string {
  if (ms === 0) return "0s";
  if (ms < 1000) return `${ms}ms`;
  const hours = Math.floor(ms / 3_600_000);
  const minutes = Math.floor(ms / 60_000) % 60;
  const seconds = `${(ms % 60_000) / 1000}s`;
  if (hours > 0) return `${hours}h${minutes}m${seconds}`;
  return minutes > 0 ? `${minutes}m${seconds}` : seconds;
}

/** For people: without the zeros that end what Go prints, `48h` and `1h30m`. */
export function shortDuration(ms: number): string {
  return formatDuration(ms)
    .replace(/(?<=[hm])0s$/, "")
    .replace(/(?<=h)0m$/, "");
}
