// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { BerthError, type FaultCode } from "../../allocator/base/errors.ts";
import { noopLogger } from "../../allocator/base/ports.ts";
import { ManualClock } from "../../system/testing/manual-clock.ts";
import { toBerthError } from "../api/status.ts";
import { eventLoopTurns } from "../testing/event-loop-turns.ts";
import { type EventInput, EventRecorder, type EventSink, type Series } from "./event-recorder.ts";

const TAKEN: EventInput = {
  regarding: { apiVersion: "v1", kind: "Pod", namespace: "shop", name: "mysql-0", uid: "u-1" },
  type: "Warning",
  reason: "AddressTaken",
  action: "Reserving",
  note: "address 10.20.0.51 is taken",
};

/** Keeps what comes, as the API server would. */
class Sink implements EventSink {
  readonly kept = new Map<string, Series>(); // name -> event
  failure: FaultCode | undefined;
  /** What the API server answers to events of which this is true: 500. */
  fails: (series: Series) => boolean = () => false;
  writes = 0;
  calls = 0;
  /** How long each call takes, by the clock. */
  callMs = 0;
  clock: ManualClock | undefined;

  async create(series: Series): Promise<void> {
    this.#write(series);
  }

  async count(series: Series): Promise<boolean> {
    if (!this.kept.has(series.name)) return false;
    this.#write(series);
    return true;
  }

  get counts(): number[] {
    return [...this.kept.values()].map(({ count }) => count);
  }

  #write(series: Series): void {
    this.calls++;
    this.clock?.advance(this.callMs);
    if (this.failure !== undefined) throw new BerthError(this.failure, "refused");
    if (this.fails(series))
      throw toBerthError({ status: 500, body: "failed calling webhook" }, "create events");
    this.writes++;
    this.kept.set(series.name, series);
  }
}

describe("EventRecorder", () => {
  let clock: ManualClock;
  let sink: Sink;
  let recorder: EventRecorder;
  let stop: AbortController;
  let running: Promise<void>;

  beforeEach(() => {
    clock = new ManualClock();
    sink = new Sink();
    let tokens = 0;
    const random = { token: () => `token${tokens++}`, fraction: () => 1 };
    recorder = new EventRecorder({ sink, clock, random, log: noopLogger });
    stop = new AbortController();
    running = recorder.run(stop.signal);
  });
  afterEach(end);

  async function end(): Promise<void> {
    stop.abort();
    await running;
  }

  async function pass(ms: number): Promise<void> {
    clock.advance(ms);
    await eventLoopTurns();
  }

  it("sends what happens at once, under a name of its own", async () => {
    recorder.record(TAKEN);
    await eventLoopTurns();
    const [event] = sink.kept.values();
    assert.deepEqual(event && { ...event }, {
      namespace: "shop",
      name: "mysql-0.token0",
      notice: TAKEN,
      firstAt: clock.now(),
      lastAt: clock.now(),
      count: 1,
      written: 0,
      dueAt: 0,
      seenAt: 0,
      tries: 0,
    });
  });

  it("counts what happens again, and writes the count once a minute", async () => {
    recorder.record(TAKEN);
    await eventLoopTurns();
    for (let i = 0; i < 100; i++) recorder.record(TAKEN);
    await eventLoopTurns();
    assert.deepEqual([sink.counts, sink.writes], [[1], 1]);
    await pass(60_000);
    assert.deepEqual([sink.counts, sink.writes], [[101], 2]);
    await pass(60_000);
    assert.equal(sink.writes, 2);
  });

  it("tells apart what differs in anything that people see", async () => {
    recorder.record(TAKEN);
    recorder.record({ ...TAKEN, note: "address 10.20.0.52 is taken" });
    recorder.record({ ...TAKEN, type: "Normal" });
    recorder.record({ ...TAKEN, regarding: { ...TAKEN.regarding, uid: "u-2" } });
    await eventLoopTurns();
    assert.deepEqual(sink.counts, [1, 1, 1, 1]);
  });

  it("begins a new event after six quiet minutes", async () => {
    recorder.record(TAKEN);
    await eventLoopTurns();
    await pass(6 * 60_000);
    recorder.record(TAKEN);
    await eventLoopTurns();
    assert.deepEqual(sink.counts, [1, 1]);
  });

  it("keeps what cannot be sent until it can", async () => {
    sink.failure = "STORE_UNAVAILABLE";
    recorder.record(TAKEN);
    await eventLoopTurns();
    recorder.record(TAKEN);
    sink.failure = undefined;
    await pass(1_000);
    assert.deepEqual(sink.counts, [2]);
  });

  const about = (namespace: string, name: string): EventInput => ({
    ...TAKEN,
    regarding: { ...TAKEN.regarding, namespace, name },
  });
  const sentIn = (namespace: string) =>
    [...sink.kept.values()].filter((event) => event.namespace === namespace).length;

  it("does not let others wait for a namespace whose events fail", async () => {
    sink.fails = ({ namespace }) => namespace === "sick";
    for (let i = 0; i < 50; i++) recorder.record(about("sick", `p${i}`));
    await eventLoopTurns();
    recorder.record(about("shop", "mysql-0"));
    await eventLoopTurns();
    assert.equal(sentIn("shop"), 1);
    assert.equal(sink.calls, 2);
    for (let s = 0; s < 600; s++) await pass(1_000);
    assert.ok(sink.calls < 20, `${sink.calls} calls`);
    sink.fails = () => false;
    await pass(60_000);
    await pass(1_000);
    assert.equal(sentIn("sick"), 50);
  });

  it("does not lose others' events for those of a namespace that fail", async () => {
    sink.fails = ({ namespace }) => namespace === "sick";
    for (let i = 0; i < 1_000; i++) recorder.record(about("sick", `p${i}`));
    await eventLoopTurns();
    recorder.record(about("shop", "mysql-0"));
    await eventLoopTurns();
    assert.equal(sentIn("shop"), 1);
  });

  it("sends what one event that fails leaves behind, and gives that one up in the end", async () => {
    sink.fails = ({ notice }) => notice.regarding.name === "bad";
    for (const name of ["bad", "mysql-0", "mysql-1"]) recorder.record(about("shop", name));
    await eventLoopTurns();
    await pass(1_000);
    assert.equal(sentIn("shop"), 2);
    for (let minute = 0; minute < 30; minute++) await pass(60_000);
    const { calls } = sink;
    for (let minute = 0; minute < 30; minute++) await pass(60_000);
    assert.deepEqual([sink.calls, calls < 30], [calls, true]);
  });

  it("gives an event a name that Kubernetes takes, wherever the object's name is cut", async () => {
    recorder.record(about("shop", `${"a".repeat(225)}-.${"b".repeat(20)}`));
    await eventLoopTurns();
    const [event] = sink.kept.values();
    assert.equal(event?.name, `${"a".repeat(225)}.token0`);
  });

  it("gives up what is refused, and goes on", async () => {
    sink.failure = "INTERNAL";
    recorder.record(TAKEN);
    await eventLoopTurns();
    sink.failure = undefined;
    recorder.record({ ...TAKEN, reason: "Other" });
    await pass(60_000);
    assert.deepEqual(
      [...sink.kept.values()].map(({ notice }) => notice.reason),
      ["Other"],
    );
  });

  it("makes a new event when somebody deleted the old one", async () => {
    recorder.record(TAKEN);
    await eventLoopTurns();
    sink.kept.clear();
    recorder.record(TAKEN);
    await pass(60_000);
    assert.deepEqual(sink.counts, []);
    recorder.record(TAKEN);
    await eventLoopTurns();
    assert.deepEqual(sink.counts, [1]);
  });

  it("is bounded", async () => {
    for (let i = 0; i < 1_500; i++) recorder.record({ ...TAKEN, note: `note ${i}` });
    await eventLoopTurns();
    await pass(60_000);
    assert.equal(sink.kept.size, 1_000);
  });

  it("forgets what was sent when there is much that is new", async () => {
    for (let i = 0; i < 1_500; i++) {
      recorder.record({ ...TAKEN, note: `note ${i}` });
      await eventLoopTurns();
    }
    assert.equal(sink.kept.size, 1_500);
  });

  it("cuts a note at the API server's 1024 bytes, between characters", async () => {
    recorder.record({ ...TAKEN, note: `a${"地".repeat(500)}` });
    await eventLoopTurns();
    const [event] = sink.kept.values();
    assert.equal(event?.notice.note, `a${"地".repeat(340)}…`);
    assert.equal(Buffer.byteLength(event.notice.note), 1_024);
  });

  it("writes at its end what is not written yet", async () => {
    recorder.record(TAKEN);
    await eventLoopTurns();
    recorder.record(TAKEN);
    await end();
    assert.deepEqual(sink.counts, [2]);
  });

  it("ends without asking for each event of a namespace that fails", async () => {
    sink.fails = ({ namespace }) => namespace === "sick";
    for (let i = 0; i < 50; i++) recorder.record(about("sick", `p${i}`));
    stop.abort();
    recorder.record(about("shop", "mysql-0"));
    await end();
    assert.deepEqual([sink.calls <= 3, sentIn("shop")], [true, 1]);
  });

  it("ends within seconds where each call takes until its deadline", async () => {
    sink.failure = "TIMED_OUT";
    sink.callMs = 10_000;
    sink.clock = clock;
    for (let i = 0; i < 30; i++) recorder.record(about(`sick-${i}`, "mysql-0"));
    const from = clock.monotonic();
    stop.abort();
    await end();
    assert.deepEqual([sink.calls, clock.monotonic() - from], [1, 10_000]);
  });

  it("asks once for each event at its end, though it becomes due again meanwhile", async () => {
    sink.failure = "TIMED_OUT";
    sink.callMs = 1_500;
    sink.clock = clock;
    stop.abort();
    for (const namespace of ["sick-0", "sick-1"]) recorder.record(about(namespace, "mysql-0"));
    await end();
    assert.equal(sink.calls, 2);
  });

  it("ends when nothing can be sent", async () => {
    sink.failure = "STORE_UNAVAILABLE";
    recorder.record(TAKEN);
    recorder.record({ ...TAKEN, reason: "Other" });
    await eventLoopTurns();
    await end();
    assert.equal(sink.kept.size, 0);
  });
});
