// SPDX-License-Identifier: Apache-2.0
// A record of each kind, with every field that it can have.

import type { PoolSpec } from "../../allocator/pool/pool.ts";
import type { Kind } from "../../allocator/store/store.ts";

type Whole<T> = T extends readonly (infer I)[]
  ? readonly Whole<I>[]
  : T extends string | number | boolean | null
    ? T
    : { readonly [K in keyof T]-?: Whole<Exclude<T[K], undefined>> };

const SELECTOR = {
  matchLabels: { zone: "a" },
  matchExpressions: [{ key: "zone", operator: "In", values: ["a"] }],
} as const;

/** With every field that a PoolSpec has: a field that is added there and not here does not compile. */
export const FULL_POOL: Whole<PoolSpec> = {
  ranges: [
    {
      cidr: "10.20.0.0/24",
      from: "10.20.0.50",
      to: "10.20.0.199",
      gateway: "10.20.0.254",
      exclude: ["10.20.0.60-10.20.0.69"],
    },
  ],
  reserved: ["10.20.0.50"],
  routes: [{ dst: "0.0.0.0/0", gw: "10.20.0.254", mtu: 1500, advmss: 1400, priority: 1, table: 2, scope: 0 }],
  dns: { nameservers: ["10.20.0.2"], domain: "example.org", search: ["example.org"], options: ["ndots:5"] },
  blockSize: { ipv4: 26, ipv6: 122, ahead: 1 },
  nodeCIDRs: { use: "PodCIDR", blockSize: { ipv4: 24, ipv6: 64 } },
  cilium: { pool: "default", growBelow: 8, shrinkAbove: 16 },
  nodeSelector: SELECTOR,
  namespaceSelector: SELECTOR,
  podSelector: SELECTOR,
  networks: ["macvlan-conf", "shop/net-b"],
  priority: 1,
  default: true,
  limits: { perNamespace: 50, retention: { perNamespace: 20, ttl: "720h" } },
  authorization: "Namespace",
  cooldown: "30s",
  disabled: true,
};

export const KINDS: readonly Kind[] = ["pool", "claim", "reservation", "block"];
