// SPDX-License-Identifier: Apache-2.0
// Definitions go back before the replicas when Helm rolls a release back.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { parseAddress } from "../../allocator/ip/address.ts";
import { reservationOf } from "../../allocator/store/contract/samples.ts";
import { havePartsOrSkip } from "./binaries.ts";
import { type Definition, define, definitions } from "./crds.ts";
import { startControlPlane } from "./harness.ts";
import { openStore } from "./open-store.ts";

const ADDRESS = parseAddress("10.20.0.5") ?? assert.fail();

if (havePartsOrSkip(["etcd", "kube-apiserver"])) {
  describe("definitions of an older version", () => {
    it("let an address cool whose pool has a cooldown of its own", async () => {
      const plane = await startControlPlane({});
      try {
        const admin = plane.connect();
        await define(admin, definitions().map(withoutCooldown));
        const store = openStore(admin);
        const { stored } = await store.create("reservation", reservationOf(ADDRESS));
        const cooling = { ...stored.record, releasedAt: 1_700_000_000_000 };
        const replaced = await store.replace("reservation", stored, { ...cooling, cooldownMs: 600_000 });
        assert.equal(replaced.kind, "replaced");
        assert.deepEqual((await store.get("reservation", stored.key))?.record, cooling);
      } finally {
        await plane.close();
      }
    });
  });
}

function withoutCooldown(definition: Definition): Definition {
  if (definition.spec.names.kind !== "IPReservation") return definition;
  const text = JSON.stringify(definition, (key, value) => (key === "cooldown" ? undefined : value));
  assert.notEqual(text, JSON.stringify(definition));
  return JSON.parse(text) as Definition;
}
