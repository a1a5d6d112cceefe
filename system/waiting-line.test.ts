// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { once } from "node:events";
import { Socket } from "node:net";
import { describe, it } from "node:test";
import { WaitingLine } from "./waiting-line.ts";

describe("a waiting line", () => {
  it("gives one of a peer at a time, in the order in which they came, and has peers take turns", () => {
    const line = new WaitingLine();
    const [a, b, c] = [new Socket(), new Socket(), new Socket()];
    line.add("x", a, b);
    line.add("y", c);
    assert.deepEqual([line.first, line.size], ["x", 2]);
    assert.equal(line.take("x"), a);
    assert.equal(line.first, "y");
    assert.equal(line.take("y"), c);
    assert.equal(line.take("x"), b);
    assert.deepEqual([line.take("x"), line.first, line.size], [undefined, undefined, 0]);
  });

  it("keeps nothing of a connection that closes, also in the line that took it over", async () => {
    const [line, other] = [new WaitingLine(), new WaitingLine()];
    const [a, b, c] = [new Socket(), new Socket(), new Socket()];
    line.add("x", a, b);
    line.add("y", c);
    other.takeOver("x", line);
    for (const socket of [a, c]) {
      socket.destroy();
      await once(socket, "close");
    }
    assert.deepEqual([line.size, other.size], [0, 1]);
    assert.equal(other.take("x"), b);
    assert.equal(other.size, 0);
  });
});
