// SPDX-License-Identifier: Apache-2.0
import { type Address, parseAddress } from "../../allocator/ip/address.ts";
import type { Claim, ClaimKey } from "../../allocator/model/claim.ts";
import type { Reservation } from "../../allocator/model/reservation.ts";
import type { PoolRecord } from "../../allocator/pool/pool.ts";
import type { Seed } from "./run.ts";
import { BEGIN } from "./run-state.ts";

function addressOf(text: string): Address {
  const address = parseAddress(text);
  if (address === undefined) throw new TypeError(`${text} is no address`);
  return address;
}

export const X: Address = addressOf("10.0.0.1");
export const Y: Address = addressOf("10.0.0.2");
export const Z: Address = addressOf("10.0.0.3");
/** Of the other family. */
export const V: Address = addressOf("fd00::1");

const HOMES = new Map([
  // address -> its pool, which has no other
  [X, "x"],
  [Y, "y"],
  [Z, "z"],
  [V, "v"],
]);

/** A pool for each address, so that an order of pools is an order of candidates. They cool for 30 s. */
export const POOLS: readonly PoolRecord[] = [...HOMES].map(([address, name]) => ({
  name,
  spec: {
    ranges: [{ cidr: address === V ? "fd00::/64" : "10.0.0.0/24", from: address, to: address }],
    cooldown: "30s",
  },
}));

/** A minute before anything happens. */
export const BEFORE: number = BEGIN - 60_000;
/** Of the records that are there at the beginning. */
function nonceOf(name: string): string {
  return `of ${name}`;
}

export function keyOf(name: string): ClaimKey {
  return { namespace: "shop", name };
}

/** The claim of a StatefulSet's only pod, which holds these addresses and is bound to nobody. */
export function claim(name: string, addresses: readonly Address[], more: Partial<Claim> = {}): Seed {
  const record: Claim = {
    ...keyOf(name),
    identity: { kind: "StatefulSet", apiVersion: "apps/v1", name, ordinal: 0 },
    request: {},
    retention: { whenDeleted: "Release", whenScaled: "Release", ttlMs: null },
    addresses,
    nonce: nonceOf(name),
    admittedAt: BEFORE,
    status: {},
    ...more,
  };
  return { kind: "claim", record };
}

/** A person made it, and nobody has reserved anything for it yet. */
export function handMade(name: string): Seed {
  return claim(name, [], { nonce: "", handMade: true, status: {} });
}

export function reserved(address: Address, name: string, more: Partial<Reservation> = {}): Seed {
  const record = {
    address,
    pool: HOMES.get(address) ?? "",
    claim: keyOf(name),
    nonce: nonceOf(name),
    ...more,
  };
  return { kind: "reservation", record };
}

/** The claim with its reservations. */
export function held(name: string, addresses: readonly Address[], more: Partial<Claim> = {}): Seed[] {
  return [claim(name, addresses, more), ...addresses.map((address) => reserved(address, name))];
}

/** Bound to pod u-<name> on n1, whose sandbox is up, or was seen to end. */
export function bound(name: string, sandbox: "up" | "ended"): Partial<Claim> {
  const podUID = `u-${name}`;
  const at = { node: "n1", interface: "eth0", podUID, since: BEFORE };
  return {
    binding: { token: "", podName: name, podUID, node: "n1", since: BEFORE },
    status: {
      attachment: { ...at, containerID: "c1", detached: sandbox === "ended" },
    },
  };
}
