// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { readdir, writeFile } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { dirname, join } from "node:path";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { pod, poolObject, statefulPod, workload } from "../support/objects.ts";
import { run } from "../support/process.ts";
import { applyAtOnce, applyTo, IPS, NO_STACK, POOL, SET } from "./shop.ts";
import { BERTHCTL, berthctl, ENV, folderFor, Stack } from "./stack.ts";

/** For commands that wait for another process: the machine may have others to run. */
const PATIENTLY = ["--wait", "10m"];

describe("berthctl up", () => {
  it("starts again behind one that was killed, with everything it knew", async (t) => {
    const dataDir = await folderFor(t);
    const first = await Stack.up(dataDir);
    t.after(() => first.stop("SIGKILL"));
    await first.apply(POOL, SET);
    await first.stop("SIGKILL");
    assert.equal((await applyAtOnce(dataDir, pod("late"))).stderr, NO_STACK(dataDir));
    const second = await Stack.up(dataDir);
    t.after(() => second.stop());
    const { stdout } = await second.apply(SET, statefulPod("mysql", 0, IPS));
    assert.deepEqual(stdout.split("\n"), [
      "statefulset/shop/mysql unchanged   mysql-0 10.20.0.51+fd00:20::51, mysql-1 10.20.0.52+fd00:20::52",
      "pod/shop/mysql-0 created   10.20.0.51, fd00:20::51",
      "",
    ]);
    assert.equal((await second.stop("SIGINT")).rc, 0);
  });

  it("makes the pools of a file, and does not start on a wrong one", async (t) => {
    const dataDir = await folderFor(t);
    const file = join(dataDir, "pools.json");
    await writeFile(file, JSON.stringify(poolObject("db", { ranges: [{ cidr: "10.20.0.7/24" }] })));
    const wrong = await berthctl(dataDir, ["up", "--pools", file]);
    assert.deepEqual([wrong.rc, wrong.stdout], [2, ""]);
    assert.match(
      wrong.stderr,
      /^Error: .*pools\.json: IPPool db: spec\.ranges\[0\]\.cidr 10\.20\.0\.7\/24 has host bits/m,
    );
    assert.deepEqual(
      (await readdir(dataDir)).sort(),
      ["pools.json", "stack.lock"],
      "nothing that looks like a stack that ended",
    );
    await writeFile(file, JSON.stringify(POOL));
    const stack = await Stack.up(dataDir, "--pools", file, "--socket", join(dataDir, "other.sock"));
    t.after(() => stack.stop());
    assert.match((await stack.call("get", "pools")).stdout, /^db /m);
    assert.ok((await readdir(dataDir)).includes("other.sock"));
  });

  for (const detached of [[], ["--detach"]]) {
    it(`makes no folder for a file of pools that is not there: up ${detached.join(" ")}`, async (t) => {
      const parent = await folderFor(t);
      const wrong = await berthctl(join(parent, "data"), ["up", "--pools", "/nowhere/x.yaml", ...detached]);
      assert.deepEqual([wrong.rc, wrong.stdout], [2, ""]);
      assert.match(
        wrong.stderr,
        /^Error: \/nowhere\/x\.yaml cannot be read: there is no such file or folder; name one that is there$/m,
      );
      assert.deepEqual(await readdir(parent), []);
    });
  }

  it("leaves a pool that is there as it is, and says so", async (t) => {
    const dataDir = await folderFor(t);
    const file = join(dataDir, "pools.json");
    await writeFile(file, JSON.stringify(POOL));
    const first = await Stack.up(dataDir, "--pools", file);
    await first.apply({ ...POOL, spec: { ...(POOL["spec"] as object), disabled: true } });
    await first.stop();
    const second = await Stack.up(dataDir, "--pools", file);
    t.after(() => second.stop());
    assert.match((await second.call("get", "pools")).stdout, /^db .* disabled /m);
    assert.match(
      (await second.stop()).stderr,
      /"key":"ippool\/db".*stays as it is; berthctl apply -f changes it/,
    );
  });

  it("says of a path that is too long for a socket how long it may be", async (t) => {
    const parent = await folderFor(t);
    const dataDir = join(parent, "d".repeat(100));
    const { rc, stderr } = await berthctl(dataDir, ["up"]);
    assert.equal(rc, 2);
    assert.match(
      stderr,
      /^Error: .*\/agent\.sock has \d+ bytes, and the path of a socket 107 at most; choose/,
    );
    assert.equal(existsSync(dataDir), false);
  });

  it("tells what apply does not keep, does not do anew, and could not do", async (t) => {
    const dataDir = await folderFor(t);
    const stack = await Stack.up(dataDir);
    t.after(() => stack.stop());
    const spec = { ...(POOL.spec as object), nodeSelector: { matchLabels: { zone: "a" } } };
    const labelled = { ...POOL, metadata: { name: "db", labels: { a: "b" } }, spec };
    const made = await stack.apply(labelled);
    assert.match(
      made.stderr,
      /^Warning: labels of an IPPool are not kept on one host; nothing reads them there$/m,
    );
    assert.match(
      made.stderr,
      /^Warning: spec\.nodeSelector of pool \S+ keeps no claim from it on one host, /m,
    );
    const set = workload("StatefulSet", "mysql", {
      replicas: 2,
      annotations: { "berth.dev/sticky": "true" },
    });
    await stack.apply(set);
    assert.equal((await stack.call("release", "shop/mysql-1")).rc, 0);
    const again = await stack.apply(set);
    assert.match(again.stdout, /unchanged/);
    assert.match(again.stderr, /^Warning: StatefulSet mysql, ordinal 1 has no claim shop\/mysql-1: /m);
    const listed = workload("StatefulSet", "listed", {
      replicas: 1,
      annotations: { "berth.dev/ips": "10.20.0.51" },
    });
    await stack.apply(listed);
    assert.equal((await stack.call("release", "shop/listed-0")).rc, 0);
    assert.equal((await stack.call("reserve", "shop/listed-0", "--address", "10.20.0.99")).rc, 0);
    const blocked = await stack.apply(listed);
    assert.match(blocked.stdout, /unchanged/);
    assert.match(
      blocked.stderr,
      /^Warning: StatefulSet listed, ordinal 0 has no claim, and its pod is refused .* made by hand and holds 10\.20\.0\.99, /m,
    );
  });

  it("goes to the background, is waited for by whoever reads, and is taken down", async (t) => {
    const dataDir = join(await folderFor(t), "data");
    const file = join(dirname(dataDir), "pools.json");
    await writeFile(file, JSON.stringify(POOL));
    t.after(() => berthctl(dataDir, ["down", ...PATIENTLY]));
    // at once: nothing is there yet
    const reading = berthctl(dataDir, ["get", "pools", ...PATIENTLY]);
    const up = await berthctl(dataDir, ["up", "--detach", "--pools", file, ...PATIENTLY]);
    assert.match(up.stdout, /^ready \(pid \d+, log .*stack\.log\)\n$/, up.stderr);
    assert.match((await reading).stdout, /^db /m);
    const again = await berthctl(dataDir, [
      "up",
      "-d",
      "--socket",
      join(dataDir, "agent.sock"),
      "--node",
      "n2",
      ...PATIENTLY,
    ]);
    assert.match(again.stdout, /^ready \(pid \d+, which was there\)\n$/);
    assert.match(again.stderr, /^Warning: --node had no effect on it; stop it first: berthctl down --data /);
    const down = await berthctl(dataDir, ["down", ...PATIENTLY]);
    assert.match(down.stdout, /^stopped \(pid \d+\)\n$/);
    assert.deepEqual(await berthctl(dataDir, ["down", ...PATIENTLY]), {
      rc: 0,
      signal: null,
      stdout: "",
      stderr: `no berth stack runs on ${dataDir}\n`,
    });
    await writeFile(file, JSON.stringify({ ...POOL, spec: { ...(POOL["spec"] as object), disabled: true } }));
    const changed = await berthctl(dataDir, ["up", "--detach", "--pools", file, ...PATIENTLY]);
    await berthctl(dataDir, ["down", ...PATIENTLY]);
    assert.deepEqual(
      [changed.rc, changed.stderr],
      [
        0,
        `Warning: ippool/db is there and differs from ${file}; it stays as it is; berthctl apply -f ${file} --data ${dataDir} changes it\n`,
      ],
    );
    await writeFile(file, JSON.stringify(poolObject("db", { ranges: [] })));
    const broken = join(dirname(dataDir), "broken");
    const wrong = await berthctl(broken, ["up", "--detach", "--pools", file, ...PATIENTLY]);
    assert.equal(wrong.rc, 2);
    assert.match(
      wrong.stderr,
      /^Error: the stack ended before it was ready: (?!Error: ).*IPPool db: spec\.ranges is empty/,
    );
  });

  it("says in the background that etcd is not reached", async (t) => {
    const dataDir = join(await folderFor(t), "data");
    const { rc, stdout, stderr } = await berthctl(dataDir, [
      "up",
      "--detach",
      "--etcd",
      "http://127.0.0.1:1",
      ...PATIENTLY,
    ]);
    await berthctl(dataDir, ["down", ...PATIENTLY]);
    assert.deepEqual([rc, /^ready \(pid \d+, log /.test(stdout)], [0, true], stdout + stderr);
    assert.match(
      stderr,
      /^Warning: .*http:\/\/127\.0\.0\.1:1.*; this host goes on trying, and no container gets a new address until then\n$/,
    );
  });

  it("names the stack that has the socket", async (t) => {
    const [dataDir, second] = [await folderFor(t), await folderFor(t)];
    const stack = await Stack.up(dataDir);
    t.after(() => stack.stop());
    const socket = join(dataDir, "agent.sock");
    const { rc, stderr } = await berthctl(second, ["up", "--socket", socket]);
    assert.equal(rc, 2);
    const which = `another berth stack \\(of ${dataDir}, pid \\d+\\) listens on ${socket}`;
    assert.match(stderr, new RegExp(`^Error: ${which}; stop it, or choose another --socket$`, "m"));
    assert.equal((await stack.stop()).rc, 0);
  });

  it("adopts no folder for a socket that the stack of another one has, and does once that has ended", async (t) => {
    const [dataDir, other] = [await folderFor(t), await folderFor(t)];
    const before = await Stack.up(other);
    assert.equal((await before.stop()).rc, 0);
    const stack = await Stack.up(dataDir);
    t.after(() => stack.stop());
    const socket = join(dataDir, "agent.sock");
    const call = ["adopt", "--socket", socket, "--yes"];
    const refused = await berthctl(other, call);
    assert.equal(refused.rc, 2, refused.stdout);
    const which = `another berth stack \\(of ${dataDir}, pid \\d+\\) listens on ${socket}`;
    assert.match(refused.stderr, new RegExp(`^Error: ${which}; stop it, or choose another --socket$`, "m"));
    assert.match((await berthctl(dataDir, call)).stdout, /there is nothing to adopt$/m);
    assert.equal((await stack.stop()).rc, 0);
    assert.match((await berthctl(other, call)).stdout, /is adopted: it serves this node from now on$/m);
  });

  it("says of a port in use which flag takes another", async (t) => {
    const server = createServer().listen(0, "127.0.0.1");
    t.after(() => server.close());
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const { rc, stderr } = await berthctl(await folderFor(t), ["up", "--webhook-port", `${port}`]);
    assert.equal(rc, 2);
    const why = `port ${port} of 127.0.0.1 is in use by another process`;
    assert.match(
      stderr,
      new RegExp(
        `^Error: ${why}; choose another with --webhook-port, or leave it out for any that is free$`,
        "m",
      ),
    );
  });

  it("gives the prompt back when a start in the background outlasts --wait, and names what still starts", async (t) => {
    const dataDir = join(await folderFor(t), "data");
    const { rc, stdout, stderr } = await berthctl(dataDir, ["up", "--detach", "--wait", "0"]);
    const applied = await applyTo(dataDir, POOL); // it goes on, and is waited for
    const down = await berthctl(dataDir, ["down"]);
    assert.deepEqual([rc, stdout, applied.rc, down.rc], [2, "", 0, 0]);
    assert.match(
      stderr,
      /^Error: the stack was not ready in 0s? \(--wait\) and is still starting \(pid \d+\); its log is .*stack\.log\n$/,
    );
  });

  it("applies the examples in any order of their files", async (t) => {
    const dataDir = await folderFor(t);
    const stack = await Stack.up(dataDir);
    t.after(() => stack.stop());
    const folder = fileURLToPath(new URL("../../examples/", import.meta.url));
    const { rc, stderr } = await stack.call("apply", "-f", folder);
    assert.deepEqual([rc, stderr], [0, ""]);
    const again = await stack.call("apply", "-f", folder);
    assert.doesNotMatch(again.stdout, /configured|created/);
  });

  it("fails where its output cannot be written, and not where nobody reads on", async (t) => {
    const dataDir = await folderFor(t);
    const stack = await Stack.up(dataDir);
    t.after(() => stack.stop());
    const shell = (line: string) =>
      run("/bin/bash", ["-c", `set -o pipefail; ${line}`, "bash", BERTHCTL, dataDir], { env: ENV });
    const full = await shell('"$1" get pools --data "$2" >/dev/full');
    assert.equal(full.rc, 2);
    assert.match(full.stderr, /^Error: the output cannot be written \(.*ENOSPC.*\)/m);
    assert.equal((await shell('"$1" get pools --data "$2" | true')).rc, 0);
  });
});
