// SPDX-License-Identifier: Apache-2.0

/** Values along a line: where each lies, and which are written beside it. */
export interface Axis {
  /** From 0, the low end, to 1. */
  readonly at: (value: number) => number;
  readonly ticks: readonly number[];
}

const FEW_TICKS = 5;

/** From 0 to a round number at or above the greatest value, which must be positive. */
export function linearAxis(most: number): Axis {
  const step = roundStep(most / FEW_TICKS);
  const count = Math.ceil(most / step - 1e-9);
  const end = count * step;
  return {
    at: (value) => value / end,
    ticks: Array.from({ length: count + 1 }, (_, i) => (i * end) / count),
  };
}

/** The least of 1, 2 or 5 times a power of ten that is not below. */
function roundStep(step: number): number {
  const power = 10 ** Math.floor(Math.log10(step));
  const factor = [1, 2, 5, 10].find((candidate) => candidate * power >= step * (1 - 1e-9)) ?? 10;
  return factor * power;
}

/** From the power of ten at or below the least value to the one at or above the greatest. Both must be positive. */
export function logAxis(least: number, most: number): Axis {
  const low = Math.floor(Math.log10(least) + 1e-9);
  const high = Math.max(Math.ceil(Math.log10(most) - 1e-9), low + 1);
  return {
    at: (value) => (Math.log10(value) - low) / (high - low),
    ticks: Array.from({ length: high - low + 1 }, (_, i) => 10 ** (low + i)),
  };
}
