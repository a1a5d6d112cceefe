// SPDX-License-Identifier: Apache-2.0
// Numbers of addresses of either family.
import fc from "fast-check";
import type { Family } from "../address.ts";

export const TOP4 = 2n ** 32n - 1n;
export const TOP6 = 2n ** 128n - 1n;
export const ipv4Number = fc.bigInt({ min: 0n, max: TOP4 });

export const ipv6Number = fc
  .oneof(fc.bigInt({ min: 0n, max: TOP6 }), fc.bigInt({ min: 0n, max: 255n }))
  .filter((n) => n >> 32n !== 0xffffn);

export const anyNumber: fc.Arbitrary<{ n: bigint; family: Family }> = fc.oneof(
  ipv4Number.map((n) => ({ n, family: "IPv4" as const })),
  ipv6Number.map((n) => ({ n, family: "IPv6" as const })),
);
