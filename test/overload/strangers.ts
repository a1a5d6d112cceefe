// SPDX-License-Identifier: Apache-2.0
// Strangers who keep connections to a webhook, in a process of their own: it reads an order and says when it has what it needs,
// begins with the second line, and with each further one says what they did.
import { connect as connectTcp, type Socket } from "node:net";
import { setPriority } from "node:os";
import { createInterface } from "node:readline";
import { setTimeout as pause } from "node:timers/promises";
import { connect } from "node:tls";
import { type HostileBody, LARGE_BODIES, malformed } from "../hostile/bodies.ts";
import { type Chain, COSTLY_CHAINS, SHORT_COSTLY_CHAIN } from "../hostile/certificate-chains.ts";

export interface StrangersOrder {
  readonly port: number;
  readonly count: number;
  /** Whether bodies of some MiB come as well, each once. */
  readonly large: boolean;
}

/** What came of it: answers by status, and connections that the webhook ended. */
export type Deeds = Readonly<Record<string, number>>;

/** Each has some of these addresses' connections, as pods of a cluster would. */
const ADDRESSES = 250;
/** Between two bodies of one stranger, at the most. */
const PAUSE_MS = 3_000;
/** Between two pieces of what comes slowly. */
const PIECE_MS = 500;

type Manner = "whole" | "slowly" | "headers" | "chain" | "mute" | "idle";
/** Of twenty strangers. */
const MANNERS: readonly Manner[] = [
  ...Array.from({ length: 7 }, (): Manner => "whole"),
  ...Array.from({ length: 7 }, (): Manner => "slowly"),
  ...Array.from({ length: 3 }, (): Manner => "headers"),
  "chain",
  "mute",
  "idle",
];
/** What those show whose manner it is, if they are asked: as long as goes, and as costly as goes below the bound. */
const CHAINS: readonly Chain[] = [
  ...Object.values(COSTLY_CHAINS),
  SHORT_COSTLY_CHAIN,
  SHORT_COSTLY_CHAIN,
].map((make) => make());

const deeds: Record<string, number> = {};
function count(what: string): void {
  deeds[what] = (deeds[what] ?? 0) + 1;
}

class Stranger {
  readonly #port: number;
  readonly #address: string;
  readonly #manner: Manner;
  readonly #bodies: readonly HostileBody[];
  readonly #chain: Chain | undefined;
  #next = 0;

  constructor({ port }: StrangersOrder, n: number, bodies: readonly HostileBody[]) {
    this.#port = port;
    this.#address = `127.0.1.${1 + (n % ADDRESSES)}`;
    this.#manner = MANNERS[n % MANNERS.length] ?? "idle";
    this.#bodies = bodies;
    if (this.#manner === "chain") this.#chain = CHAINS[Math.floor(n / MANNERS.length) % CHAINS.length];
  }

  /** Connects again and again. */
  async live(): Promise<void> {
    for (;;) {
      const socket = this.#connect();
      socket.on("error", () => count("broken off"));
      const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
      const open = new Promise<void>((resolve) =>
        socket.once(this.#manner === "mute" ? "connect" : "secureConnect", () => resolve()),
      );
      await Promise.race([open, closed]);
      count("connections");
      await Promise.race([this.#use(socket), closed]);
      socket.destroy();
      await pause(PAUSE_MS * Math.random());
    }
  }

  #connect(): Socket {
    const to = { host: "127.0.0.1", port: this.#port, localAddress: this.#address };
    const secure = { ...to, rejectUnauthorized: false, ...this.#chain };
    const socket = this.#manner === "mute" ? connectTcp(to) : connect(secure);
    return socket.setMaxListeners(0); // each body waits for its end
  }

  async #use(socket: Socket): Promise<void> {
    switch (this.#manner) {
      case "mute":
      case "idle":
        return await never();
      case "headers":
        return await this.#headers(socket);
      default:
        while (!socket.destroyed) {
          await pause(PAUSE_MS * Math.random());
          await this.#ask(socket);
        }
    }
  }

  async #headers(socket: Socket): Promise<void> {
    socket.write("POST /mutate/pods HTTP/1.1\r\nHost: berth\r\n");
    for (let n = 0; !socket.destroyed; n++) {
      socket.write(`X-${n}: slow\r\n`);
      await pause(PIECE_MS);
    }
  }

  async #ask(socket: Socket): Promise<void> {
    const { route, body } = this.#bodies[this.#next++ % this.#bodies.length] ?? { route: "/", body: "" };
    const bytes = Buffer.from(body);
    const answer = new Promise<void>((resolve) => {
      socket.once("data", (text: Buffer) => {
        count(/^HTTP\/1\.1 (\d+)/.exec(text.toString("latin1"))?.[1] ?? "no HTTP");
        resolve();
      });
      socket.once("close", () => resolve());
    });
    const head = [`POST ${route} HTTP/1.1`, "Host: berth", "Content-Type: application/json"];
    socket.write(`${head.join("\r\n")}\r\nContent-Length: ${bytes.length}\r\n\r\n`);
    if (this.#manner === "whole") socket.write(bytes);
    else await dribble(socket, bytes);
    await answer;
  }
}

/** All but the last byte, which never comes; ends when the other side has had enough. */
async function dribble(socket: Socket, bytes: Buffer): Promise<void> {
  const piece = Math.max(1, Math.floor(bytes.length / 20));
  for (let at = 0; !socket.destroyed && socket.listenerCount("data") > 0; at += piece) {
    if (at + piece < bytes.length) socket.write(bytes.subarray(at, at + piece));
    await pause(PIECE_MS);
  }
}

function never(): Promise<void> {
  return new Promise(() => {});
}

function bodiesOf({ count: strangers, large }: StrangersOrder): readonly (readonly HostileBody[])[] {
  const bodies: HostileBody[][] = Array.from({ length: strangers }, () => []);
  let n = 0;
  // a step that has no divisor with the manners, so that each body comes in every manner in the course of time
  for (const body of malformed()) bodies[(n++ * 7) % strangers]?.push(body);
  if (large) {
    for (const [i, make] of LARGE_BODIES.entries())
      bodies[(i * MANNERS.length) % strangers]?.unshift({ route: "/mutate/pods", body: make() });
  }
  return bodies;
}

// others' machines do not take the processor from the webhook and from whoever measures
setPriority(19);
const input = createInterface({ input: process.stdin });
const lines = input[Symbol.asyncIterator]();
const order: StrangersOrder = JSON.parse((await lines.next()).value ?? "");
const strangers = bodiesOf(order).map((bodies, n) => new Stranger(order, n, bodies));
console.log(JSON.stringify("ready"));
await lines.next();
for (const stranger of strangers) void stranger.live();
while ((await lines.next()).done !== true) console.log(JSON.stringify(deeds));
process.exit(0);
