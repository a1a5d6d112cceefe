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
  {
    name: "one of both",
    spec: { ranges: [V6, V4, { cidr: "10.21.0.0/24" }], default: true },
    size: { ipv4: 32, ipv6: 128 },
  },
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
  { name: "a pool that selects nobody", spec: { ranges: [V4], priority: 3 }, size: undefined },
  {
    name: "one that selects namespaces",
    spec: { ranges: [V4, V6], namespaceSelector: {} },
    size: { ipv4: 32, ipv6: 128, ahead: 0 },
  },
  {
    name: "one that selects pods",
    spec: { ranges: [V4], podSelector: { matchLabels: { app: "web" } } },
    size: { ipv4: 32, ahead: 0 },
  },
  { name: "one that selects nodes", spec: { ranges: [V6], nodeSelector: {} }, size: { ipv6: 128, ahead: 0 } },
  {
    name: "one that selects and is the default",
    spec: { ranges: [V4], nodeSelector: {}, default: true },
    size: { ipv4: 32 },
  },
  {
    name: "one that selects, and says that it has no blocks",
    spec: { ranges: [V4], nodeSelector: {}, blockSize: {} },
    size: undefined,
  },
  {
    name: "one that is for service accounts",
    spec: { ranges: [V4], namespaceSelector: {}, authorization: "ServiceAccount" },
    size: undefined,
  },
  {
    name: "one of which each namespace has so many",
    spec: { ranges: [V4], namespaceSelector: {}, limits: { perNamespace: 5 } },
    size: undefined,
  },
  {
    name: "one with a limit of what is retained",
    spec: { ranges: [V4], namespaceSelector: {}, limits: { retention: { ttl: "48h" } } },
    size: { ipv4: 32, ahead: 0 },
  },
  {
    name: "one that is for networks",
    spec: { ranges: [V4, V6], networks: ["lan", "shop/vlan"] },
    size: { ipv4: 32, ipv6: 128, ahead: 0 },
  },
  {
    name: "one that is for networks of namespaces",
    spec: { ranges: [V4], namespaceSelector: {}, networks: ["lan"] },
    size: { ipv4: 32, ahead: 0 },
  },
  {
    name: "one that is for networks, and says that it has no blocks",
    spec: { ranges: [V4], networks: ["lan"], blockSize: {} },
    size: undefined,
  },
  {
    name: "one that is for networks and for service accounts",
    spec: { ranges: [V4], networks: ["lan"], authorization: "ServiceAccount" },
    size: undefined,
  },
  {
    name: "one that is for networks, of which each namespace has so many",
    spec: { ranges: [V4], networks: ["lan"], limits: { perNamespace: 5 } },
    size: undefined,
  },
  {
    name: "one for nodes, that are given their CIDRs of it",
    spec: { ranges: [V4], networks: ["lan"], nodeCIDRs: { ipv4: 26 } },
    size: undefined,
  },
  {
    name: "one that was made for networks before those without a size got one",
    spec: { ranges: [V4], networks: ["lan"], cooldown: "1m" },
    before: { ranges: [V4], networks: ["lan"] },
    size: undefined,
  },
  {
    name: "one of which a family is reserved",
    spec: { ranges: [V4, V6], namespaceSelector: {}, reserved: ["10.20.0.0/24"] },
    size: { ipv6: 128, ahead: 0 },
  },
  {
    name: "one that is reserved for those who ask",
    spec: { ranges: [V4], namespaceSelector: {}, reserved: ["10.20.0.0/24"] },
    size: undefined,
  },
  {
    name: "one that comes to select",
    spec: { ranges: [V4], namespaceSelector: {} },
    before: { ranges: [V4] },
    size: undefined,
  },
  {
    name: "one that was made to select, and does no more",
    spec: { ranges: [V4] },
    before: { ranges: [V4], namespaceSelector: {}, blockSize: { ipv4: 32, ahead: 0 } },
    size: { ipv4: 32, ahead: 0 },
  },
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
    size: {},
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
