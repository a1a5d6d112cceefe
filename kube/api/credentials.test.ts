// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import type { RequestOptions } from "node:https";
import { describe, it } from "node:test";
import { ManualClock } from "../../system/testing/manual-clock.ts";
import { type ApiAccess, type Credentials, TokenSource } from "./credentials.ts";

/** Each asking waits until it is given its token. */
class Askings implements ApiAccess {
  readonly signals: (AbortSignal | undefined)[] = [];
  readonly #answers: ((token: string) => void)[] = [];

  getCurrentCluster() {
    return { server: "https://127.0.0.1:1" };
  }

  async applyToHTTPSOptions(options: RequestOptions): Promise<void> {
    this.signals.push(options.signal);
    const { promise, resolve } = Promise.withResolvers<string>();
    this.#answers.push(resolve);
    options.headers = { authorization: await promise };
  }

  answer(nth: number, token: string): void {
    this.#answers[nth]?.(token);
  }
}

const tokenOf = ({ options }: Credentials) => Object(options.headers).authorization;

async function known() {
  const [access, clock] = [new Askings(), new ManualClock()];
  const source = new TokenSource(access, clock);
  const current = () => source.current(clock.monotonic() + 60_000);
  const first = current();
  access.answer(0, "one");
  return { access, clock, source, current, first: await first };
}

describe("credentials that were refused", () => {
  it("are asked for once, however many calls were sent with them", async () => {
    const { access, source, current, first } = await known();
    source.refused(first);
    const calls = [current()];
    for (let n = 0; n < 3; n++) {
      source.refused(first); // of a call that was under way at the same time
      calls.push(current());
    }
    assert.equal(access.signals.length, 2);
    access.answer(1, "two");
    assert.deepEqual((await Promise.all(calls)).map(tokenOf), Array(4).fill("two"));
    source.refused(first);
    assert.equal(tokenOf(await current()), "two");
    source.refused(await current());
    const third = current();
    access.answer(2, "three");
    assert.equal(tokenOf(await third), "three");
  });

  it("are not known again by an asking that began before", async () => {
    const { access, clock, source, current, first } = await known();
    clock.advance(10_000);
    const early = current();
    source.refused(first);
    access.answer(1, "one");
    assert.equal(tokenOf(await early), "one");
    const later = current();
    assert.equal(access.signals.length, 3);
    access.answer(2, "two");
    assert.equal(tokenOf(await later), "two");
  });

  it("are waited for no more in a connection that is closed, whenever they were asked for", async () => {
    const { access, clock, source, current, first } = await known();
    clock.advance(10_000);
    const early = assert.rejects(current(), { code: "TIMED_OUT" });
    source.refused(first);
    const later = assert.rejects(current(), { code: "TIMED_OUT" });
    source.close();
    await Promise.all([early, later]);
    assert.deepEqual(
      access.signals.slice(1).map((signal) => signal?.aborted),
      [true, true],
    );
  });
});
