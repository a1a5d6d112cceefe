// SPDX-License-Identifier: Apache-2.0
import { type Address, fromNumber, parseAddress } from "../../ip/address.ts";
import type { Block } from "../../model/block.ts";
import type {
  Binding,
  Claim,
  ClaimAttachment,
  ClaimRequest,
  ClaimStatus,
  Identity,
} from "../../model/claim.ts";
import type { Reservation } from "../../model/reservation.ts";
import type { PoolRecord } from "../../pool/pool.ts";

/** Namespaces of the sample claims: they must exist where an engine has such a thing. */
export const SAMPLE_NAMESPACES: readonly string[] = ["shop", "bank"];

export function addr(text: string): Address {
  const address = parseAddress(text);
  if (address === undefined) throw new TypeError(`${text} is no address`);
  return address;
}

/** The n-th address of 10.20.0.0/16. */
export function nth(n: number): Address {
  return fromNumber(0x0a14_0000n + BigInt(n), "IPv4");
}

export function reservationOf(address: Address, other: Partial<Reservation> = {}): Reservation {
  return { address, pool: "db", claim: { namespace: "shop", name: "mysql-0" }, nonce: "n1", ...other };
}

/** With no optional field set. */
export function bareClaim(name: string, other: Partial<Claim> = {}): Claim {
  return {
    namespace: "shop",
    name,
    identity: { kind: "StatefulSet", apiVersion: "apps/v1", name: "mysql" },
    request: {},
    retention: { whenDeleted: "Release", whenScaled: "Retain", ttlMs: null },
    addresses: [],
    nonce: "",
    status: {},
    ...other,
  };
}

interface FullClaim extends Required<Omit<Claim, "deleting">> {
  readonly identity: Required<Identity>;
  readonly request: Required<ClaimRequest>;
  readonly binding: Required<Binding>;
  readonly status: Required<Omit<ClaimStatus, "attachment">> & {
    readonly attachment: Required<ClaimAttachment>;
  };
}

/** With every optional field set that is written. */
export function fullClaim(name: string): FullClaim {
  return {
    namespace: "shop",
    name,
    identity: { kind: "StatefulSet", apiVersion: "apps/v1", name: "mysql", uid: "u-1", ordinal: 0, slot: 3 },
    interface: "net1",
    takesOver: "licence",
    request: {
      addresses: [addr("10.20.0.51"), addr("fd00:20::51")],
      interfaces: { eth0: [addr("10.20.0.51")], net1: [addr("fd00:20::51")] },
      interfacePools: { eth0: ["db"], net1: ["db6"] },
      pools: ["db", "db6"],
      families: ["IPv6", "IPv4"],
      fallback: "any",
    },
    retention: { whenDeleted: "Retain", whenScaled: "Release", ttlMs: 86_400_000 },
    addresses: [addr("10.20.0.51"), addr("fd00:20::51")],
    interfaces: { eth0: [addr("10.20.0.51")], net1: [addr("fd00:20::51")] },
    nonce: "abcdefghijklmnopqrstuvwxyz",
    binding: {
      token: "t1",
      podName: "mysql-0",
      podUID: "p-1",
      node: "node-a",
      interface: "net1",
      since: 1_700_000_000_000,
    },
    retained: { since: 1_700_000_000_001, because: "scaled" },
    admittedAt: 1_700_000_000_003,
    handMade: true,
    releasing: true,
    status: {
      attachment: {
        node: "node-a",
        containerID: "c0ffee",
        interface: "net1",
        podUID: "p-1",
        since: 1_700_000_000_002,
        detached: false,
        netns: "/run/netns/cni-1",
        bootID: "b-1",
      },
      message: 'Grüße, 地址 and "quotes"',
    },
  };
}

export function poolOf(name: string, other: Partial<PoolRecord["spec"]> = {}): PoolRecord {
  return { name, spec: { ranges: [{ cidr: "10.20.0.0/16", gateway: "10.20.255.254" }], ...other } };
}

export function blockOf(cidr: string, other: Partial<Block> = {}): Block {
  return { cidr, pool: "db", node: "node-a", nodeUID: "u-1", holes: [], ...other };
}

/** With every field set that is made with it. */
export function fullBlock(cidr: string): Required<Omit<Block, "status">> {
  return {
    ...blockOf(cidr),
    use: "PodCIDR",
    holes: ["10.20.0.64/32", "10.20.0.66/31"],
    granted: true,
    recalledAt: 1_700_000_000_005,
    releasedAt: 1_700_000_000_004,
    division: "closed",
    within: cidr,
    recalledAddresses: 3,
    place: 1,
  };
}
