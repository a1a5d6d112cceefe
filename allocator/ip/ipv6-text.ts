// SPDX-License-Identifier: Apache-2.0
// IPv6 addresses read and written by hand: a pool may exclude tens of thousands, and records are compared again and again.

const COLON = 58;
const DIGITS_OF_A_GROUP = 4;
const GROUPS = 8;

/** What the text writes, if it is hex digits and colons in a valid order (RFC 4291 section 2.2, without dotted decimal). */
export function readGroups(text: string): bigint | undefined {
  const gap = text.indexOf("::");
  if (gap < 0) return ofAll(groupsIn(text));
  const upper = groupsIn(text.slice(0, gap));
  const lower = groupsIn(text.slice(gap + 2));
  if (upper === undefined || lower === undefined) return undefined;
  const zeros = GROUPS - upper.length - lower.length; // one at least
  return zeros < 1 ? undefined : ofAll([...upper, ...new Array<number>(zeros).fill(0), ...lower]);
}

/** No second `::` either, which has a group of no digits. */
function groupsIn(part: string): readonly number[] | undefined {
  if (part === "") return [];
  const groups: number[] = [];
  let [group, digits] = [0, 0];
  for (let i = 0; i <= part.length; i++) {
    const code = i === part.length ? COLON : part.charCodeAt(i);
    if (code === COLON) {
      if (digits === 0) return undefined;
      groups.push(group);
      [group, digits] = [0, 0];
      continue;
    }
    const digit = hexDigit(code);
    if (digit < 0 || digits++ === DIGITS_OF_A_GROUP) return undefined;
    group = group * 16 + digit;
  }
  return groups;
}

function hexDigit(code: number): number {
  if (code >= 48 && code <= 57) return code - 48;
  const letter = code | 32; // in lower case
  return letter >= 97 && letter <= 102 ? letter - 87 : -1;
}

function ofAll(groups: readonly number[] | undefined): bigint | undefined {
  if (groups?.length !== GROUPS) return undefined;
  const pair = (i: number) => BigInt((groups[i] ?? 0) * 65_536 + (groups[i + 1] ?? 0));
  return (((((pair(0) << 32n) | pair(2)) << 32n) | pair(4)) << 32n) | pair(6);
}

/** RFC 5952: of the runs of two and more groups of zeros the longest is left out, of several the first. */
export function writeGroups(n: bigint): string {
  const groups: number[] = [];
  for (let shift = 96n; shift >= 0n; shift -= 32n) {
    const pair = Number((n >> shift) & 0xffff_ffffn);
    groups.push(pair >>> 16, pair & 0xffff);
  }
  let [start, length] = [0, 1];
  for (let from = 0; from < GROUPS; from++) {
    let end = from;
    while (groups[end] === 0) end++;
    if (end - from > length) [start, length] = [from, end - from];
    from = end;
  }
  if (length === 1) return hex(groups);
  return `${hex(groups.slice(0, start))}::${hex(groups.slice(start + length))}`;
}

function hex(groups: readonly number[]): string {
  return groups.map((group) => group.toString(16)).join(":");
}
