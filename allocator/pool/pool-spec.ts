// SPDX-License-Identifier: Apache-2.0
import type { Refusal } from "../base/errors.ts";
import {
  flag,
  invalidPool,
  list,
  object,
  oneOf,
  openObject,
  text,
  textLike,
  type Validator,
  whole,
} from "../base/validation.ts";
import type { RangeSpec } from "../ip/ip-range.ts";
import { checkSelector, type LabelSelector } from "./label-selector.ts";

/** A route that the pod gets; fields as in a CNI 1.1 result. `gw` absent: the gateway of the pod's range. */
export interface RouteSpec {
  readonly dst: string;
  readonly gw?: string;
  readonly mtu?: number;
  readonly advmss?: number;
  readonly priority?: number;
  readonly table?: number;
  readonly scope?: number;
}

/** As in a CNI result, for main plugins that write the pod's resolv.conf. */
export interface DnsSpec {
  readonly nameservers?: readonly string[];
  readonly domain?: string;
  readonly search?: readonly string[];
  readonly options?: readonly string[];
}

/** What one namespace may have of a pool. */
interface LimitsSpec {
  /** Addresses: in use, waiting for their pods, and retained. Absent: nine tenths of each family (`namespace-bounds.ts`). */
  readonly perNamespace?: number;
  /** Of claims that nothing needs now: how many, and for how long (Go duration). */
  readonly retention?: { readonly perNamespace?: number; readonly ttl?: string };
}

/** What reads the CIDRs of nodes: the API server's own field of a Node, or Cilium's objects. */
const NODE_CIDR_USES = ["PodCIDR", "Cilium"] as const;
export type NodeCidrUse = (typeof NODE_CIDR_USES)[number];

/** Whole CIDRs for nodes, of one size for each family. */
interface NodeCidrsSpec {
  readonly use: NodeCidrUse;
  /** Prefix lengths; a family without one has none. */
  readonly blockSize: { readonly ipv4?: number; readonly ipv6?: number };
}

/** How nodes of Cilium's are given CIDRs of the pool. */
interface CiliumSpec {
  /** What Cilium calls the pool, in mode multi-pool; `default` if absent. */
  readonly pool?: string;
  /** A node gets more when its agent has fewer addresses left, in modes crd and cluster-pool-v2beta. */
  readonly growBelow?: number;
  /** A CIDR that nobody uses goes back if so many addresses are left without it, in these modes. */
  readonly shrinkAbove?: number;
}

/** The `spec` of an IPPool. */
export interface PoolSpec {
  readonly ranges: readonly RangeSpec[];
  /** Addresses, `a-b` or CIDRs that are given by explicit request only. */
  readonly reserved?: readonly string[];
  readonly routes?: readonly RouteSpec[];
  readonly dns?: DnsSpec;
  /**
   * Prefix lengths of the blocks that nodes own; absent or empty: every address is claimed one by one. `ahead`: how many blocks each node
   * has beyond what its pods need, as long as there is plenty; 0: none before a pod is there that needs one. Default 2.
   */
  readonly blockSize?: { readonly ipv4?: number; readonly ipv6?: number; readonly ahead?: number };
  /** The pool is for whole CIDRs of nodes, and gives pods no address; absent: it is for pods. */
  readonly nodeCIDRs?: NodeCidrsSpec;
  /** Of a pool whose CIDRs are for Cilium. */
  readonly cilium?: CiliumSpec;
  /** Absent: every node, namespace, pod. */
  readonly nodeSelector?: LabelSelector;
  readonly namespaceSelector?: LabelSelector;
  readonly podSelector?: LabelSelector;
  /** Names of networks, or namespace/name of NetworkAttachmentDefinitions; absent: any. */
  readonly networks?: readonly string[];
  /** Among the pools that match: higher first, then the name. Default 0. */
  readonly priority?: number;
  /** Serves pods that ask for nothing where no other pool with blocks selects them. */
  readonly default?: boolean;
  readonly limits?: LimitsSpec;
  /** ServiceAccount: the pod's ServiceAccount needs the verb `use` on the pool. Default Namespace. */
  readonly authorization?: "Namespace" | "ServiceAccount";
  /** Go duration before a released address may go to another identity. Default 30s. */
  readonly cooldown?: string;
  /** No new reservations; existing ones stay. */
  readonly disabled?: boolean;
}

const MOST_RANGES = 256;
const MOST_INTERVALS = 4096;
const MOST_AHEAD = 16;
/** resolv.conf is lines of words: anything that ends a word or a line would write other directives. */
const DOMAIN = /^[A-Za-z0-9_.-]+$/;
const RESOLVER_OPTION = /^[a-z0-9-]+(?::[0-9]+)?$/;

/** As CNI wants a network's name; before the slash the namespace of a NetworkAttachmentDefinition. */
const NETWORK = /^(?:[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?\/)?[A-Za-z0-9][A-Za-z0-9_.-]{0,252}$/;
/** The name of a CiliumPodIPPool. */
const CILIUM_POOL = /^[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?$/;
const NETWORKS = list(textLike(NETWORK, "macvlan-conf or shop/net-b"), 64);

function networks(value: unknown, field: string): Refusal | undefined {
  const isEmpty = Array.isArray(value) && value.length === 0;
  return (
    NETWORKS(value, field) ??
    (isEmpty ? invalidPool(field, "is empty; leave it out for any network") : undefined)
  );
}

const INTERVALS = list(text(100), MOST_INTERVALS);

type ObjectShape = typeof object;

const range = (fields: ObjectShape): Validator =>
  fields({ cidr: text(), from: text(), to: text(), gateway: text(), exclude: INTERVALS }, ["cidr"]);

/** Bounds of netlink: mtu and advmss 16 bits, metric and table 32, scope 8. An IPv4 link carries 68 bytes at least. */
const route = (fields: ObjectShape): Validator =>
  fields(
    {
      dst: text(),
      gw: text(),
      mtu: whole(68, 65_535),
      advmss: whole(1, 65_535),
      priority: whole(0, 4_294_967_295),
      table: whole(0, 4_294_967_295),
      scope: whole(0, 255),
    },
    ["dst"],
  );

const dns = (fields: ObjectShape): Validator =>
  fields({
    nameservers: list(text(), 16),
    domain: textLike(DOMAIN, "example.org"),
    search: list(textLike(DOMAIN, "example.org"), 32),
    options: list(textLike(RESOLVER_OPTION, "ndots:5"), 32),
  });

const cilium = (fields: ObjectShape): Validator =>
  fields({
    pool: textLike(CILIUM_POOL, "default"),
    growBelow: whole(1, 4096),
    shrinkAbove: whole(1, 8192),
  });

const nodeCIDRs = (fields: ObjectShape, use: Validator): Validator =>
  fields({ use, blockSize: fields({ ipv4: whole(1, 32), ipv6: whole(1, 128) }) }, ["use", "blockSize"]);

const spec = (fields: ObjectShape, authorization: Validator, use: Validator): Validator =>
  fields(
    {
      ranges: list(range(fields), MOST_RANGES),
      reserved: INTERVALS,
      routes: list(route(fields), 256),
      dns: dns(fields),
      blockSize: fields({ ipv4: whole(1, 32), ipv6: whole(1, 128), ahead: whole(0, MOST_AHEAD) }),
      nodeCIDRs: nodeCIDRs(fields, use),
      cilium: cilium(fields),
      nodeSelector: checkSelector,
      namespaceSelector: checkSelector,
      podSelector: checkSelector,
      networks,
      priority: whole(-2_147_483_648, 2_147_483_647),
      default: flag,
      limits: fields({
        perNamespace: whole(1, 2_147_483_647),
        retention: fields({ perNamespace: whole(0, 2_147_483_647), ttl: text() }),
      }),
      authorization,
      cooldown: text(),
      disabled: flag,
    },
    ["ranges"],
  );

const WRITTEN = spec(object, oneOf("Namespace", "ServiceAccount"), oneOf(...NODE_CIDR_USES));
const STORED = spec(openObject, text(), text());

/** Checks the form of a spec from outside, field by field; what the fields mean together is for parsePool. */
export function readPoolSpec(given: unknown): PoolSpec | Refusal {
  return WRITTEN(given, "spec") ?? (given as PoolSpec);
}

/** The same of a spec that is stored: a field that a newer Berth wrote is left in it, and ignored. */
export function readStoredPoolSpec(given: unknown): PoolSpec | Refusal {
  return STORED(given, "spec") ?? (given as PoolSpec);
}
