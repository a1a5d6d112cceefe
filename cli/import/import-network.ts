// SPDX-License-Identifier: Apache-2.0
// A network of cni-ipam-etcd becomes a pool, and each address that it gave a claim, while containers run.
import { isRefusal, type Refusal, refuse } from "../../allocator/base/errors.ts";
import { listed } from "../../allocator/base/listed.ts";
import { inParallel } from "../../allocator/base/parallel.ts";
import type { Clock } from "../../allocator/base/ports.ts";
import { type Address, fromNumber } from "../../allocator/ip/address.ts";
import { type ClaimKey, claimKey } from "../../allocator/model/claim.ts";
import { type Pool, type PoolRecord, parseStoredPool, rangeOf } from "../../allocator/pool/pool.ts";
import type { Store } from "../../allocator/store/store.ts";
import { NAMESPACE } from "../../ipam-plugin/agent/claims/etcd/container-name.ts";
import { formerClaimName, isLeftOfImport } from "../../ipam-plugin/agent/claims/etcd/former-containers.ts";
import { differsFrom, poolOfNetwork } from "../../ipam-plugin/agent/claims/etcd/network-pool.ts";
import type { RangeSet } from "../../ipam-plugin/cni/range-set.ts";
import type { FormerNetwork, Used } from "./former-network.ts";

/** Addresses that a refusal names. */
const NAMED = 8;
/** Each is marked. */
const MOST = 65_536n;
const AT_ONCE = 16;
/** Between its look at an address and its write an ADD of cni-ipam-etcd takes milliseconds. */
const SETTLE_MS = 5_000;
const ROUNDS = 20;

interface ImportParts {
  readonly network: FormerNetwork;
  readonly store: Pick<Store, "get">;
  readonly clock: Pick<Clock, "sleep">;
  /** Makes the pool, and a claim with an address of it, by the rules of every other. Gives why not. */
  readonly makePool: (pool: PoolRecord) => Promise<string | undefined>;
  readonly makeClaim: (claim: ClaimKey, address: Address) => Promise<string | undefined>;
  /** Gives its address back. Gives why not. */
  readonly releaseClaim: (claim: ClaimKey) => Promise<string | undefined>;
  /** Told of each address that is kept for a container. */
  readonly report: (used: Used) => void;
}

interface Imported {
  readonly pool: string;
  /** Addresses that claims keep for containers; those of earlier imports are not among them. */
  readonly kept: number;
  /** Of the whole network. */
  readonly addresses: number;
}

interface Taking extends ReadNetwork {
  /** An import before this one had marked keys. */
  readonly hadMarks: boolean;
}

interface ReadNetwork {
  /** What its ranges are. */
  readonly pool: PoolRecord;
  /** The pool that is stored, which may have more; before it is, the same. */
  readonly space: Pool;
  readonly isStored: boolean;
  /** Of its ranges. */
  readonly addresses: readonly Address[];
}

/** What the network is, if it can be imported. */
export async function readNetwork(
  network: FormerNetwork,
  store: ImportParts["store"],
): Promise<ReadNetwork | Refusal> {
  const sets = await network.rangeSets();
  if (sets === undefined) {
    const words = `cni-ipam-etcd has kept nothing of a network called ${network.name} in this etcd`;
    return refuse("OBJECT_INVALID", words);
  }
  const pool = poolOfNetwork(network.name, sets);
  if (isRefusal(pool)) return pool;
  const addresses = addressesOf(sets);
  if (isRefusal(addresses)) return addresses;
  const stored = await store.get("pool", pool.name);
  const space = parseStoredPool(stored?.record ?? pool);
  if (isRefusal(space)) return space;
  return differsFrom(space, pool) ?? { pool, space, isStored: stored !== undefined, addresses };
}

/**
 * What containers have, all of it. Each ADD of cni-ipam-etcd writes the ranges of its own host's configuration: what it gave on
 * a host with other ranges is used as well, and a pool without it would not keep it for its container.
 */
export function usedOf(
  used: readonly Used[],
  { pool, space, addresses }: Pick<ReadNetwork, "pool" | "space" | "addresses">,
): readonly Used[] | Refusal {
  const its = new Set(addresses);
  const outside = used.filter(({ address }) => !its.has(address) && rangeOf(space, address) === undefined);
  if (outside.length === 0) return used;
  const which = outside.map(({ address, container }) => `${address} of container ${container}`);
  const words = `cni-ipam-etcd gave addresses that the network's ranges, as it wrote them last, do not have: ${listed(which, NAMED)}; make pool "${pool.name}" with the ranges of all its hosts (berthctl --etcd URL apply -f), or stop these containers, then import again`;
  return refuse("POOL_INVALID", words, { pool: pool.name });
}

/** How many addresses the network has, with those of hosts with other ranges. */
export function sizeOf(addresses: readonly Address[], used: readonly Used[]): number {
  return new Set([...addresses, ...used.map(({ address }) => address)]).size;
}

/**
 * Two looks that find the same, with a pause in between, end it: an ADD that was under way has written by then. What
 * cni-ipam-etcd could still give is marked before, so that it gives nothing from then on, whichever hosts still have it.
 */
export async function importNetwork(parts: ImportParts): Promise<Imported | Refusal> {
  const { network, clock } = parts;
  const read = await readNetwork(network, parts.store);
  if (isRefusal(read)) return read;
  const { pool, addresses } = read;
  const first = await network.kept();
  const refused = usedOf(first.used, read);
  if (isRefusal(refused)) return refused; // before anything is made
  const unmade = await ensurePool(parts, read);
  if (unmade !== undefined) return unmade;
  const kept: Used[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    if (round > 0) await clock.sleep(SETTLE_MS);
    const took = await takeOnce(parts, { ...read, hadMarks: first.marked.size > 0 });
    if (isRefusal(took)) return took;
    if (took.found === 0 && round > 0)
      return { pool: pool.name, kept: kept.length, addresses: sizeOf(addresses, kept) };
    kept.push(...took.kept);
  }
  const words = `cni-ipam-etcd goes on giving addresses of network ${network.name}; stop what starts containers on hosts that still have it, and import again`;
  return refuse("CLAIM_CHANGED", words);
}

/** `found`: addresses that were not Berth's yet. */
async function takeOnce(
  parts: ImportParts,
  read: Taking,
): Promise<{ readonly found: number; readonly kept: readonly Used[] } | Refusal> {
  const { network } = parts;
  const { addresses } = read;
  const { used, marked } = await network.kept();
  const own = usedOf(used, read);
  if (isRefusal(own)) return own;
  const taken = new Set(used.map(({ address }) => address));
  const free = addresses.filter((address) => !marked.has(address) && !taken.has(address));
  await inParallel(free, AT_ONCE, (address) => network.mark(address));
  const kept: Used[] = [];
  for (const one of own) {
    const refused = (await keep(parts, one, read)) ?? (await settle(parts, one, kept));
    if (refused !== undefined) return refused;
  }
  return { found: own.length + free.length, kept };
}

async function ensurePool(
  { makePool }: ImportParts,
  { pool, isStored }: ReadNetwork,
): Promise<Refusal | undefined> {
  const why = isStored ? undefined : await makePool(pool);
  return why === undefined ? undefined : refuse("POOL_INVALID", why, { pool: pool.name });
}

/** Before the mark: if this breaks off in between, the next import finds the claim. */
async function keep(
  parts: ImportParts,
  used: Used,
  { hadMarks }: Pick<Taking, "hadMarks">,
): Promise<Refusal | undefined> {
  const { network, store, makeClaim } = parts;
  const { address, container } = used;
  const name = formerClaimName({ network: network.name, containerID: container }, address);
  const held = await store.get("reservation", address);
  const holder = held === undefined || held.record.releasedAt !== undefined ? undefined : held.record.claim;
  if (holder?.name === name) return undefined;
  if (holder !== undefined) {
    const left = await leftOf(parts, holder, address);
    if (left === undefined || !hadMarks) return twoHolders(used, holder, left !== undefined);
    const refused = await giveUp(parts, left);
    if (refused !== undefined) return refused;
  }
  const why = await makeClaim({ namespace: NAMESPACE, name }, address);
  if (why !== undefined)
    return refuse("CLAIM_REFUSED", `${address} of container ${container}: ${why}`, { address });
  return undefined;
}

/**
 * From here on cni-ipam-etcd does not touch the address: unless its container ended just now. Another one that has got it is
 * kept at once: on a host that is switched others would be given it until the next look.
 */
async function settle(parts: ImportParts, used: Used, kept: Used[]): Promise<Refusal | undefined> {
  const { network, report } = parts;
  const { address, container } = used;
  if ((await network.mark(address, used)) === "marked") {
    kept.push(used);
    report(used);
    return undefined;
  }
  const now = await network.at(address);
  if (now?.container === container) return undefined; // the next look takes it as it is now
  const name = formerClaimName({ network: network.name, containerID: container }, address);
  const left = await leftOf(parts, { namespace: NAMESPACE, name }, address);
  const refused = left && (await giveUp(parts, left));
  if (refused !== undefined || now === undefined || now.isMarked) return refused;
  return (await keep(parts, now, { hadMarks: false })) ?? (await settle(parts, now, kept));
}

/** The claim, if an import has made it for a container that has not begun again since. */
async function leftOf(
  { store }: ImportParts,
  claim: ClaimKey,
  address: Address,
): Promise<ClaimKey | undefined> {
  const seen = await store.get("claim", claimKey(claim));
  return seen !== undefined && isLeftOfImport(seen.record, address) ? claim : undefined;
}

async function giveUp({ releaseClaim }: ImportParts, claim: ClaimKey): Promise<Refusal | undefined> {
  const why = await releaseClaim(claim);
  if (why === undefined) return undefined;
  const key = claimKey(claim);
  const words = `claim ${key} was made for a container that has ended, and was not released: ${why}; import again`;
  return refuse("CLAIM_CHANGED", words, { claim: key });
}

/**
 * A claim of an earlier import whose key is another container's was left by one that broke off: its container ended before the
 * key was marked. But if no key is marked, somebody has deleted them, and both may run.
 */
function twoHolders({ address, container }: Used, holder: ClaimKey, isOfImport: boolean): Refusal {
  const key = claimKey(holder);
  const todo = isOfImport
    ? `which keeps it for a container of an earlier import; stop container ${container}, or, if the other one has ended: berthctl --etcd URL release ${key}; then import again`
    : "stop one of the two, then import again";
  const words = `${address} has two holders: container ${container} by cni-ipam-etcd, and claim ${key}${isOfImport ? ", " : "; "}${todo}`;
  return refuse("ADDRESS_TAKEN", words, { address });
}

function addressesOf(sets: readonly RangeSet[]): readonly Address[] | Refusal {
  const subnets = sets.flat();
  const all = subnets.reduce((sum, { bounds: { first, last } }) => sum + last - first + 1n, 0n);
  if (all > MOST) {
    const words = `the network has ${all} addresses, and each is marked; up to ${MOST} can be imported; drain the hosts of this one instead`;
    return refuse("REQUEST_INVALID", words);
  }
  return subnets.flatMap(({ family, bounds: { first, last } }) =>
    Array.from({ length: Number(last - first + 1n) }, (_, i) => fromNumber(first + BigInt(i), family)),
  );
}
