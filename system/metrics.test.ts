// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { register } from "prom-client";
import { BerthError } from "../allocator/base/errors.ts";
import { type LogFields, noopLogger } from "../allocator/base/ports.ts";
import { METRICS } from "./metric-definitions.ts";
import type { Definition } from "./metric-shape.ts";
import { createMetrics, type MetricsRegistry } from "./metrics.ts";

/** The lines of one metric, without comments. */
async function linesOf(metrics: MetricsRegistry, name: string): Promise<string[]> {
  const { body } = await metrics.expose();
  return body.split("\n").filter((line) => line.startsWith(name));
}

function internal(message: string) {
  return (error: unknown) =>
    error instanceof BerthError && error.code === "INTERNAL" && error.message === message;
}

const REVIEW = { route: "/mutate/pods", operation: "CREATE", outcome: "denied", code: "ADDRESS_TAKEN" };

describe("metrics", () => {
  it("counts by labels", async () => {
    const metrics = createMetrics(noopLogger);
    metrics.increment("berth_admission_reviews_total", REVIEW);
    metrics.increment("berth_admission_reviews_total", REVIEW);
    metrics.increment("berth_admission_reviews_total", { ...REVIEW, outcome: "patched", code: "" });
    assert.deepEqual(await linesOf(metrics, "berth_admission_reviews_total"), [
      'berth_admission_reviews_total{route="/mutate/pods",operation="CREATE",outcome="denied",code="ADDRESS_TAKEN"} 2',
      'berth_admission_reviews_total{route="/mutate/pods",operation="CREATE",outcome="patched",code=""} 1',
    ]);
  });

  it("counts without labels, from zero", async () => {
    const metrics = createMetrics(noopLogger);
    assert.deepEqual(await linesOf(metrics, "berth_store_conflicts_total"), [
      "berth_store_conflicts_total 0",
    ]);
    metrics.increment("berth_store_conflicts_total");
    assert.deepEqual(await linesOf(metrics, "berth_store_conflicts_total"), [
      "berth_store_conflicts_total 1",
    ]);
  });

  it("sorts observations into the declared buckets", async () => {
    const metrics = createMetrics(noopLogger);
    for (const seconds of [0.0004, 0.003, 7, 99]) {
      metrics.observe("berth_cni_duration_seconds", seconds, { verb: "ADD" });
    }
    const lines = await linesOf(metrics, "berth_cni_duration_seconds");
    assert.equal(lines.length, METRICS.berth_cni_duration_seconds.buckets.length + 3);
    assert.ok(lines.includes('berth_cni_duration_seconds_bucket{le="0.0005",verb="ADD"} 1'));
    assert.ok(lines.includes('berth_cni_duration_seconds_bucket{le="0.005",verb="ADD"} 2'));
    assert.ok(lines.includes('berth_cni_duration_seconds_bucket{le="10",verb="ADD"} 3'));
    assert.ok(lines.includes('berth_cni_duration_seconds_bucket{le="+Inf",verb="ADD"} 4'));
    assert.ok(lines.includes('berth_cni_duration_seconds_count{verb="ADD"} 4'));
  });

  it("asks gauges at every scrape and forgets what is gone", async () => {
    const metrics = createMetrics(noopLogger);
    let pools = ["db", "web"];
    metrics.gauge("berth_pool_addresses", () =>
      pools.map((pool) => ({ labels: { pool, family: "IPv4", state: "free" }, value: pool.length })),
    );
    metrics.gauge("berth_reservations", async () => [{ labels: {}, value: 7 }]);
    assert.deepEqual(await linesOf(metrics, "berth_pool_addresses"), [
      'berth_pool_addresses{pool="db",family="IPv4",state="free"} 2',
      'berth_pool_addresses{pool="web",family="IPv4",state="free"} 3',
    ]);
    assert.deepEqual(await linesOf(metrics, "berth_reservations"), ["berth_reservations 7"]);
    pools = ["web"];
    assert.deepEqual(await linesOf(metrics, "berth_pool_addresses"), [
      'berth_pool_addresses{pool="web",family="IPv4",state="free"} 3',
    ]);
  });

  it("does not expose a gauge that nobody collects, nor a zero that nobody measured", async () => {
    const metrics = createMetrics(noopLogger);
    assert.deepEqual(await linesOf(metrics, "berth_reservations"), []);
    metrics.gauge("berth_reservations", () => []);
    assert.deepEqual(await linesOf(metrics, "berth_reservations"), []);
  });

  it("exposes the rest when a gauge fails, and logs it", async () => {
    const logged: [string, LogFields | undefined][] = [];
    const metrics = createMetrics({
      ...noopLogger,
      warn: (message, fields) => logged.push([message, fields]),
    });
    const down = new Error("cache is gone");
    let works = true;
    metrics.gauge("berth_agent_claims", () => {
      if (!works) throw down;
      return [{ labels: {}, value: 1 }];
    });
    metrics.gauge("berth_reservations", () => [{ labels: {}, value: 2 }]);
    assert.deepEqual(await linesOf(metrics, "berth_agent_claims"), ["berth_agent_claims 1"]);
    works = false;
    assert.deepEqual(await linesOf(metrics, "berth_agent_claims"), []);
    assert.deepEqual(await linesOf(metrics, "berth_reservations"), ["berth_reservations 2"]);
    assert.deepEqual(logged[0], [
      "metric could not be collected",
      { metric: "berth_agent_claims", error: down },
    ]);
  });

  it("logs a gauge whose labels or values are wrong instead of exposing them", async () => {
    const logged: unknown[] = [];
    const metrics = createMetrics({
      ...noopLogger,
      warn: (_message, fields) => logged.push(fields?.["error"]),
    });
    metrics.gauge("berth_claims", () => [{ labels: { pod: "a" }, value: 1 }]);
    metrics.gauge("berth_reservations", () => [{ labels: {}, value: Number.NaN }]);
    const { body } = await metrics.expose();
    assert.doesNotMatch(body, /^berth_(claims|reservations) /m);
    assert.deepEqual(
      logged.map((error) => error instanceof BerthError && error.message),
      ["metric berth_claims has the labels [phase], not [pod]", "metric berth_reservations cannot be NaN"],
    );
  });

  it("shows one state per scrape when two scrapes overlap", async () => {
    const metrics = createMetrics(noopLogger);
    let scrape = 0;
    metrics.gauge("berth_pool_addresses", async () => {
      scrape++;
      const pool = `p${scrape}`;
      await new Promise((resolve) => setImmediate(resolve));
      return [{ labels: { pool, family: "IPv4", state: "free" }, value: scrape }];
    });
    const bodies = await Promise.all([metrics.expose(), metrics.expose()]);
    for (const { body } of bodies) {
      assert.equal(body.split("\n").filter((line) => line.startsWith("berth_pool_addresses{")).length, 1);
    }
  });

  for (const { name, attempt, message } of [
    {
      name: "an unknown counter",
      attempt: (m: MetricsRegistry) => m.increment("berth_nonsense_total"),
      message: "there is no metric berth_nonsense_total",
    },
    {
      name: "a name that every object has",
      attempt: (m: MetricsRegistry) => m.increment("constructor"),
      message: "there is no metric constructor",
    },
    {
      name: "counting a histogram",
      attempt: (m: MetricsRegistry) => m.increment("berth_cni_duration_seconds", { verb: "ADD" }),
      message: "metric berth_cni_duration_seconds is no counter",
    },
    {
      name: "observing a counter",
      attempt: (m: MetricsRegistry) => m.observe("berth_store_conflicts_total", 1),
      message: "metric berth_store_conflicts_total is no histogram",
    },
    {
      name: "an undeclared label",
      attempt: (m: MetricsRegistry) =>
        m.increment("berth_cni_requests_total", { verb: "ADD", outcome: "ok", pod: "mysql-0" }),
      message: "metric berth_cni_requests_total has the labels [verb,outcome,code], not [verb,outcome,pod]",
    },
    {
      name: "a missing label",
      attempt: (m: MetricsRegistry) => m.increment("berth_cni_requests_total", { verb: "ADD" }),
      message: "metric berth_cni_requests_total has the labels [verb,outcome,code], not [verb]",
    },
    {
      name: "a wrong label in place of a declared one",
      attempt: (m: MetricsRegistry) => m.increment("berth_reaper_released_total", { why: "ttl" }),
      message: "metric berth_reaper_released_total has the labels [reason], not [why]",
    },
    {
      name: "a value that is no number",
      attempt: (m: MetricsRegistry) => m.observe("berth_cni_duration_seconds", Number.NaN, { verb: "ADD" }),
      message: "metric berth_cni_duration_seconds cannot be NaN",
    },
    {
      name: "a gauge that is a counter",
      attempt: (m: MetricsRegistry) => m.gauge("berth_store_conflicts_total", () => []),
      message: "metric berth_store_conflicts_total is no gauge",
    },
  ]) {
    it(`refuses ${name}`, () => {
      assert.throws(() => attempt(createMetrics(noopLogger)), internal(message));
    });
  }

  it("joins what several add to one gauge, and what one of them cannot say is missing alone", async () => {
    const metrics = createMetrics(noopLogger);
    metrics.gauge("berth_watch_synced", () => [{ labels: { kind: "IPClaim" }, value: 1 }]);
    metrics.gauge("berth_watch_synced", () => [{ labels: { kind: "Pod" }, value: 0 }]);
    metrics.gauge("berth_watch_synced", () => assert.fail("it cannot say"));
    assert.deepEqual(await linesOf(metrics, "berth_watch_synced"), [
      'berth_watch_synced{kind="IPClaim"} 1',
      'berth_watch_synced{kind="Pod"} 0',
    ]);
  });

  it("exposes those of its part alone", async () => {
    const { body } = await createMetrics(noopLogger, "agent").expose();
    assert.match(body, /^# TYPE berth_cni_requests_total counter$/m);
    assert.match(body, /^# TYPE berth_api_requests_total counter$/m);
    assert.doesNotMatch(body, /berth_admission/);
  });

  it("exposes the process itself if it is asked to", async () => {
    const metrics = createMetrics(noopLogger);
    assert.deepEqual(await linesOf(metrics, "nodejs_eventloop_lag_p99_seconds"), []);
    metrics.watchProcess();
    assert.equal((await linesOf(metrics, "nodejs_eventloop_lag_p99_seconds")).length, 1);
    assert.equal((await linesOf(metrics, "process_resident_memory_bytes")).length, 1);
  });

  it("names metrics as Prometheus asks: counters end in _total, times in _seconds", () => {
    for (const [name, { type }] of Object.entries<Definition>(METRICS)) {
      assert.match(name, /^berth_[a-z_]+$/);
      assert.equal(name.endsWith("_total"), type === "counter", name);
      if (type === "histogram") assert.ok(name.endsWith("_seconds"), name);
    }
  });

  it("has no label that grows with the pods or addresses of a cluster", () => {
    const bounded = new Set([
      ...["route", "operation", "outcome", "code", "phase", "state", "pool", "family", "reason"],
      ...["certificate", "queue", "kind", "verb", "resource", "component", "version", "source"],
    ]);
    for (const [name, { labels }] of Object.entries<Definition>(METRICS))
      for (const label of labels) assert.ok(bounded.has(label), `${name} has the label ${label}`);
  });

  it("keeps to its own registry: two sets do not share values, and the global one stays empty", async () => {
    const one = createMetrics(noopLogger);
    const other = createMetrics(noopLogger);
    one.increment("berth_store_conflicts_total");
    assert.deepEqual(await linesOf(other, "berth_store_conflicts_total"), ["berth_store_conflicts_total 0"]);
    assert.deepEqual(register.getMetricsAsArray(), []);
    assert.equal((await one.expose()).contentType, "text/plain; version=0.0.4; charset=utf-8");
  });
});
