// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { bindingTo, claimRecord } from "../../test/support/fixtures.ts";
import type { Claim } from "../model/claim.ts";
import { ASSIGNED_CLAIM, ASSIGNED_TOKEN } from "./annotations.ts";
import { type ClaimRef, claimRefsFor, matchesRef } from "./pod-claim.ts";

const POD = { namespace: "shop", name: "mysql-0" };
const OWN: ClaimRef = { key: "shop/mysql-0", token: "" };

describe("claimRefsFor", () => {
  const rows: readonly (readonly [string, Record<string, string>, readonly ClaimRef[]])[] = [
    ["by its name, without annotations", {}, [OWN]],
    ["by its name, with the claim's name alone", { [ASSIGNED_CLAIM]: "other" }, [OWN]],
    ["by its name, with an empty token", { [ASSIGNED_CLAIM]: "other", [ASSIGNED_TOKEN]: "" }, [OWN]],
    ["by its name, with a token of nothing", { [ASSIGNED_TOKEN]: "t1" }, [OWN]],
    [
      "by its token, then by its name",
      { [ASSIGNED_CLAIM]: "web-slot-1", [ASSIGNED_TOKEN]: "t1" },
      [{ key: "shop/web-slot-1", token: "t1" }, OWN],
    ],
  ];
  for (const [title, annotations, leads] of rows) {
    it(title, () => assert.deepEqual(claimRefsFor(POD, annotations), leads));
  }
});

describe("matchesRef", () => {
  const byToken: ClaimRef = { key: "shop/mysql-0", token: "t1" };
  const heldFor = (token: string) => claimRecord({ binding: bindingTo("", "", { token }) });
  const identity = { kind: "Deployment", apiVersion: "apps/v1", name: "web", slot: 0 };
  const rows: readonly (readonly [boolean, string, ClaimRef, Claim])[] = [
    [true, "by name: bound to nobody", OWN, claimRecord()],
    [true, "by name: bound to an older pod of the name", OWN, claimRecord({ binding: bindingTo("a", "x") })],
    [false, "by name: held for a token", OWN, heldFor("t1")],
    [false, "by name: a slot of a set", OWN, claimRecord({ identity })],
    [true, "by token: held for it", byToken, heldFor("t1")],
    [false, "by token: held for another", byToken, heldFor("t2")],
    [false, "by token: held for nobody", byToken, claimRecord()],
  ];
  for (const [expected, title, lead, claim] of rows) {
    it(`${title}: ${expected ? "its" : "not its"}`, () => assert.equal(matchesRef(lead, claim), expected));
  }
});
