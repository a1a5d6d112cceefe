// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { Socket } from "node:net";
import { describe, it } from "node:test";
import { Handshakes } from "./handshakes.ts";

/** A client's connection that is named for its peer. */
class Client extends Socket {
  readonly name: string;
  readonly peer: string;

  constructor(name: string) {
    super();
    this.name = name;
    this.peer = name.slice(0, 1);
  }

  speak(): void {
    this.emit("readable");
  }
}

/** Clients' handshakes in the order in which they begin; of peer `p` somebody proved himself. */
class Line {
  readonly begun: string[] = [];
  readonly #handshakes: Handshakes;
  #waiting: (() => void) | undefined;

  constructor(onBegin: (name: string) => void = () => {}) {
    const begin = (socket: Socket) => {
      if (!(socket instanceof Client)) return;
      this.begun.push(socket.name);
      onBegin(socket.name);
      this.#waiting?.();
    };
    this.#handshakes = new Handshakes(begin, new Set(["p"]));
  }

  took(peer: string, ms: number): void {
    this.#handshakes.took(peer, ms, ms);
  }

  expect(...names: readonly string[]): readonly Client[] {
    return names.map((name) => {
      const client = new Client(name);
      this.#handshakes.expect(client.peer, client);
      return client;
    });
  }

  /** So many, once they have begun. */
  async all(count: number): Promise<readonly string[]> {
    while (this.begun.length < count)
      await new Promise<void>((resolve) => {
        this.#waiting = resolve;
      });
    return this.begun;
  }
}

describe("handshakes", () => {
  it("begin by turns of their peers, and of who proved himself first", async () => {
    const line = new Line();
    for (const client of line.expect("a1", "a2", "a3", "b1", "b2", "p1", "p2")) client.speak();
    assert.deepEqual(await line.all(7), ["p1", "p2", "a1", "b1", "a2", "b2", "a3"]);
  });

  it("of who proved himself do not wait while strangers do", async () => {
    const line = new Line((name) => {
      if (name === "a1") late?.speak();
    });
    const [late] = line.expect("p1");
    for (const client of line.expect("a1", "b1", "c1")) client.speak();
    assert.deepEqual(await line.all(4), ["a1", "p1", "b1", "c1"]);
  });

  it("wait for the client to speak, and pass over who is gone", async () => {
    const line = new Line();
    const [silent, gone, here] = line.expect("a1", "b1", "c1");
    gone?.speak();
    here?.speak();
    gone?.destroy();
    assert.deepEqual(await line.all(1), ["c1"]);
    silent?.speak();
    assert.deepEqual(await line.all(2), ["c1", "a1"]);
  });

  it("of whoever's are costly go last, and rest together", async () => {
    const line = new Line((name) => {
      if (name === "a1" || name === "b1") line.took(name.slice(0, 1), 30);
    });
    const names = ["a1", "b1", "a2", "b2", "c1", "c2", "d1", "d2"];
    for (const client of line.expect(...names)) client.speak();
    // 200 times as long as the last one took: nobody waits for that here
    assert.deepEqual(await line.all(6), ["a1", "b1", "c1", "d1", "c2", "d2"]);
    const [late] = line.expect("e1");
    late?.speak();
    assert.equal((await line.all(7)).at(-1), "e1");
  });

  it("of whoever's are costly begin in the end", async () => {
    const line = new Line();
    line.took("a", 3);
    for (const client of line.expect("a1", "b1", "a2")) client.speak();
    // the second one of them a second later
    assert.deepEqual(await line.all(2), ["b1", "a1"]);
    const [late] = line.expect("c1");
    late?.speak();
    assert.deepEqual(await line.all(4), ["b1", "a1", "c1", "a2"]);
  });

  it("of whoever proved himself go on where others make costly ones behind the same address", async () => {
    const line = new Line((name) => {
      if (name === "p1") line.took("p", 300);
    });
    for (const client of line.expect("p1", "p2", "a1")) client.speak();
    assert.deepEqual(await line.all(3), ["p1", "a1", "p2"]);
  });

  it("of more addresses than there is a rest for all begin", async () => {
    const line = new Line();
    const names = Array.from({ length: 400 }, (_, n) => String.fromCharCode(0x4e00 + n));
    for (const client of line.expect(...names)) client.speak();
    assert.deepEqual(await line.all(400), names);
  });
});
