// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { noopLogger } from "../../allocator/base/ports.ts";
import { ManualClock } from "../../system/testing/manual-clock.ts";
import { runsOf } from "../../test/support/runs.ts";
import { CLAIMS, type KubeItem } from "../api/resource.ts";
import { eventLoopTurns } from "../testing/event-loop-turns.ts";
import { ScriptedConnection, type ScriptedResponse } from "../testing/scripted-connection.ts";
import { Reflector } from "./reflector.ts";

interface Step {
  readonly name: string;
  readonly what: "write" | "status" | "remove" | "remake" | "spoil" | "remake unseen" | "break" | "expire";
  readonly a: string;
}

interface Live {
  readonly uid: string;
  readonly a: string;
  readonly isUsable: boolean;
  readonly revision: number;
}

const anyStep: fc.Arbitrary<Step> = fc.record({
  name: fc.constantFrom("x", "y", "z"),
  what: fc.constantFrom("write", "status", "remove", "remake", "spoil", "remake unseen", "break", "expire"),
  a: fc.constantFrom("1", "2"),
});

const GONE: ScriptedResponse = { status: 410, body: { code: 410, reason: "Expired" } };

/** An API server whose watches tell of the steps, break, and come to be too old. */
class Server {
  readonly objects = new Map<string, Live>();
  readonly responses: ScriptedResponse[] = [];
  #lines: unknown[] = [];
  #revision = 10;
  #uids = 0;
  /** The watch does not tell of what happens until the next full pass. */
  #isBlind = false;

  constructor() {
    this.#list();
  }

  take({ name, what, a }: Step): void {
    const one = this.objects.get(name);
    if (what === "expire") this.#expire();
    else if (what === "break") this.#break();
    else if (what === "remake unseen") this.#remakeUnseen(name, a);
    else if (one === undefined) this.#put("ADDED", name, { uid: this.#uid(), a, isUsable: what !== "spoil" });
    else if (what === "remove" || what === "remake") this.#remove(name, one, what === "remake");
    else this.#put("MODIFIED", name, { ...one, isUsable: what !== "spoil", ...(what === "write" && { a }) });
  }

  end(): void {
    this.#expire();
    this.responses.push({ lines: this.#lines, after: "is silent" });
  }

  #expire(): void {
    this.responses.push({ lines: this.#lines, after: "breaks" }, GONE);
    this.#isBlind = false;
    this.#list();
  }

  #list(): void {
    const annotations = { "k8s.io/initial-events-end": "true" };
    const end = { metadata: { resourceVersion: String(this.#revision), annotations } };
    this.#lines = [...this.objects].map(([name, one]) => eventOf("ADDED", name, one));
    this.#lines.push({ type: "BOOKMARK", object: end });
  }

  #break(): void {
    if (this.#isBlind) return;
    this.responses.push({ lines: this.#lines, after: "breaks" });
    this.#lines = [];
  }

  #remakeUnseen(name: string, a: string): void {
    this.#isBlind = true;
    this.#put("ADDED", name, { uid: this.#uid(), a, isUsable: true });
  }

  #remove(name: string, one: Live, isMadeAgain: boolean): void {
    this.#put("DELETED", name, one);
    this.objects.delete(name);
    if (isMadeAgain) this.#put("ADDED", name, { ...one, uid: this.#uid() });
  }

  #put(type: string, name: string, next: Omit<Live, "revision">): void {
    const one = { ...next, revision: ++this.#revision };
    this.objects.set(name, one);
    if (!this.#isBlind) this.#lines.push(eventOf(type, name, one));
  }

  #uid(): string {
    return `u${++this.#uids}`;
  }
}

function eventOf(type: string, name: string, { uid, a, isUsable, revision }: Live) {
  const labels = { a, ...(isUsable ? {} : { spoilt: "" }) };
  return {
    type,
    object: { metadata: { name, namespace: "n", uid, resourceVersion: `${revision}`, labels } },
  };
}

interface Kept {
  readonly uid: string;
  readonly a: string;
  readonly more: string;
}

const plain = (kept: Kept | undefined) => kept && `${kept.uid} ${kept.a}`;

/** What is told, without what is kept by `more`, and what is kept in the end. */
async function reflected(responses: readonly ScriptedResponse[], more: (item: KubeItem) => string) {
  const clock = new ManualClock();
  const stop = new AbortController();
  const reflector = new Reflector<Kept>({
    ...{ connection: new ScriptedConnection(...responses), resource: CLAIMS, clock, log: noopLogger },
    random: { fraction: () => 0, token: () => "t" },
    project: (item) => {
      const { uid, labels: { a = "", spoilt } = {} } = item.metadata;
      if (spoilt !== undefined) throw new Error("cannot be used");
      return { uid, a, more: more(item) };
    },
    indexes: { a: ({ a }) => [a] },
  });
  const told: (readonly (string | undefined)[])[] = [];
  const unlike: string[] = [];
  reflector.onChange((key, now, before) => {
    told.push([key, plain(now), plain(before)]);
    for (const a of ["1", "2"]) {
      const having = [...reflector.all()].filter(([, kept]) => kept.a === a).map(([, { uid }]) => uid);
      const found = reflector.by("a", a).map(({ uid }) => uid);
      if (found.toSorted().join() !== having.toSorted().join()) unlike.push(`${a}: ${found}, not ${having}`);
    }
  });
  const running = reflector.run(stop.signal);
  for (let n = 0; n < responses.length * 2 + 4; n++) {
    await eventLoopTurns(8);
    clock.advance(20_000);
  }
  stop.abort();
  await running;
  const kept = new Map([...reflector.all()].map(([key, one]) => [key, plain(one)]));
  return { told, unlike, kept };
}

describe("a reflector, whatever a watch tells", () => {
  it("tells what one would that tells of every revision, but for what is alike", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(anyStep, { maxLength: 30 }), async (steps) => {
        const server = new Server();
        for (const step of steps) server.take(step);
        server.end();
        const { told, unlike, kept } = await reflected(server.responses, () => "");
        const every = await reflected(server.responses, ({ metadata }) => metadata.resourceVersion);
        assert.deepEqual(
          told,
          every.told.filter(([, now, before]) => now !== before),
        );
        assert.deepEqual(unlike, []);
        const usable = [...server.objects].filter(([, { isUsable }]) => isUsable);
        const there = new Map(usable.map(([name, { uid, a }]) => [`n/${name}`, `${uid} ${a}`]));
        assert.deepEqual(kept, there);
      }),
      { numRuns: runsOf(100) },
    );
  });
});
