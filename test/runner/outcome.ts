// SPDX-License-Identifier: Apache-2.0
// What the records of one run of node's test runner come to. Pure.
import { relative, resolve } from "node:path";
import { ROOT } from "./files.ts";
import type { FailureRecord, RunRecord } from "./record.ts";
import {
  type Counts,
  type Failure,
  type FileTime,
  NOTHING,
  type SkipReason,
  skipReasons,
} from "./results.ts";
import type { Group } from "./suites.ts";

export interface Asked {
  readonly group: Group;
  readonly files: readonly string[];
  /** The share of random runs and repetitions. */
  readonly runs: number;
  /** Only tests whose full name matches. */
  readonly name?: string | undefined;
  /** At the same time as those before. */
  readonly isBeside?: boolean;
  /** $BERTH_SEED, with which what is random is drawn alike. */
  readonly seed?: string | undefined;
}

export interface Outcome {
  readonly counts: Counts;
  readonly times: readonly FileTime[];
  readonly failures: readonly Failure[];
  /** Files that were not through at the deadline. */
  readonly leftOut: readonly string[];
  readonly skippedFor: readonly SkipReason[];
  /** How many files had not begun when the run was interrupted. */
  readonly notBegun: number;
}

/** Before its end. */
export type CutOff = "at the deadline" | "by an interrupt" | undefined;

/** To start a process and load what all tests need takes as long as the tests of so many files. */
const FEWEST_FILES = 40;

/** Where files share a process: those of each process. */
export function sharesOf(asked: Asked): readonly Asked[] {
  const { isolation, concurrency = 1 } = asked.group;
  const most = isolation === "none" ? Math.min(concurrency, asked.files.length / FEWEST_FILES) : 1;
  const count = Math.max(1, Math.floor(most));
  // those of one folder take long or short alike
  const share = (n: number) => asked.files.filter((_, i) => i % count === n);
  return Array.from({ length: count }, (_, n) => ({ ...asked, files: share(n) }));
}

const NODE = "node_modules/.bin/node";
const UNTOLD = "its process ended before it had told of its tests: it has none, or one of them ended it";

export function outcomeOf(records: readonly RunRecord[], asked: Asked, cutOff: CutOff): Outcome {
  const isCutOff = cutOff === "at the deadline";
  const of = <Kind extends RunRecord["kind"]>(kind: Kind) =>
    records.filter((record): record is Extract<RunRecord, { kind: Kind }> => record.kind === kind);
  const cpu = new Map(of("cpu").map(({ file, seconds }) => [file, seconds]));
  const times = of("file").map(({ file, seconds }) => timeOf(file, seconds, cpu.get(file)));
  const unfinished = new Set(of("unfinished").map(({ file }) => relative(ROOT, file)));
  const open = underWay(records, asked);
  const all = of("failure").map((record) => ({ record, failure: withOpen(failureOf(record, asked), open) }));
  // With a global teardown node's runner goes on after the interrupt, and says of each file that it was cancelled.
  for (const { record, failure } of all)
    if (isCutOff && record.isCancelled && failure.path.length === 0) unfinished.add(failure.file);
  const through = new Set(times.filter(({ file }) => !unfinished.has(file)).map(({ file }) => file));
  const leftOut = isCutOff ? asked.files.filter((file) => !through.has(file)) : [];
  const isOurs = ({ record, failure }: Told) => record.isCancelled && leftOut.includes(failure.file);
  const counts = of("end").at(-1) ?? NOTHING;
  const cancelledByUs = Math.min(counts.cancelled, all.filter(isOurs).length);
  const lastBegun = of("begun").at(-1)?.file ?? "";
  const exits = of("exit").map(({ file, message }) =>
    wholeFile(relative(ROOT, file === "" ? lastBegun : file), message, asked),
  );
  const begun = new Set(of("begun").map(({ file }) => relative(ROOT, file)));
  const isNotBegun = ({ record, failure }: Told) =>
    cutOff === "by an interrupt" &&
    record.isCancelled &&
    failure.path.length === 0 &&
    !begun.has(failure.file);
  const own = all.filter((one) => !isOurs(one) && !isNotBegun(one));
  const told = withoutRepeats([...exits.map(asTold), ...own]);
  const isWhole = of("end").length > 0 && unfinished.size === 0 && !isCutOff;
  return {
    leftOut,
    notBegun: all.filter(isNotBegun).length,
    skippedFor: skipReasons(of("skipped").map(({ why }) => ({ why, tests: 1 }))),
    counts: {
      ...countsOf(counts),
      tests: counts.tests - cancelledByUs,
      cancelled: counts.cancelled - cancelledByUs,
    },
    times,
    failures: [
      ...withCancelled(told),
      ...(isWhole ? untold(records, asked, told).map((failure) => withOpen(failure, open)) : []),
    ],
  };
}

function timeOf(file: string, seconds: number, cpuSeconds: number | undefined): FileTime {
  return { file: relative(ROOT, file), seconds, ...(cpuSeconds !== undefined && { cpuSeconds }) };
}

/** A test that had begun and not ended. */
export interface UnderWay {
  readonly file: string;
  readonly path: readonly string[];
  readonly again: string;
}

/** What was under way when the process of these tests ended: of tests in tests the innermost. */
export function underWay(records: readonly RunRecord[], asked: Asked): readonly UnderWay[] {
  const open = new Map<string, { readonly file: string; readonly path: readonly string[] }>();
  for (const record of records) {
    if (record.kind !== "begun" && record.kind !== "ended") continue;
    const { kind, file, path } = record;
    if (kind === "begun") open.set(JSON.stringify([file, path]), { file, path });
    else open.delete(JSON.stringify([file, path]));
  }
  const all = [...open.values()];
  const isIn = (one: (typeof all)[number], outer: (typeof all)[number]) =>
    one !== outer && isWithin(one, outer);
  return all
    .filter((one) => !all.some((other) => isIn(other, one)))
    .map((one) => {
      const selects = Math.min(
        ...all.filter((o) => o === one || isIn(one, o)).map(({ path }) => path.length),
      );
      const file = relative(ROOT, one.file);
      return { file, path: one.path, again: again({ ...asked, file, path: one.path.slice(0, selects) }) };
    });
}

/** A test that was under way when its process ended, as a failure. */
export function brokenOff({ file, path, again }: UnderWay, message: string): Failure {
  return { file, path, message, again, cancelled: 0 };
}

interface Told {
  readonly record: Pick<FailureRecord, "isCancelled">;
  readonly failure: Failure;
}

const asTold = (failure: Failure): Told => ({ record: { isCancelled: false }, failure });

function countsOf({ tests, suites, passed, failed, cancelled, skipped, todo }: Counts): Counts {
  return { tests, suites, passed, failed, cancelled, skipped, todo };
}

/** A file fails as a whole once, for the first reason that is known. */
function withoutRepeats(told: readonly Told[]): readonly Told[] {
  const files = new Set<string>();
  return told.filter(({ failure: { file, path } }) => {
    if (path.length > 0) return true;
    const isNew = !files.has(file);
    files.add(file);
    return isNew;
  });
}

/** What failed by itself, each with the number of those that were cancelled with it; then what else was cancelled. */
function withCancelled(told: readonly Told[]): readonly Failure[] {
  const own = told.filter(({ record }) => !record.isCancelled).map(({ failure }) => failure);
  const cancelled = told.filter(({ record }) => record.isCancelled).map(({ failure }) => failure);
  const causeOf = (one: Failure) => own.find((cause) => isWithin(one, cause));
  return [
    ...own.map((cause) => ({
      ...cause,
      cancelled: cancelled.filter((one) => causeOf(one) === cause).length,
    })),
    ...cancelled.filter((one) => causeOf(one) === undefined),
  ];
}

function isWithin(one: Pick<Failure, "file" | "path">, cause: Pick<Failure, "file" | "path">): boolean {
  return one.file === cause.file && cause.path.every((name, depth) => one.path[depth] === name);
}

/** Files that are through without a test, or without having said so. */
function untold(records: readonly RunRecord[], asked: Asked, told: readonly Told[]): readonly Failure[] {
  const having = (kind: "file" | "empty") =>
    new Set(records.flatMap((one) => (one.kind === kind ? [relative(ROOT, one.file)] : [])));
  const [timed, empty] = [having("file"), having("empty")];
  const failed = new Set(told.map(({ failure }) => failure.file));
  return asked.files
    .filter((file) => !failed.has(file))
    .flatMap((file) => {
      if (asked.group.isolation === "process" && !timed.has(file)) return [wholeFile(file, UNTOLD, asked)];
      // by a name some files are left with none
      return empty.has(file) && asked.name === undefined ? [wholeFile(file, "it has no test", asked)] : [];
    });
}

/** A process that ended with an error, or without a word, did so in the test that was under way. */
function withOpen(failure: Failure, open: readonly UnderWay[]): Failure {
  const own = open.filter(({ file }) => failure.path.length === 0 && file === failure.file);
  const lines = own.map(({ path }) => `under way: ${path.join(" › ")}`);
  return { ...failure, message: [...lines, failure.message].join("\n") };
}

export function wholeFile(file: string, message: string, asked: Asked): Failure {
  return { file, path: [], message, again: again({ ...asked, file, path: [] }), cancelled: 0 };
}

/** A file that failed as a whole is a test that has the file's name. */
function failureOf({ file, path, selects, message }: FailureRecord, { group, runs, seed }: Asked): Failure {
  const [first = ""] = path;
  const whole = resolve(ROOT, first);
  const isFile = path.length === 1 && (file === undefined || whole === file);
  const name = relative(ROOT, file ?? whole);
  const alone = { group, runs, seed, file: file === undefined ? "" : name };
  return {
    file: name,
    path: isFile ? [] : path,
    message,
    again: again({ ...alone, path: isFile ? [] : path.slice(0, selects) }),
    cancelled: 0,
  };
}

interface Alone {
  readonly group: Group;
  readonly runs: number;
  readonly seed?: string | undefined;
  /** Empty: it is not known which. */
  readonly file: string;
  readonly path: readonly string[];
}

function again({ group, runs, seed = "", file, path }: Alone): string {
  const drawn = seed === "" ? "" : `BERTH_SEED=${quoted(seed)} `;
  const name = path.length === 0 ? "" : ` --name ${quoted(`^${escaped(path.join(" "))}$`)}`;
  const share = runs === 1 ? "" : ` --runs ${runs}`;
  const which = file === "" ? "" : ` ${file}`;
  return `${drawn}${NODE} ${group.by ?? `test/runner/main.ts ${group.name}`}${which}${name}${share}`;
}

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&");
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
