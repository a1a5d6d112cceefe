// SPDX-License-Identifier: Apache-2.0
// Records of every form that Berth writes, for the API server to accept.
import fc from "fast-check";
import { formatDuration } from "../../allocator/base/go-duration.ts";
import {
  type Address,
  type Family,
  formatCidr,
  fromNumber,
  lastOf,
  parseCidr,
} from "../../allocator/ip/address.ts";
import type { RangeSpec } from "../../allocator/ip/ip-range.ts";
import type { Block, BlockStatus } from "../../allocator/model/block.ts";
import type { Claim } from "../../allocator/model/claim.ts";
import type { Reservation } from "../../allocator/model/reservation.ts";
import type { LabelSelector } from "../../allocator/pool/label-selector.ts";
import type { PoolRecord, PoolSpec, RouteSpec } from "../../allocator/pool/pool.ts";
import { SAMPLE_NAMESPACES } from "../../allocator/store/contract/samples.ts";
import { anyCharacter } from "../support/any-character.ts";

/** As JSON.parse makes objects: with a prototype. */
const JSONLIKE = { noNullPrototype: true } as const;
const word = fc.stringMatching(/^[a-z0-9]([a-z0-9-]{0,10}[a-z0-9])?$/);
const text = fc.string({ maxLength: 253 });
const time = fc.integer({ min: 0, max: Date.UTC(2999, 0, 1) });
/** Go's longest duration, 2^63 ns, in whole milliseconds. */
const LONGEST_MS = 9_223_372_036_854;
const namespace = fc.constantFrom(...SAMPLE_NAMESPACES);

export const anyIPv4: fc.Arbitrary<Address> = fc.bigInt(0n, 2n ** 32n - 1n).map((n) => fromNumber(n, "IPv4"));

export const anyIPv6: fc.Arbitrary<Address> = fc
  .oneof(
    fc.bigInt(0n, 2n ** 128n - 1n),
    // few bits set: long runs of zeros, which the canonical text shortens
    fc
      .array(fc.nat(127), { maxLength: 4 })
      .map((bits) => bits.reduce((n, bit) => n | (1n << BigInt(bit)), 0n)),
  )
  .map((n) => fromNumber(n, "IPv6"))
  .filter((address) => address.includes(":")); // IPv4-mapped ones come as IPv4

export const anyAddress: fc.Arbitrary<Address> = fc.oneof(anyIPv4, anyIPv6);

/** One of each family at most, in any order. */
const anyAddresses: fc.Arbitrary<readonly Address[]> = fc
  .tuple(anyIPv4, anyIPv6, fc.subarray([0, 1]), fc.boolean())
  .map(([four, six, which, turned]) => {
    const both = turned ? [six, four] : [four, six];
    return which.flatMap((i) => both[i] ?? []);
  });

export const anyReservation: fc.Arbitrary<Reservation> = fc.record(
  {
    address: anyAddress,
    pool: word,
    claim: fc.record({ namespace: word, name: word }, JSONLIKE),
    nonce: text,
    marked: fc.boolean(),
    releasedAt: time,
  },
  { requiredKeys: ["address", "pool", "claim", "nonce"], ...JSONLIKE },
);

export const anyClaim: fc.Arbitrary<Claim> = fc.record(
  {
    namespace,
    name: word,
    identity: fc.record(
      { kind: text, apiVersion: text, name: word, uid: text, ordinal: fc.nat(), slot: fc.nat() },
      { requiredKeys: ["kind", "apiVersion", "name"], ...JSONLIKE },
    ),
    interface: text,
    request: fc.record(
      {
        addresses: anyAddresses,
        pools: fc.array(word, { maxLength: 3 }),
        families: fc.shuffledSubarray(["IPv4", "IPv6"] as const),
      },
      { requiredKeys: [], ...JSONLIKE },
    ),
    retention: fc.record(
      {
        whenDeleted: fc.constantFrom("Release", "Retain"),
        whenScaled: fc.constantFrom("Release", "Retain"),
        ttlMs: fc.option(fc.integer({ min: 0, max: LONGEST_MS })),
      },
      JSONLIKE,
    ),
    addresses: anyAddresses,
    nonce: text,
    binding: fc.record(
      { token: text, podName: text, podUID: text, node: text, interface: text, since: time },
      { requiredKeys: ["token", "podName", "podUID", "node", "since"], ...JSONLIKE },
    ),
    retained: fc.record({ since: time, because: fc.constantFrom("deleted", "scaled") }, JSONLIKE),
    admittedAt: time,
    handMade: fc.boolean(),
    releasing: fc.boolean(),
    status: fc.record(
      {
        attachment: fc.record(
          {
            node: text,
            containerID: text,
            interface: text,
            podUID: text,
            since: time,
            detached: fc.boolean(),
            netns: text,
            bootID: text,
          },
          {
            requiredKeys: ["node", "containerID", "interface", "podUID", "since", "detached"],
            ...JSONLIKE,
          },
        ),
        message: fc.string({ unit: anyCharacter }),
      },
      { requiredKeys: [], ...JSONLIKE },
    ),
  },
  {
    requiredKeys: ["namespace", "name", "identity", "request", "retention", "addresses", "nonce", "status"],
    ...JSONLIKE,
  },
);

const label = fc.constantFrom("zone", "topology.kubernetes.io/zone", "a.b/C_d-e.f");
const value = fc.constantFrom("", "a", "A-b_c.D", "0".repeat(63));

const anySelector: fc.Arbitrary<LabelSelector> = fc.record(
  {
    matchLabels: fc.dictionary(label, value, { noNullPrototype: true }),
    matchExpressions: fc.array(
      fc.oneof(
        fc.record(
          {
            key: label,
            operator: fc.constantFrom("In", "NotIn"),
            values: fc.array(value, { minLength: 1, maxLength: 3 }),
          },
          JSONLIKE,
        ),
        fc.record({ key: label, operator: fc.constantFrom("Exists", "DoesNotExist") }, JSONLIKE),
      ),
      { maxLength: 2 },
    ),
  },
  { requiredKeys: [], ...JSONLIKE },
);

const anyNetwork = fc
  .oneof(
    fc.record({ address: anyIPv4, prefixLength: fc.integer({ min: 0, max: 32 }) }),
    fc.record({ address: anyIPv6, prefixLength: fc.integer({ min: 0, max: 128 }) }),
  )
  .map(({ address, prefixLength }) => parseCidr(`${address}/${prefixLength}`))
  .filter((cidr) => cidr !== undefined)
  .filter((cidr) => formatCidr(cidr).includes(":") === (cidr.family === "IPv6"));

const network = anyNetwork.map((cidr) => cidr.text);

export const anyBlock: fc.Arbitrary<Block> = fc.record(
  {
    cidr: network,
    pool: word,
    node: word,
    nodeUID: text,
    holes: fc.array(network, { maxLength: 5 }),
    granted: fc.boolean(),
    recalledAt: time,
    releasedAt: time,
    division: fc.constantFrom("returned", "all", "closed"),
    within: network,
    recalledAddresses: fc.nat(4096),
    place: fc.nat(256),
  },
  { requiredKeys: ["cidr", "pool", "node", "nodeUID", "holes"], ...JSONLIKE },
);

/** What an agent may write of a block. */
const anyBlockStatus: fc.Arbitrary<BlockStatus> = fc.record(
  {
    node: word,
    used: fc.nat(4096),
    returnedAt: time,
    returnedAddresses: fc.uniqueArray(anyAddress, { maxLength: 5 }),
  },
  { requiredKeys: ["node", "used"], ...JSONLIKE },
);

/** A block as it is read. */
export const anyStoredBlock: fc.Arbitrary<Block> = fc
  .tuple(anyBlock, fc.option(anyBlockStatus))
  .map(([block, status]) => (status === null ? block : { ...block, status }));

const anyRange: fc.Arbitrary<RangeSpec> = anyNetwork.chain((cidr) => {
  const inside = fc
    .bigInt(cidr.base, lastOf(cidr))
    .map((n) => fromNumber(n, cidr.family))
    .filter((address) => isOf(cidr.family, address));
  const interval = fc.tuple(inside, inside).map(([a, b]) => `${a}-${b}`);
  return fc.record(
    {
      cidr: fc.constant(cidr.text),
      from: inside,
      to: inside,
      gateway: inside,
      exclude: fc.array(fc.oneof(inside, interval, fc.constant(cidr.text)), { maxLength: 3 }),
    },
    { requiredKeys: ["cidr"], ...JSONLIKE },
  );
});

const anyRoute: fc.Arbitrary<RouteSpec> = fc.record(
  {
    dst: anyNetwork.map(({ text: written }) => written),
    gw: anyAddress,
    mtu: fc.integer({ min: 68, max: 65_535 }),
    advmss: fc.integer({ min: 1, max: 65_535 }),
    priority: fc.integer({ min: 0, max: 4_294_967_295 }),
    table: fc.integer({ min: 0, max: 4_294_967_295 }),
    scope: fc.integer({ min: 0, max: 255 }),
  },
  { requiredKeys: ["dst"], ...JSONLIKE },
);

const domain = fc.constantFrom("example.org", "a_b.C-d");

export const anyPool: fc.Arbitrary<PoolRecord> = fc.record(
  {
    name: word,
    spec: fc.record<PoolSpec>(
      {
        ranges: fc.array(anyRange, { minLength: 1, maxLength: 3 }),
        reserved: fc.array(anyAddress, { maxLength: 3 }),
        routes: fc.array(anyRoute, { maxLength: 3 }),
        dns: fc.record(
          {
            nameservers: fc.array(anyAddress, { maxLength: 2 }),
            domain,
            search: fc.array(domain, { maxLength: 2 }),
            options: fc.array(fc.constantFrom("ndots:5", "edns0"), { maxLength: 2 }),
          },
          { requiredKeys: [], ...JSONLIKE },
        ),
        blockSize: fc.record(
          { ipv4: fc.integer({ min: 1, max: 32 }), ipv6: fc.integer({ min: 1, max: 128 }) },
          { requiredKeys: [], ...JSONLIKE },
        ),
        nodeSelector: anySelector,
        namespaceSelector: anySelector,
        podSelector: anySelector,
        networks: fc.uniqueArray(fc.constantFrom("net", "macvlan-conf", "shop/net-b"), { minLength: 1 }),
        priority: fc.integer({ min: -2_147_483_648, max: 2_147_483_647 }),
        limits: fc.record(
          { perNamespace: fc.integer({ min: 1, max: 2_147_483_647 }) },
          { requiredKeys: [], ...JSONLIKE },
        ),
        authorization: fc.constantFrom("Namespace", "ServiceAccount"),
        cooldown: fc.oneof(
          fc.nat().map(formatDuration),
          fc.constantFrom("0", "1.5h", ".5s", "1h2m3s4ms5us6ns"),
        ),
        disabled: fc.boolean(),
      },
      { requiredKeys: ["ranges"], ...JSONLIKE },
    ),
  },
  JSONLIKE,
);

function isOf(family: Family, address: Address): boolean {
  return address.includes(":") === (family === "IPv6");
}
