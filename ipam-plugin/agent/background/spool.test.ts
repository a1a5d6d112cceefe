// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { mkdir, mkdtemp, readdir, rm, symlink, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { setImmediate } from "node:timers/promises";
import { noopLogger } from "../../../allocator/base/ports.ts";
import { ManualClock } from "../../../system/testing/manual-clock.ts";
import type { Answer } from "../rpc/connection.ts";
import { type Call, REQUEST_LIMIT } from "../rpc/frame.ts";
import { encodeCall } from "../testing/client-frames.ts";
import { replaySpool, watchSpool } from "./spool.ts";

const done: Answer = { exitStatus: 0, stdout: "", stderr: "" };
const failed = (code: number): Answer => ({
  exitStatus: 1,
  stdout: JSON.stringify({ code, msg: "x" }),
  stderr: "",
});

function call(containerID: string, command = "DEL"): Call {
  const env = new Map([
    ["CNI_COMMAND", command],
    ["CNI_CONTAINERID", containerID],
  ]);
  return { startNs: 7n, env, stdin: Buffer.from('{"name":"net"}') };
}

const nameAt = (ns: number, pid = 1) => `${String(ns).padStart(20, "0")}-${pid}.del`;
const idOf = (seen: Call) => seen.env.get("CNI_CONTAINERID") ?? "";

async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  for (const giveUp = Date.now() + 20_000; Date.now() < giveUp; ) {
    if (await holds()) return;
    await setImmediate();
  }
  assert.fail(`never came true: ${holds}`);
}

describe("spool", () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "berth-spool-"));
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  const put = (name: string, bytes: Buffer | string) => writeFile(join(folder, name), bytes);

  it("takes a release of another boot for older than whatever there is in this one", async () => {
    const [here, there] = ["11111111-2222-3333-4444-555555555555", "66666666-7777-8888-9999-000000000000"];
    const named = (ns: number, boot: string) => nameAt(ns).replace(".del", `-${boot}.del`);
    await put(named(5, here), encodeCall(call("here")));
    await put(named(6, there), encodeCall(call("there")));
    await put(nameAt(7), encodeCall(call("unsaid")));
    const seen: (readonly [string, bigint])[] = [];
    const handle = async (given: Call) => {
      seen.push([idOf(given), given.startNs]);
      return done;
    };
    await replaySpool(folder, handle, noopLogger, here);
    const { startNs } = call("any");
    assert.deepEqual(seen, [
      ["here", startNs],
      ["there", 0n],
      ["unsaid", startNs],
    ]);
    assert.deepEqual(await readdir(folder), []);
  });

  it("replays releases, oldest first, and deletes them", async () => {
    for (const [i, id] of ["c", "a", "b"].entries()) await put(nameAt(10 ** i * 5), encodeCall(call(id)));
    const seen: Call[] = [];
    const handle = async (given: Call) => {
      seen.push(given);
      return done;
    };
    const replayed = await replaySpool(folder, handle, noopLogger);
    assert.deepEqual(seen, [call("c"), call("a"), call("b")]);
    assert.deepEqual(replayed.released, [nameAt(5), nameAt(50), nameAt(500)]);
    assert.deepEqual(await readdir(folder), []);
  });

  it("finds nothing in a folder that is not there", async () => {
    const nobody = () => assert.fail("nothing to handle");
    const { released, kept, bad } = await replaySpool(join(folder, "none"), nobody, noopLogger);
    assert.deepEqual([released, kept, bad], [[], [], []]);
  });

  it("throws a fault when the folder is none", async () => {
    await put("file", "");
    await assert.rejects(
      replaySpool(join(folder, "file"), async () => done, noopLogger),
      { code: "STORE_UNAVAILABLE" },
    );
  });

  it("moves aside what is no release, and runs what comes behind it", async () => {
    const whole = encodeCall(call("z"));
    await put(nameAt(1), "");
    await put(nameAt(2), "garbage");
    await put(nameAt(3), whole.subarray(0, -1));
    await put(nameAt(4), Buffer.concat([whole, whole]));
    await put(nameAt(5), encodeCall(call("added", "ADD")));
    await mkdir(join(folder, nameAt(6)));
    await symlink("/dev/zero", join(folder, nameAt(7)));
    await put(nameAt(8), whole);
    await truncate(join(folder, nameAt(8)), REQUEST_LIMIT + 1);
    await put(nameAt(9), whole);
    const seen: string[] = [];
    const handle = async (given: Call) => {
      seen.push(idOf(given));
      return done;
    };
    const replayed = await replaySpool(folder, handle, noopLogger);
    const bad = [1, 2, 3, 4, 5, 6, 7, 8].map((ns) => nameAt(ns));
    assert.deepEqual(seen, ["z"]);
    assert.deepEqual(replayed.bad, bad);
    assert.deepEqual(
      await readdir(folder),
      bad.map((name) => `${name}.bad`),
    );
    assert.deepEqual((await replaySpool(folder, handle, noopLogger)).bad, []);
  });

  it("leaves alone what a client is still writing", async () => {
    await put(`.${nameAt(1)}`, encodeCall(call("half")));
    await put("note.txt", "");
    await replaySpool(folder, () => assert.fail("nothing to handle"), noopLogger);
    assert.deepEqual((await readdir(folder)).sort(), [`.${nameAt(1)}`, "note.txt"]);
  });

  it("keeps a release that failed for the moment and moves aside one that never can be", async () => {
    const answers: Record<string, Answer | Error> = {
      later: failed(11),
      disk: failed(5),
      refused: failed(7),
      mute: { exitStatus: 1, stdout: "?", stderr: "" },
      thrown: new Error("broken"),
      busy: { ...failed(11), exitStatus: 75 },
    };
    for (const [i, id] of Object.keys(answers).entries()) await put(nameAt(i), encodeCall(call(id)));
    const handle = async (given: Call) => {
      const answer = answers[idOf(given)];
      if (answer === undefined || answer instanceof Error) throw answer;
      return answer;
    };
    const replayed = await replaySpool(folder, handle, noopLogger);
    assert.deepEqual(replayed.bad, [nameAt(2)]);
    assert.deepEqual(
      replayed.kept,
      [0, 1, 3, 4, 5].map((ns) => nameAt(ns)),
    );
    assert.equal((await readdir(folder)).length, 6);
  });

  it("takes in releases that arrive while the agent serves, until it is told to stop", async () => {
    const clock = new ManualClock();
    const stop = new AbortController();
    const seen: string[] = [];
    const handle = async (given: Call) => {
      seen.push(idOf(given));
      return done;
    };
    const watching = watchSpool({ folder, handle, log: noopLogger, clock, signal: stop.signal });
    await until(() => clock.sleeping === 1);
    await put(nameAt(1), encodeCall(call("late")));
    assert.deepEqual(seen, []);
    clock.advance(1_000);
    await until(() => clock.sleeping === 1);
    assert.deepEqual(seen, ["late"]);
    assert.deepEqual(await readdir(folder), []);
    stop.abort();
    await watching;
    assert.equal(clock.sleeping, 0);
  });

  it("tries a release that fails ever more seldom, and others meanwhile", async () => {
    const clock = new ManualClock();
    const stop = new AbortController();
    const tries: number[] = [];
    let poll = 0;
    const handle = async (given: Call) => {
      if (idOf(given) === "good") return done;
      tries.push(poll);
      return failed(11);
    };
    await put(nameAt(1), encodeCall(call("stubborn")));
    const watching = watchSpool({ folder, handle, log: noopLogger, clock, signal: stop.signal });
    for (; poll < 20; ) {
      await until(() => clock.sleeping === 1);
      if (poll === 9) await put(nameAt(2), encodeCall(call("good")));
      poll += 1;
      clock.advance(1_000);
    }
    stop.abort();
    await watching;
    assert.deepEqual(tries, [0, 1, 3, 7, 15]);
    assert.deepEqual(await readdir(folder), [nameAt(1)]);
  });

  it("goes on watching when the folder cannot be read for a while", async () => {
    const clock = new ManualClock();
    const stop = new AbortController();
    const spool = join(folder, "spool");
    await writeFile(spool, "in the way");
    const seen: string[] = [];
    const handle = async (given: Call) => {
      seen.push(idOf(given));
      return done;
    };
    const watching = watchSpool({ folder: spool, handle, log: noopLogger, clock, signal: stop.signal });
    await until(() => clock.sleeping === 1);
    await rm(spool);
    await mkdir(spool);
    await writeFile(join(spool, nameAt(1)), encodeCall(call("patient")));
    clock.advance(1_000);
    await until(() => clock.sleeping === 1);
    assert.deepEqual(seen, ["patient"]);
    stop.abort();
    await watching;
  });
});
