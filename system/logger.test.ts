// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { PassThrough, Writable } from "node:stream";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { BerthError } from "../allocator/base/errors.ts";
import type { LogFields } from "../allocator/base/ports.ts";
import { createLogger, type LogLevel } from "./logger.ts";

const NOON = { now: () => Date.UTC(2026, 4, 1, 12) };

/** Fields that the vocabulary does not have, past the compiler: whatever comes, a line is written. */
const odd = (fields: object) => fields as LogFields;

function recorded(level: LogLevel = "debug") {
  const chunks: string[] = [];
  const stream = new Writable({
    write(chunk, _encoding, done) {
      chunks.push(String(chunk));
      done();
    },
  });
  const log = createLogger({ stream, level, clock: NOON });
  const lines = () => chunks.join("").split("\n").slice(0, -1);
  return { log, text: () => chunks.join(""), last: () => JSON.parse(lines().at(-1) ?? "null"), lines };
}

describe("logger", () => {
  it("writes one JSON object per line with level, time, fields and message", () => {
    const { log, text } = recorded();
    log.info("reserved", { pool: "db", address: "10.0.0.1" });
    assert.equal(
      text(),
      '{"level":"info","time":"2026-05-01T12:00:00.000Z","pool":"db","address":"10.0.0.1","message":"reserved"}\n',
    );
  });

  it("keeps a line one line, whatever the text holds", () => {
    const { log, lines, last } = recorded();
    log.warn("odd", { pod: 'a\nb"\u2028\u0000{}' });
    assert.equal(lines().length, 1);
    assert.equal(last().pod, 'a\nb"\u2028\u0000{}');
  });

  for (const { level, expected } of [
    { level: "debug", expected: ["debug", "info", "warn", "error"] },
    { level: "info", expected: ["info", "warn", "error"] },
    { level: "warn", expected: ["warn", "error"] },
    { level: "error", expected: ["error"] },
    { level: "silent", expected: [] },
  ] as const) {
    it(`at level ${level} writes ${expected.join(", ") || "nothing"}`, () => {
      const { log, lines } = recorded(level);
      log.debug("m");
      log.info("m");
      log.warn("m");
      log.error("m");
      assert.deepEqual(
        lines().map((line) => JSON.parse(line).level),
        expected,
      );
    });
  }

  it("writes what JSON loses of an error: message, code, details, stack and cause", () => {
    const { log, last } = recorded();
    const cause = Object.assign(new TypeError("socket hang up"), { code: "ECONNRESET" });
    log.error("store failed", {
      error: new BerthError("STORE_UNAVAILABLE", "the store does not answer", {
        details: { pool: "db" },
        cause,
      }),
    });
    const { error } = last();
    assert.equal(error.type, "BerthError");
    assert.equal(error.code, "STORE_UNAVAILABLE");
    assert.equal(error.message, "the store does not answer");
    assert.deepEqual(error.details, { pool: "db" });
    assert.match(error.stack, /^BerthError: the store does not answer\n {4}at /);
    assert.deepEqual(
      [error.cause.type, error.cause.code, error.cause.message],
      ["TypeError", "ECONNRESET", "socket hang up"],
    );
  });

  it("writes errors under any key, the errors of an aggregate, and things thrown that are no errors", () => {
    const { log, last } = recorded();
    log.error("m", odd({ first: new AggregateError([new Error("a"), "b"], "both"), error: "just text" }));
    assert.equal(last().first.message, "both");
    assert.equal(last().first.errors[0].message, "a");
    assert.equal(last().first.errors[1], "b");
    assert.equal(last().error, "just text");
  });

  it("survives an error that is its own cause", () => {
    const { log, last } = recorded();
    const error = new Error("round");
    error.cause = error;
    log.error("m", { error });
    assert.equal(last().error.cause.cause.message, "round");
  });

  it("never throws: circles, bigints, symbols, functions, getters and toJSON that throw", () => {
    const { log, lines, last } = recorded();
    const circle: Record<string, unknown> = { name: "c" };
    circle["self"] = circle;
    const fields = {
      circle,
      big: 10n,
      symbol: Symbol("s"),
      call: () => 1,
      nothing: undefined,
      nan: Number.NaN,
    };
    log.info("odd", odd(fields));
    assert.deepEqual(last().circle, { name: "c", self: "[Circular]" });
    assert.equal(last().big, 10);
    assert.equal(last().nan, null);
    const hostile = {
      toJSON() {
        throw new Error("no");
      },
    };
    log.info("hostile value", odd({ hostile }));
    assert.equal(last().message, "hostile value");
    const trap = Object.defineProperty({}, "key", {
      enumerable: true,
      get() {
        throw new Error("no");
      },
    });
    log.info("hostile fields", trap);
    assert.deepEqual([last().message, last().fields], ["hostile fields", "unreadable"]);
    assert.equal(lines().length, 3);
  });

  it("does not let a field hide the line's own keys", () => {
    const { log, last } = recorded();
    log.info("mine", odd({ level: "error", time: 0, message: "theirs" }));
    assert.deepEqual(last(), {
      level: "info",
      time: "2026-05-01T12:00:00.000Z",
      level_: "error",
      time_: 0,
      message_: "theirs",
      message: "mine",
    });
  });

  it("flushes: resolves only when a slow stream has taken every line", async () => {
    const taken: string[] = [];
    const slow = new Writable({
      write(chunk, _encoding, done) {
        setImmediate(() => {
          taken.push(String(chunk));
          done();
        });
      },
    });
    const log = createLogger({ stream: slow, level: "info", clock: NOON });
    for (let i = 0; i < 50; i++) log.info("line", { count: i });
    await log.flush();
    assert.equal(taken.join("").split("\n").length - 1, 50);
  });

  it("goes on without a stream that broke", async () => {
    const stream = new PassThrough();
    const log = createLogger({ stream, level: "info", clock: NOON });
    stream.destroy(new Error("EPIPE"));
    log.info("lost");
    await log.flush();
    log.info("lost too");
  });

  it("loses no line on standard error when the process exits at once", async () => {
    const program = `
      import { createLogger, standardError } from ${JSON.stringify(fileURLToPath(new URL("./logger.ts", import.meta.url)))};
      const log = createLogger({ stream: standardError(), level: "info", clock: Date });
      for (let i = 0; i < 2500; i++) log.info("line", { count: i });
      process.exit(3);`;
    const run = promisify(execFile)(process.execPath, ["--input-type=module-typescript", "-e", program], {
      maxBuffer: 2 ** 24,
    });
    const failure = await run.then(
      () => assert.fail("exits with 3"),
      (error: { code: number; stderr: string }) => error,
    );
    assert.equal(failure.code, 3);
    const lines = failure.stderr.split("\n").slice(0, -1);
    assert.equal(lines.length, 2500);
    assert.equal(JSON.parse(lines.at(-1) ?? "{}").count, 2499);
  });
});
