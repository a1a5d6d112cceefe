// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { Intake, type IntakeLimits, type Place } from "./intake.ts";

const LIMITS: IntakeLimits = {
  reviews: { inAll: 6, perPeer: 4 },
  bytes: { inAll: 100, perPeer: 60 },
};

/** Enters, and says whether it was given up since. */
function enter(intake: Intake, peer: string) {
  const state = { givenUp: false };
  const place = intake.enter(peer, () => {
    state.givenUp = true;
  });
  assert.ok(typeof place !== "string", `${peer} is turned away: ${String(place)}`);
  return { place, state };
}

describe("intake", () => {
  it("bounds the reviews of a peer, until one of them is over", () => {
    const intake = new Intake(LIMITS);
    const places = [1, 2, 3, 4].map(() => enter(intake, "a").place);
    assert.equal(
      intake.enter("a", () => {}),
      "peer",
    );
    enter(intake, "b");
    places[0]?.leave();
    places[0]?.leave();
    enter(intake, "a");
    assert.equal(intake.reviews, 5);
  });

  it("bounds the bytes of a peer", () => {
    const intake = new Intake(LIMITS);
    const { place } = enter(intake, "a");
    assert.equal(place.grow(60), undefined);
    assert.equal(enter(intake, "a").place.grow(1), "peer");
    place.leave();
    assert.equal(intake.bytes, 0);
  });

  it("makes the peer with the most give up its oldest body for one that has less", () => {
    const intake = new Intake(LIMITS);
    const [oldest, next] = [enter(intake, "crowd"), enter(intake, "crowd")];
    assert.deepEqual([oldest.place.grow(20), next.place.grow(40)], [undefined, undefined]);
    assert.equal(enter(intake, "other").place.grow(40), undefined);
    const api = enter(intake, "api");
    assert.equal(api.place.grow(10), undefined);
    assert.deepEqual([oldest.state.givenUp, next.state.givenUp, intake.bytes], [true, false, 90]);
    assert.equal(oldest.place.grow(1), "peer", "it has no place any more");
  });

  it("makes nobody give up what has come whole, and turns away who has the most himself", () => {
    const intake = new Intake(LIMITS);
    const decided = enter(intake, "a");
    assert.equal(decided.place.grow(60), undefined);
    decided.place.complete();
    const b = enter(intake, "b");
    assert.equal(b.place.grow(40), undefined);
    assert.equal(enter(intake, "c").place.grow(30), undefined);
    assert.deepEqual([decided.state.givenUp, b.state.givenUp], [false, true]);
    assert.equal(enter(intake, "c").place.grow(20), "all");
  });

  it("makes room for a review in the same way", () => {
    const intake = new Intake(LIMITS);
    const crowd = [1, 2, 3, 4].map(() => enter(intake, "crowd"));
    enter(intake, "b");
    enter(intake, "c");
    enter(intake, "api");
    assert.deepEqual(
      crowd.map(({ state }) => state.givenUp),
      [true, false, false, false],
    );
    assert.equal(intake.reviews, 6);
  });

  it("never takes more than its bounds, and is empty when all have left", () => {
    const step = fc.record({
      peer: fc.constantFrom("a", "b", "c", "d"),
      act: fc.constantFrom("enter" as const, "grow" as const, "complete" as const, "leave" as const),
      which: fc.nat({ max: 9 }),
      bytes: fc.integer({ min: 1, max: 40 }),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const intake = new Intake(LIMITS);
        const places: Place[] = [];
        for (const one of steps) {
          take(intake, places, one);
          assert.ok(intake.reviews <= 6 && intake.bytes <= 100);
        }
        for (const place of places) place.leave();
        assert.deepEqual([intake.reviews, intake.bytes], [0, 0]);
      }),
    );
  });
});

interface Step {
  readonly peer: string;
  readonly act: "enter" | "grow" | "complete" | "leave";
  readonly which: number;
  readonly bytes: number;
}

function take(intake: Intake, places: Place[], { peer, act, which, bytes }: Step): void {
  const place = places[which % Math.max(1, places.length)];
  if (act === "grow") place?.grow(bytes);
  else if (act !== "enter") place?.[act]();
  else {
    const entered = intake.enter(peer, () => {});
    if (typeof entered !== "string") places.push(entered);
  }
}
