// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { lstat, mkdir, readdir, rename, rm, stat, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { decodeReply, encodeCall } from "../testing/client-frames.ts";
import { ACK, callOf, fine, SocketBench, slowHandler, until } from "../testing/socket-bench.ts";
import type { Outcome } from "./connection.ts";
import { NOT_ACCEPTED, STDIN_LIMIT } from "./frame.ts";
import { serveSocket } from "./server.ts";

describe("agent's socket", () => {
  let bench: SocketBench;
  beforeEach(async () => {
    bench = await SocketBench.open();
  });
  afterEach(() => bench.close());

  it("hangs up on what is no request and goes on serving", async () => {
    const { handle, begun, release } = slowHandler();
    await bench.serve(handle);
    const whole = encodeCall(callOf("a"));
    for (const bytes of [Buffer.from("GET / HTTP/1.1\r\n\r\n"), Buffer.concat([whole, ACK])]) {
      const stranger = bench.client(bytes);
      await until(() => stranger.ended);
      assert.equal(stranger.bytes.length, 0);
    }
    const eager = bench.client(whole);
    await until(() => begun.length === 1);
    eager.socket.write(ACK);
    await until(() => eager.ended && begun[0]?.aborted === true);
    release();
    assert.deepEqual(await bench.client(whole).reply(), fine);
  });

  it("answers at once that it has too much to do, and takes calls again afterwards", async () => {
    const { handle, begun, release } = slowHandler();
    await bench.serve(handle, { maxConcurrent: 2 });
    const two = [bench.client(encodeCall(callOf("a"))), bench.client(encodeCall(callOf("a")))];
    await until(() => begun.length === 2);
    const third = bench.client(encodeCall(callOf("a")));
    const { exitStatus, stdout } = await third.reply();
    assert.equal(exitStatus, NOT_ACCEPTED);
    assert.deepEqual(JSON.parse(stdout), {
      cniVersion: "1.1.0",
      code: 11,
      msg: "the berth agent has too many calls at once; try again later",
    });
    release();
    for (const one of two) {
      await one.reply();
      one.socket.end(ACK);
      await until(() => one.ended);
    }
    assert.deepEqual(await bench.client(encodeCall(callOf("a"))).reply(), fine);
    assert.equal(begun.length, 3);
  });

  it("bounds the memory of requests that never end", async () => {
    await bench.serve(async () => fine);
    const bytes = encodeCall({ ...callOf("a"), stdin: Buffer.alloc(STDIN_LIMIT) }).subarray(0, 200_000);
    const clients = Array.from({ length: 12 }, () => bench.client(bytes));
    await until(() => clients.filter((one) => one.bytes.length > 0).length >= 3);
    assert.equal(
      decodeReply(clients.find((one) => one.bytes.length > 0)?.bytes ?? Buffer.alloc(0)).kind,
      "complete",
    );
    for (const one of clients) one.socket.destroy();
    const whole = encodeCall({ ...callOf("a"), stdin: Buffer.alloc(STDIN_LIMIT) });
    await until(() => clients.every((one) => one.ended));
    assert.deepEqual(await bench.client(whole).reply(), fine);
  });

  it("makes its bench.folder and socket for root alone and removes the socket at the end", async () => {
    bench.path = join(bench.folder, "run", "berth", "agent.sock");
    await bench.serve(async () => fine);
    assert.equal((await lstat(bench.path)).mode & 0o777, 0o600);
    assert.equal((await stat(join(bench.folder, "run", "berth"))).mode & 0o777, 0o700);
    await bench.server?.close();
    assert.deepEqual(await readdir(join(bench.folder, "run", "berth")), []);
  });

  it("makes its socket again where somebody has removed it, with its folder, and ends calls that came before", async () => {
    bench.path = join(bench.folder, "run", "agent.sock");
    const { handle, begun, release } = slowHandler();
    await bench.serve(handle);
    const early = bench.client(encodeCall(callOf("a")));
    await until(() => begun.length === 1);
    await rm(join(bench.folder, "run"), { recursive: true });
    await bench.tick();
    await until(() => existsSync(bench.path) && bench.lines.length > 0);
    assert.deepEqual(bench.lines, ["the socket was gone, and is made again"]);
    assert.equal((await lstat(bench.path)).mode & 0o777, 0o600);
    release();
    assert.deepEqual(await early.reply(), fine);
    early.socket.end(ACK);
    const late = bench.client(encodeCall(callOf("b")));
    assert.deepEqual(await late.reply(), fine);
    late.socket.end(ACK);
    await until(() => early.ended && late.ended);
    await bench.server?.close();
    assert.deepEqual(await readdir(join(bench.folder, "run")), []);
  });

  it("makes its socket again where the one that was removed is put back", async () => {
    bench.path = join(bench.folder, "run", "agent.sock");
    await bench.serve(async () => fine);
    const aside = join(bench.folder, "aside");
    await rename(join(bench.folder, "run"), aside); // as under a mount
    await bench.tick();
    await until(() => bench.lines.length === 1);
    await rm(join(bench.folder, "run"), { recursive: true });
    await rename(aside, join(bench.folder, "run"));
    await bench.tick();
    await until(() => bench.lines.length === 2);
    assert.deepEqual(bench.lines, Array(2).fill("the socket was gone, and is made again"));
    assert.deepEqual(await bench.client(encodeCall(callOf("a"))).reply(), fine);
  });

  it("leaves a socket alone that another listens on, until nobody does", async () => {
    await bench.serve(async () => fine);
    const other = createServer((socket) => socket.on("error", () => {}).end("other"));
    await rm(bench.path);
    other.listen(bench.path);
    await once(other, "listening");
    await bench.tick();
    await bench.tick();
    const client = bench.client();
    await until(() => client.ended);
    assert.deepEqual([String(client.bytes), bench.lines], ["other", []]);
    other.close();
    await bench.tick();
    await until(() => bench.lines.length === 1);
    assert.deepEqual(await bench.client(encodeCall(callOf("a"))).reply(), fine);
  });

  it("says once that something else is in its socket's place, each time, and makes it when that is gone", async () => {
    await bench.serve(async () => fine);
    const lost = "the socket is gone, and cannot be made again; no call comes";
    const again = "the socket was gone, and is made again";
    for (let n = 1; n <= 2; n++) {
      await rm(bench.path);
      await mkdir(bench.path); // as a runtime does that is to mount it
      await bench.tick();
      await bench.tick();
      await until(() => bench.lines.length === 2 * n - 1);
      await rm(bench.path, { recursive: true });
      await bench.tick();
      await until(() => bench.lines.length === 2 * n);
    }
    assert.deepEqual(bench.lines, [lost, again, lost, again]);
    assert.deepEqual(await bench.client(encodeCall(callOf("a"))).reply(), fine);
  });

  it("says once that its socket cannot be made again, and makes it when it can", async () => {
    bench.path = join(bench.folder, "run", "agent.sock");
    await bench.serve(async () => fine);
    await rm(join(bench.folder, "run"), { recursive: true });
    await writeFile(join(bench.folder, "run"), "");
    await bench.tick();
    await bench.tick();
    await until(() => bench.lines.length > 0);
    await rm(join(bench.folder, "run"));
    await bench.tick();
    await until(() => bench.lines.length > 1);
    const words = [
      "the socket is gone, and cannot be made again; no call comes",
      "the socket was gone, and is made again",
    ];
    assert.deepEqual(bench.lines, words);
    assert.deepEqual(await bench.client(encodeCall(callOf("a"))).reply(), fine);
  });

  it("replaces the socket file of an agent that was killed", async () => {
    const killed = createServer();
    killed.listen(join(bench.folder, "other.sock"));
    await once(killed, "listening");
    await rename(join(bench.folder, "other.sock"), bench.path); // so that closing does not remove it
    await new Promise((resolve) => killed.close(resolve));
    assert.ok((await lstat(bench.path)).isSocket());
    await bench.serve(async () => fine);
    assert.deepEqual(await bench.client(encodeCall(callOf("a"))).reply(), fine);
  });

  it("does not take the socket of an agent that lives", async () => {
    await bench.serve(async () => fine);
    await assert.rejects(
      serveSocket({ path: bench.path, handle: async () => fine, log: bench.log, clock: bench.clock }),
      {
        code: "CONFIG_INVALID",
        message: `another berth agent listens on ${bench.path}; stop it or choose another socket`,
      },
    );
    assert.deepEqual(await bench.client(encodeCall(callOf("a"))).reply(), fine);
  });

  it("says which bench.path cannot be used", async () => {
    await writeFile(bench.path, "precious");
    const long = join(bench.folder, "x".repeat(120));
    const messages: Record<string, string> = {
      [bench.path]: `${bench.path} exists and is no socket; remove it or choose another socket`,
      [join(bench.path, "agent.sock")]: `cannot listen on ${join(bench.path, "agent.sock")}: `,
      [long]: `cannot listen on ${long}: `,
    };
    for (const [wrong, message] of Object.entries(messages)) {
      await assert.rejects(
        serveSocket({ path: wrong, handle: async () => fine, log: bench.log, clock: bench.clock }),
        (error: Error) => {
          assert.equal("code" in error && error.code, "CONFIG_INVALID");
          assert.ok(error.message.startsWith(message), error.message);
          return true;
        },
      );
    }
  });

  it("closes when the calls under way have ended", async () => {
    const { handle, begun, outcomes, release } = slowHandler();
    await bench.serve(handle);
    const one = bench.client(encodeCall(callOf("a")));
    await until(() => begun.length === 1);
    let closed = false;
    const closing = bench.server?.close().then(() => {
      closed = true;
    });
    assert.equal(bench.server?.close(), bench.server?.close());
    const late = bench.client(encodeCall(callOf("a")));
    await until(() => late.ended);
    release();
    assert.deepEqual(await one.reply(), fine);
    assert.equal(closed, false);
    one.socket.end(ACK);
    await closing;
    assert.deepEqual(outcomes, ["delivered"]);
    assert.equal(bench.clock.sleeping, 0);
  });

  it("cuts off what does not end, and calls an answer lost only if it is", async () => {
    const heard: [string, Outcome][] = [];
    const { promise: stuck, resolve: unstick } = Promise.withResolvers<void>();
    const begun: AbortSignal[] = [];
    await bench.serve(async (call, signal) => {
      const id = call.env.get("CNI_CONTAINERID") ?? "";
      begun.push(signal);
      if (id === "stuck") await stuck;
      return { ...fine, settle: (outcome) => void heard.push([id, outcome]) };
    });
    const clientsLeft = [
      bench.client(encodeCall(callOf("stuck"))),
      bench.client(encodeCall(callOf("printing"))),
    ];
    await until(() => begun.length === 2);
    await clientsLeft[1]?.reply();
    const closing = bench.server?.close();
    await until(() => bench.clock.sleeping === 2);
    bench.clock.advance(5_000);
    await until(() => begun[0]?.aborted === true);
    unstick();
    await closing;
    // The second client may have printed the result and be about to acknowledge: its address must not be given away.
    assert.deepEqual(heard.toSorted(), [
      ["printing", "delivered"],
      ["stuck", "lost"],
    ]);
  });
});
