// SPDX-License-Identifier: Apache-2.0
// What of a long message is shown. Pure.

/** A line that two values have not in common, as node:assert marks it. */
const isChange = (line: string) => /^[+-] /.test(line) && line !== LEGEND;
const LEGEND = "+ actual - expected";

/** At most so many lines. Of the difference of two values the lines that differ come before those around them. */
export function readable(message: string, most: number): string {
  const lines = message.split("\n").filter((line) => line.trim() !== "");
  if (lines.length <= most) return message;
  const legend = lines.indexOf(LEGEND);
  const changes = lines.filter((line, at) => at > legend && isChange(line));
  if (legend === -1 || changes.length === 0) return lines.slice(0, most).join("\n");
  // what a test says besides is often a process's log: what differs comes first, where it has room
  const said = lines.slice(0, Math.min(legend, Math.max(most >> 2, most - 1 - changes.length)));
  const room = most - said.length - 1;
  const shown = changes.length <= room ? changes : ofBoth(changes, room - 1);
  const others = changes.length - shown.length;
  const rest = others === 0 ? [] : [`… and ${others} more lines that differ`];
  return [...said, LEGEND, ...shown, ...rest].join("\n");
}

/** The first of either value: half of the room for each, and what one of them leaves for the other. */
function ofBoth(changes: readonly string[], room: number): readonly string[] {
  const isActual = (line: string) => line.startsWith("+");
  const actual = changes.filter(isActual).length;
  const expected = changes.length - actual;
  const half = room >> 1;
  let ofActual = Math.min(actual, Math.max(room - half, room - expected));
  let ofExpected = room - ofActual;
  return changes.filter((line) => (isActual(line) ? ofActual-- : ofExpected--) > 0);
}
