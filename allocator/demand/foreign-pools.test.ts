// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { DB_POOL } from "../../test/support/fixtures.ts";
import { openWorld } from "../../test/support/world.ts";
import type { Labels } from "../base/ports.ts";
import { OWN_OF_EACH } from "../model/dialect.ts";
import { ownDefaults } from "./foreign-pools.ts";

const CALICO = "cni.projectcalico.org";

describe("a namespace's defaults in another system's words", () => {
  const cases: readonly (readonly [string, Labels, boolean])[] = [
    ["name a pool of Berth's", { [`${CALICO}/ipv4pools`]: '["db"]' }, true],
    ["name another's", { [`${CALICO}/ipv4pools`]: '["theirs"]' }, false],
    ["say families alone", { [`${CALICO}/ipFamilies`]: '["IPv4"]' }, false],
    [
      "name another's beside a pool of Berth's in Berth's words",
      { [`${CALICO}/ipv4pools`]: '["theirs"]', "berth.dev/pools": "db" },
      true,
    ],
    [
      "say families beside a pool of Berth's",
      { [`${CALICO}/ipFamilies`]: '["IPv6"]', "berth.dev/pools": "db" },
      true,
    ],
    [
      "name another's beside Berth's own word that keeps addresses",
      { [`${CALICO}/ipv4pools`]: '["theirs"]', "berth.dev/sticky": "true" },
      true,
    ],
    ["cannot be read, and name a pool of Berth's", { [`${CALICO}/ipv4pools`]: '["db", 7' }, true],
    ["cannot be read, and name nothing of Berth's", { [`${CALICO}/ipv4pools`]: '["theirs", 7' }, false],
  ];
  for (const [what, annotations, isBerths] of cases)
    it(`that ${what} are ${isBerths ? "Berth's to answer" : "left to that system"}`, async () => {
      await using world = await openWorld({ pools: [DB_POOL] });
      const space = { name: "shop", labels: {}, annotations };
      const own = ownDefaults(world.admission.context.view, space, OWN_OF_EACH);
      const has = Object.keys(own.annotations).some((key) => key.startsWith(CALICO));
      assert.equal(has, isBerths);
    });
});
