// SPDX-License-Identifier: Apache-2.0

/** Three digits that mean something, thousands apart: 0.123, 4.56, 78.9, 12,345. */
export function formatNumber(value: number): string {
  const size = Math.abs(value);
  const digits = size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3;
  return formatFixed(value, digits);
}

/** Thousands apart, as many digits behind the point. */
export function formatFixed(value: number, digits: number): string {
  const options = { minimumFractionDigits: digits, maximumFractionDigits: digits };
  return value.toLocaleString("en-US", options);
}

/** 0.2 as 20 %. */
export function formatPart(part: number): string {
  return `${formatFixed(part * 100, 0)} %`;
}
