// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, before, beforeEach, describe, it } from "node:test";
import { noopLogger } from "../../allocator/base/ports.ts";
import { AppBench } from "../testing/app-bench.ts";
import { whoShowsTokenOf } from "./metrics-token.ts";

describe("metrics for who shows a token", () => {
  let folder = "";
  const lines: string[] = [];
  const log = { ...noopLogger, warn: (message: string) => void lines.push(message) };
  const file = () => join(folder, "token");
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "berth-metrics-"));
    lines.splice(0);
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  it("are for the token that the file has now, as a bearer, and for nothing like it", () => {
    writeFileSync(file(), "first\n");
    const mayRead = whoShowsTokenOf(file(), log);
    assert.equal(mayRead("Bearer first"), true);
    assert.equal(mayRead("bearer  first "), true);
    for (const other of [
      undefined,
      "",
      "first",
      "Basic first",
      "Bearer",
      "Bearer ",
      "Bearer firs",
      "Bearer first second",
    ])
      assert.equal(mayRead(other), false, other);
    writeFileSync(file(), "second");
    assert.deepEqual([mayRead("Bearer first"), mayRead("Bearer second")], [false, true]);
    assert.deepEqual(lines, []);
  });

  it("are for nobody without a token, and the log says why", () => {
    const mayRead = whoShowsTokenOf(file(), log);
    assert.equal(mayRead("Bearer first"), false);
    assert.deepEqual(lines, ["the token for metrics cannot be read"]);
    writeFileSync(file(), "\n");
    assert.equal(mayRead("Bearer first"), false);
  });
});

describe("app: metrics for who shows a token", () => {
  let bench: AppBench;
  before(async () => {
    bench = await AppBench.open();
  });
  after(() => bench?.close());

  it("are kept from all others, in words, and probes are not", async () => {
    bench.mayReadMetrics = (authorization) => authorization === "Bearer right";
    const get = (path: string, headers: Readonly<Record<string, string>> = {}) =>
      bench.request({ method: "GET", path, body: "", headers });
    assert.equal((await get("/metrics", { Authorization: "Bearer right" })).status, 200);
    for (const headers of [{}, { Authorization: "Bearer wrong" }]) {
      const { status, text, headers: given } = await get("/metrics", headers);
      assert.deepEqual([status, given["www-authenticate"]], [401, "Bearer"]);
      assert.deepEqual(JSON.parse(text), {
        error: "metrics are for who shows the token of BERTH_METRICS_TOKEN",
      });
    }
    assert.equal((await get("/healthz")).status, 200);
  });
});
