// SPDX-License-Identifier: Apache-2.0
// build.sh with a `go` that compiles nothing.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { cacheFolder } from "../api/binaries.ts";

const GO = `#!/bin/bash
while [ $# -gt 0 ]; do
  if [ "$1" = -o ]; then echo built >"$2"; fi
  shift
done
`;

describe("the build of a control plane", () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "berth-build-"));
    writeFileSync(join(folder, "go"), GO, { mode: 0o755 });
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  function build(env: NodeJS.ProcessEnv): string {
    const script = join(import.meta.dirname, "build.sh");
    const path = `${folder}:${process.env["PATH"]}`;
    const { stdout, stderr, status } = spawnSync("bash", [script, "etcd"], {
      encoding: "utf8",
      env: { PATH: path, ...env },
    });
    assert.equal(status, 0, stderr);
    return stdout.trim();
  }

  it("is where tests look for it, also for a service, which has no HOME", () => {
    const { homedir } = userInfo();
    const there = build({ TEST_ASSET_ETCD: "/somewhere/etcd" });
    assert.equal(there, cacheFolder({ XDG_CACHE_HOME: join(homedir, ".cache") }));
  });

  it("removes what one that was killed had half of", () => {
    const environment = { XDG_CACHE_HOME: folder };
    const cache = cacheFolder(environment);
    mkdirSync(cache, { recursive: true });
    writeFileSync(join(cache, ".etcd.A1b2C3"), "half");
    build(environment);
    assert.deepEqual(readdirSync(cache).sort(), [".lock", "etcd"]);
  });
});
