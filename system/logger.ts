// SPDX-License-Identifier: Apache-2.0
import { Writable } from "node:stream";
import { pino } from "pino";
import type { Clock, LogFields, Logger } from "../allocator/base/ports.ts";

export const LOG_LEVELS = ["debug", "info", "warn", "error", "silent"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

interface LoggerOptions {
  /** Gets one JSON object per line: `level`, `time` (ISO), the fields, `message`. */
  readonly stream: Writable;
  readonly level: LogLevel;
  readonly clock: Pick<Clock, "now">;
}

/** A `Logger` that can be waited for before the process ends. */
interface LineLogger extends Logger {
  /** Resolves when every line so far is handed to the system, or the stream is broken; never rejects. */
  flush(): Promise<void>;
}

/** Keys of the line itself: a field of that name gets a trailing underscore instead of hiding it. */
const RESERVED: ReadonlySet<string> = new Set(["level", "time", "message"]);
/** An error may be its own cause. */
const DEEPEST_CAUSE = 8;

/**
 * Writes lines; never throws, whatever the fields hold. A broken stream (the reader of a pipe is gone) loses
 * lines and nothing else.
 */
export function createLogger(options: LoggerOptions): LineLogger {
  const { stream, clock } = options;
  stream.on("error", () => {});
  const lines = pino(
    {
      level: options.level,
      base: null,
      messageKey: "message",
      timestamp: () => `,"time":"${new Date(clock.now()).toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
    },
    stream,
  );
  const write = (level: Exclude<LogLevel, "silent">, message: string, fields: LogFields = {}) => {
    if (!lines.isLevelEnabled(level)) return;
    try {
      lines[level](presentable(fields), message);
    } catch {
      lines[level]({ fields: "unreadable" }, message);
    }
  };
  return {
    debug: (message, fields) => write("debug", message, fields),
    info: (message, fields) => write("info", message, fields),
    warn: (message, fields) => write("warn", message, fields),
    error: (message, fields) => write("error", message, fields),
    flush: () => new Promise((resolve) => stream.write("", () => resolve())),
  };
}

/**
 * Standard error, written before `write` returns: a line is out even when the process exits or crashes next.
 * `process.stderr` keeps lines in memory as soon as a pipe is full, and `process.exit` drops them.
 */
export function standardError(): Writable {
  const file = pino.destination({ dest: 2, sync: true });
  file.on("error", () => {}); // nobody reads it any more: a line is lost, and nothing else
  return new Writable({
    write(chunk, _encoding, done) {
      file.write(String(chunk));
      done();
    },
  });
}

function presentable(fields: LogFields): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(fields).map(([key, value]) => [
      RESERVED.has(key) ? `${key}_` : key,
      value instanceof Error ? describe(value, DEEPEST_CAUSE) : value,
    ]),
  );
}

/** What JSON would lose of an error: its message, stack, code, details and causes. */
function describe(error: Error, depth: number): Record<string, unknown> {
  const inner = (value: unknown) => {
    if (!(value instanceof Error)) return value;
    return depth === 0 ? value.message : describe(value, depth - 1);
  };
  return {
    type: error.name,
    code: "code" in error ? error.code : undefined,
    message: error.message,
    details: "details" in error ? error.details : undefined,
    stack: error.stack,
    cause: inner(error.cause),
    errors: error instanceof AggregateError ? error.errors.map(inner) : undefined,
  };
}
