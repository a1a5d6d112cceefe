// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { victimOf } from "./victim.ts";

const silent = (used: number) => ({ hasAsked: false, used });
const asked = (used: number) => ({ hasAsked: true, used });

describe("the connection that goes", () => {
  it("never asked anything, and its peer has the most such", () => {
    assert.equal(victimOf([[asked(1), asked(2), asked(3)], [silent(9)]])?.used, 9);
    assert.equal(victimOf([[asked(1), silent(7)], [silent(8), silent(9)], [silent(5)]])?.used, 8);
  });

  it("is of the peer with the most where all have asked", () => {
    assert.equal(victimOf([[asked(1)], [asked(2), asked(3)]])?.used, 2);
  });

  it("is the one that was not used for longest where peers have as many, one each also", () => {
    assert.equal(victimOf([[silent(3)], [silent(2)], [silent(4)]])?.used, 2);
    assert.equal(victimOf([[asked(3)], [asked(2)], [asked(4)]])?.used, 2);
  });

  it("is none where none may go", () => {
    assert.equal(victimOf([[], []]), undefined);
  });
});
