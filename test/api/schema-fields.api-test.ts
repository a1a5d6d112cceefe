// SPDX-License-Identifier: Apache-2.0

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { addr, fullBlock, fullClaim, reservationOf } from "../../allocator/store/contract/samples.ts";
import {
  blockStatusPatch,
  resourceOf,
  specOf,
  statusPatch,
} from "../../allocator/store/kubernetes/objects.ts";
import type { Kind, Records } from "../../allocator/store/store.ts";
import { definitions } from "./crds.ts";
import { FULL_POOL, KINDS } from "./full-records.ts";
import { assertSameFields, type Schema } from "./schema.ts";

const FULL: { readonly [K in Kind]: Records[K] } = {
  pool: { name: "db", spec: FULL_POOL },
  claim: fullClaim("mysql-0"),
  reservation: reservationOf(addr("fd00:20::51"), { marked: true, releasedAt: 1, cooldownMs: 1 }),
  block: fullBlock("10.20.0.64/26"),
};

/** The schema of the version that is served, of `spec` or `status`. */
function schemaOf(plural: string, part: "spec" | "status"): Schema {
  const found = definitions().find(({ metadata }) => metadata.name === `${plural}.berth.dev`);
  const whole = found?.spec.versions[0]?.schema.openAPIV3Schema as Schema | undefined;
  const schema = whole?.properties?.[part];
  assert.ok(schema, `${plural} has no ${part}`);
  return schema;
}

describe("the fields of the definitions", () => {
  for (const kind of KINDS) {
    it(`are those of a ${kind}`, () => {
      assertSameFields(schemaOf(resourceOf(kind).plural, "spec"), specOf(kind, FULL[kind]), "spec");
    });
  }

  it("are those of a claim's status, and what only Kubernetes has", () => {
    const schema = schemaOf("ipclaims", "status");
    const { conditions, repeat, phase, ...own } = schema.properties ?? {};
    assert.ok(conditions && repeat && phase);
    const { phase: former, ...written } = statusPatch(fullClaim("mysql-0").status);
    assert.equal(former, null, "what earlier versions wrote is taken away");
    assertSameFields({ ...schema, properties: own }, written, "status");
  });

  it("are those of a block's status, and what only Kubernetes has", () => {
    const schema = schemaOf("ipblocks", "status");
    const { repeat, ...own } = schema.properties ?? {};
    assert.ok(repeat);
    const status = blockStatusPatch({
      node: "node-a",
      used: 1,
      returnedAt: 1,
      returnedAddresses: [addr("10.20.0.65")],
    });
    assertSameFields({ ...schema, properties: own }, status, "status");
  });
});
