// SPDX-License-Identifier: Apache-2.0
import type { Clock, LogFields, Logger } from "../allocator/base/ports.ts";

/** So many lines with the same message are written in so much time. */
interface LogRate {
  readonly lines: number;
  readonly ms: number;
}

const LOG_RATE: LogRate = { lines: 20, ms: 60_000 };

interface Window {
  readonly since: number;
  lines: number;
  left: number;
}

/**
 * A log for what strangers can cause: of warnings and errors with the same message only so many are written in a time. The
 * first of the next time says how many were left out before it. Messages must be few: they are never taken from input.
 */
export function limitedLogger(
  log: Logger,
  clock: Pick<Clock, "monotonic">,
  rate: LogRate = LOG_RATE,
): Logger {
  const windows = new Map<string, Window>(); // message -> what was written of it
  const limited = (write: Logger["warn"]) => (message: string, fields?: LogFields) => {
    const now = clock.monotonic();
    const before = windows.get(message);
    if (before !== undefined && now - before.since < rate.ms) {
      if (before.lines >= rate.lines) {
        before.left++;
        return;
      }
      before.lines++;
      write(message, fields);
      return;
    }
    windows.set(message, { since: now, lines: 1, left: 0 });
    const left = before?.left ?? 0;
    write(message, left === 0 ? fields : { ...fields, leftOut: left });
  };
  return {
    debug: (message, fields) => log.debug(message, fields),
    info: (message, fields) => log.info(message, fields),
    warn: limited((message, fields) => log.warn(message, fields)),
    error: limited((message, fields) => log.error(message, fields)),
  };
}
