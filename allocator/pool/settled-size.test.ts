// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { settledSize, withSettledSize } from "./settled-size.ts";

const V4 = { cidr: "10.20.0.0/24" };
const V6 = { cidr: "fd00::/64" };

type Spec = Readonly<Record<string, unknown>>;

const rows: readonly {
  readonly name: string;
  readonly spec: Spec;
  readonly before?: Spec;
  readonly size: unknown;
}[] = [
  { name: "a default pool", spec: { ranges: [V4], default: true }, size: { ipv4: 32 } },
  { name: "one of IPv6", spec: { ranges: [V6], default: true }, size: { ipv6: 128 } },
  { name: "one of both", spec: { ranges: [V6, V4, V4], default: true }, size: { ipv4: 32, ipv6: 128 } },
  {
    name: "one whose size is null",
    spec: { ranges: [V4], default: true, blockSize: null },
    size: { ipv4: 32 },
  },
  {
    name: "one that says it",
    spec: { ranges: [V4], default: true, blockSize: { ipv4: 28 } },
    size: undefined,
  },
  {
    name: "one that says that it has no blocks",
    spec: { ranges: [V4], default: true, blockSize: {} },
    size: undefined,
  },
  { name: "a pool for those who ask", spec: { ranges: [V4], namespaceSelector: {} }, size: undefined },
  { name: "one that is no default", spec: { ranges: [V4], default: false }, size: undefined },
  { name: "one that nobody can read", spec: { ranges: "10.0.0.0/8", default: true }, size: undefined },
  {
    name: "ranges that nobody can read",
    spec: { ranges: [7, null, {}, { cidr: "x" }], default: true },
    size: undefined,
  },
  {
    name: "one that was made so, and is the default no more",
    spec: { ranges: [V4], default: false },
    before: { ranges: [V4], default: true, blockSize: { ipv4: 32 } },
    size: { ipv4: 32 },
  },
  {
    name: "one that was made so, and has both families now",
    spec: { ranges: [V4, V6], default: true },
    before: { ranges: [V4], default: true, blockSize: { ipv4: 32 } },
    size: { ipv4: 32 },
  },
  {
    name: "one that becomes the default",
    spec: { ranges: [V4], default: true },
    before: { ranges: [V4] },
    size: undefined,
  },
  {
    name: "one whose blocks are to go",
    spec: { ranges: [V4] },
    before: { ranges: [V4], blockSize: { ipv4: 28 } },
    size: undefined,
  },
  {
    name: "one that said that it has none",
    spec: { ranges: [V4], default: true },
    before: { ranges: [V4], default: true, blockSize: {} },
    size: undefined,
  },
  {
    name: "one with large blocks of one family",
    spec: { ranges: [V4, V6] },
    before: { ranges: [V4, V6], blockSize: { ipv4: 32, ipv6: 122 } },
    size: undefined,
  },
];

describe("the size that is settled when a pool is made", () => {
  for (const { name, spec, before, size } of rows)
    it(`of ${name}`, () => {
      assert.deepEqual(settledSize(spec, before), size);
      const made = withSettledSize(spec, before);
      if (size === undefined) assert.equal(made, spec);
      else assert.deepEqual(made, { ...spec, blockSize: size });
    });
});
