// SPDX-License-Identifier: Apache-2.0
import { type Address, FAMILIES, type Family } from "../ip/address.ts";
import type { Block } from "../model/block.ts";
import { type Claim, claimKey } from "../model/claim.ts";
import { addressesOn, formatHolding, placesOf, saidOf } from "../model/interfaces.ts";
import { isBackedByClaim, type Reservation } from "../model/reservation.ts";
import { countFamilies } from "../planning/eligibility.ts";
import { classify, type Pool, poolOf, rangeOf } from "../pool/pool.ts";
import { servesNetwork } from "../pool/pool-networks.ts";
import { auditBlocks, auditBlockUse } from "./audit-blocks.ts";
import type { AuditedAttachment } from "./audited-attachment.ts";
import { defect, type Finding, pending } from "./finding.ts";

/** All records as of one moment. */
export interface AuditInput {
  readonly pools: readonly Pool[];
  readonly claims: readonly Claim[];
  readonly reservations: readonly Reservation[];
  readonly attachments: readonly AuditedAttachment[];
  /** Absent: nobody looked at them. */
  readonly blocks?: readonly Block[];
}

/** Compares the records with each other, in both directions. Pure: same records in, same findings out. */
export function audit(auditInput: AuditInput): Finding[] {
  const claims = new Map(auditInput.claims.map((claim) => [claimKey(claim), claim])); // namespace/name -> claim
  return [
    ...auditInput.claims.flatMap(auditClaim),
    ...auditSharing(auditInput.claims),
    ...auditReserved(auditInput),
    ...auditInput.reservations.flatMap((reservation) =>
      auditReservation(reservation, claims, auditInput.pools),
    ),
    ...auditUse(auditInput.attachments, claims),
    ...auditOwnUse(auditInput),
    ...auditBlocks(auditInput.blocks ?? [], auditInput.claims, auditInput.pools),
    ...(auditInput.blocks === undefined ? [] : auditBlockUse(auditInput.attachments, auditInput.blocks)),
  ];
}

function auditClaim(claim: Claim): Finding[] {
  const key = claimKey(claim);
  const findings: Finding[] = [];
  if (hasTwoOfAFamily(claim)) {
    findings.push(
      defect(
        "two-of-a-family",
        key,
        `claim ${key} has ${formatHolding(claim).join(", ")}, two of one family`,
      ),
    );
  }
  if (claim.releasing === true) {
    findings.push(pending("half-released", key, `claim ${key} is being given back`));
  }
  if (claim.nonce === "") {
    findings.push(
      pending("unreserved-request", key, `claim ${key} was made by hand and has no addresses yet`),
    );
  }
  return findings;
}

/** One of each family, or as many as were asked for by name; what is of no interface is told as if it was of one. */
function hasTwoOfAFamily(claim: Claim): boolean {
  const places = placesOf(claim) ?? {};
  const lists = Object.keys(places).map((name) => {
    const asked = countFamilies(saidOf(claim.request.interfaces, name) ?? []);
    return { its: addressesOn(claim, name) ?? [], most: (family: Family) => Math.max(1, asked[family] ?? 0) };
  });
  const placed = new Set(lists.flatMap(({ its }) => its));
  const others = claim.addresses.filter((address) => !placed.has(address));
  return [...lists, { its: others, most: () => 1 }].some(({ its, most }) => {
    const has = countFamilies(its);
    return FAMILIES.some((family) => (has[family] ?? 0) > most(family));
  });
}

function auditSharing(claims: readonly Claim[]): Finding[] {
  const holders = new Map<Address, string>(); // address -> first claim that lists it
  const findings: Finding[] = [];
  for (const claim of claims) {
    if (claim.releasing === true) continue;
    const key = claimKey(claim);
    for (const address of claim.addresses) {
      const other = holders.get(address);
      if (other === undefined) holders.set(address, key);
      else
        findings.push(
          defect("double-claim", address, `address ${address} is listed by claims ${other} and ${key}`),
        );
    }
  }
  return findings;
}

function auditReserved(auditInput: AuditInput): Finding[] {
  const reserved = new Map(auditInput.reservations.map((r) => [r.address, r])); // address -> reservation
  return auditInput.claims.flatMap((claim) => {
    if (claim.releasing === true) return [];
    const missing = claim.addresses.filter((address) => {
      const reservation = reserved.get(address);
      return (
        reservation === undefined || reservation.nonce !== claim.nonce || reservation.releasedAt !== undefined
      );
    });
    const key = claimKey(claim);
    return missing.map((address) =>
      defect("unreserved", address, `claim ${key} lists ${address}, which is not reserved for it`),
    );
  });
}

function auditReservation(
  reservation: Reservation,
  claims: ReadonlyMap<string, Claim>,
  pools: readonly Pool[],
): Finding[] {
  // Cooling: nobody relies on it, and its pool may be gone before it is.
  if (reservation.releasedAt !== undefined) return [];
  const { address, pool } = reservation;
  const findings: Finding[] = [];
  const key = claimKey(reservation.claim);
  if (!isBackedByClaim(claims.get(key), reservation)) {
    findings.push(
      pending("orphan", address, `address ${address} is reserved for ${key}, which does not rely on it`),
    );
  }
  // where two pools are over each other it is of that which it was taken from
  const own = pools.find(({ name }) => name === pool);
  const home = own !== undefined && rangeOf(own, address) !== undefined ? own : poolOf(pools, address);
  if (home === undefined) {
    findings.push(defect("outside", address, `address ${address} is reserved for ${key} and in no pool`));
  } else if (classify(home, address) === "excluded" || classify(home, address) === "gateway") {
    findings.push(
      defect(
        "outside",
        address,
        `address ${address} is reserved for ${key}, and pool ${home.name} does not give it out`,
      ),
    );
  } else if (home.name !== pool) {
    findings.push(
      defect(
        "misfiled",
        address,
        `address ${address} is filed under pool ${pool} and belongs to ${home.name}`,
      ),
    );
  }
  return findings;
}

function auditUse(attachments: readonly AuditedAttachment[], claims: ReadonlyMap<string, Claim>): Finding[] {
  const users = new Map<string, string>(); // scope/address -> sandbox
  const findings: Finding[] = [];
  for (const attachment of attachments) {
    const who = `${attachment.containerID} ${attachment.interface} on ${attachment.node}`;
    // Addresses that only a node knows are told apart by network; claimed ones are unique everywhere.
    const scope = attachment.claim === undefined ? `${attachment.node}/${attachment.network}` : "";
    for (const address of attachment.addresses) {
      const other = users.get(`${scope}/${address}`);
      if (other === undefined) users.set(`${scope}/${address}`, who);
      else
        findings.push(defect("double-use", address, `address ${address} is used by ${other} and by ${who}`));
    }
    findings.push(...auditClaimedUse(attachment, claims, who));
  }
  return findings;
}

/** A sandbox that a network gave an address to by itself, before or beside a pool that has it for the same network. */
function auditOwnUse({ attachments, claims, pools }: AuditInput): Finding[] {
  const own = attachments.filter(({ ofNetwork }) => ofNetwork !== undefined);
  if (own.length === 0) return [];
  const holders = new Map<Address, string>(); // address -> claim
  for (const claim of claims) for (const address of claim.addresses) holders.set(address, claimKey(claim));
  return own.flatMap(({ node, containerID, interface: name, ofNetwork = "", addresses }) =>
    addresses.flatMap((address) => {
      const [holder, pool] = [holders.get(address), poolOf(pools, address)];
      if (holder === undefined || pool === undefined || servesNetwork(pool, ofNetwork) !== "yes") return [];
      const words = `address ${address} is used by ${containerID} ${name} on ${node}, which has it of the configuration of network ${ofNetwork}, and claim ${holder} has it of pool ${pool.name}`;
      return [defect("double-use", address, words)];
    }),
  );
}

function auditClaimedUse(
  attachment: AuditedAttachment,
  claims: ReadonlyMap<string, Claim>,
  who: string,
): Finding[] {
  if (attachment.claim === undefined) return [];
  const claim = claims.get(attachment.claim);
  const lost = attachment.addresses.filter((address) => claim?.addresses.includes(address) !== true);
  return lost.map((address) =>
    defect(
      "unclaimed-use",
      address,
      `address ${address} is used by ${who}, and claim ${attachment.claim} does not have it`,
    ),
  );
}
