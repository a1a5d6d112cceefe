// SPDX-License-Identifier: Apache-2.0
import { isRefusal } from "../../../allocator/base/errors.ts";
import type { Family } from "../../../allocator/ip/address.ts";
import { blockLength, blocksAhead } from "../../../allocator/pool/blocks.ts";
import type { Pool } from "../../../allocator/pool/pool.ts";
import { type ChoiceInput, choosePools, isOpenTo } from "../../../allocator/pool/pool-choice.ts";
import { isOnNetwork } from "../../../allocator/pool/pool-networks.ts";

/** A pool, by its name, that a pod needs an address of. */
interface Home {
  readonly pool: string;
  readonly family: Family;
  /** Beyond what agents say is used: for another interface than the first, or for each of several after the pod has waited in vain. */
  readonly isFurther: boolean;
}

/**
 * How a pod waits. `new`: its ADD may be under way. `in vain`: where its agent serves it from has nothing for it; `long in vain`: nor has
 * what it was counted for since. `elsewhere`: other pods of its node have addresses that are of no pool, and so will its first interface,
 * most likely; `in vain elsewhere`: and its further ones, which that says nothing of, have waited in vain.
 */
type Wait = "new" | "in vain" | "long in vain" | "elsewhere" | "in vain elsewhere";

/** A pod without an address, as far as is known here. */
export interface WaitingPod {
  /** `networks`: those that its first interface is likely to be attached to. */
  readonly input: ChoiceInput;
  /** Whether its first interface is served as that of a pod that asks for nothing. Others have a claim, or wait for one. */
  readonly asksNothing: boolean;
  /** The networks of each further interface that no claim is known to serve. */
  readonly further: readonly (readonly string[])[];
}

/** After this long a pod's first ADD has had no address: it waits 5 s for a block. */
const IN_VAIN_MS = 5_000;
/** Where pods have addresses from elsewhere, one that is slow to start does not wait for Berth. Elsewhere it has failed twice by then. */
const SLOW_MS = 30_000;

/**
 * Of one pod's further interfaces whose networks nobody knows: anybody may name networks that are not there, and would have a node
 * hold as many addresses.
 */
const MOST_FURTHER = 3;

/** How long pods have been waiting for an address, as one process has seen it. It only decides of which pools nodes get addresses. */
export class WaitingPods {
  readonly #monotonic: () => number;
  #since = new Map<string, number>(); // UID -> when it was first seen waiting
  #seen = new Map<string, number>();

  constructor(monotonic: () => number) {
    this.#monotonic = monotonic;
  }

  /** To be told of each pod that waits, count by count. */
  see({ uid }: { readonly uid: string }, isServedElsewhere: boolean): Wait {
    const now = this.#monotonic();
    const since = this.#since.get(uid) ?? now;
    this.#seen.set(uid, since);
    const waited = now - since;
    if (waited >= (isServedElsewhere ? 2 * SLOW_MS : SLOW_MS)) return "long in vain";
    if (waited >= (isServedElsewhere ? SLOW_MS : IN_VAIN_MS)) return "in vain";
    if (!isServedElsewhere) return "new";
    return waited >= IN_VAIN_MS ? "in vain elsewhere" : "elsewhere";
  }

  /** The end of a count: who was not seen in it waits no longer. */
  end(): void {
    [this.#since, this.#seen] = [this.#seen, new Map()];
  }
}

/**
 * The pools that a pod without an address needs one of: that from which its agent will serve it, so far as is known here. Of a pool that
 * nodes have nothing ahead of, no agent can say that it lacks addresses, so a pod that waits in vain counts for each such pool that may
 * serve it: its network may name that one, or the pools before it have none left. And it counts for none as long as it is likely to be
 * served from elsewhere: such pools are for fixed addresses, too. `gives`: whether pods that ask for nothing have addresses of a pool;
 * one for networks may be for fixed addresses alone, while those networks have addresses of their own. A pool is named once for each
 * interface that it may serve: one that had too few for all of them would never see the pod start.
 */
export function homesOfWaiting(
  pools: readonly Pool[],
  pod: WaitingPod,
  wait: Wait,
  gives: (pool: Pool) => boolean,
): readonly Home[] {
  const first = pod.asksNothing ? chosenFor(pools, pod.input) : [];
  const counted = first.filter(
    ({ pool }) => (wait !== "elsewhere" && wait !== "in vain elsewhere") || blocksAhead(pool) > 0,
  );
  const further = pod.further.flatMap((networks, n) => {
    const own = pools.filter((pool) => isFor(pool, networks));
    const isLate = wait !== "new" && wait !== "elsewhere";
    const chosen = isLate
      ? openTo(own, pod.input)
      : pod.asksNothing
        ? chosenFor(own.filter(gives), { ...pod.input, networks })
        : [];
    return at(chosen, n + 1, true);
  });
  const others = pod.asksNothing ? perhapsServing(pools, pod, wait) : [];
  const all = [...counted.flatMap((one) => at([one], 0, isBeyond(pod, wait, one))), ...further, ...others];
  const keyOf = ({ home: { pool, family }, interface: n }: HomeAt) => `${pool}/${family}/${n}`;
  return [...new Map(all.reverse().map((one) => [keyOf(one), one.home])).values()];
}

/** For one of the pod's interfaces, by its number. */
interface HomeAt {
  readonly home: Home;
  readonly interface: number;
}

function at(chosen: readonly Chosen[], n: number, isFurther: boolean): readonly HomeAt[] {
  return chosen.map(({ pool, family }) => ({ home: { pool: pool.name, family, isFurther }, interface: n }));
}

/**
 * For a pod that waits in vain: what it may be served from by all that is known here. Most further networks have nothing to do with
 * Berth, so only where one address beside the first has not helped is there one for each of them.
 */
function perhapsServing(pools: readonly Pool[], pod: WaitingPod, wait: Wait): readonly HomeAt[] {
  if (wait !== "in vain" && wait !== "long in vain") return [];
  const most = Math.min(wait === "long in vain" ? MOST_FURTHER : 1, pod.further.length);
  const forAny = pools.filter(({ spec }) => spec.networks === undefined);
  const rest = Array.from({ length: most }, (_, n) => at(openTo(forAny, pod.input), n + 1, true));
  const mayBeFirst = openTo(
    pools.filter((pool) => mayServeFirst(pool, pod)),
    pod.input,
  );
  return [...mayBeFirst.flatMap((one) => at([one], 0, isBeyond(pod, wait, one))), ...rest.flat()];
}

/**
 * Whether its first interface has no address either, or it would have shown one by now. Of a pod with that interface alone what is used
 * may be its own while its kubelet says nothing; after long it is others', of which each may have several and shows one. Where nodes have
 * some ahead it has one of those.
 */
function isBeyond({ further }: WaitingPod, wait: Wait, { pool }: Chosen): boolean {
  if (wait === "long in vain" && blocksAhead(pool) === 0) return true;
  return further.length > 0 && (wait === "in vain" || wait === "long in vain");
}

interface Chosen {
  readonly pool: Pool;
  readonly family: Family;
}

/** The first pool of each family that has blocks of it. */
function chosenFor(pools: readonly Pool[], input: ChoiceInput): readonly Chosen[] {
  const choice = choosePools(pools, input);
  if (choice === undefined || isRefusal(choice)) return [];
  return choice.families.flatMap((family) => {
    const pool = choice.pools.find((one) => blockLength(one, family) !== undefined);
    return pool === undefined ? [] : [{ pool, family }];
  });
}

/** Of a pool that any network may name nothing follows from the names of one. */
function isFor(pool: Pool, networks: readonly string[]): boolean {
  return pool.spec.networks !== undefined && isOnNetwork(pool, networks);
}

/**
 * Only agents know the name in a network's configuration; a pod's annotations say which NetworkAttachmentDefinitions it has. A name that
 * a further network has is that one's.
 */
function mayServeFirst(pool: Pool, { input, further }: WaitingPod): boolean {
  const { networks } = pool.spec;
  const known = further.flat();
  return (
    isOnNetwork(pool, input.networks ?? []) ||
    networks?.some((name) => !name.includes("/") && !known.includes(name)) === true
  );
}

function openTo(pools: readonly Pool[], input: ChoiceInput): readonly Chosen[] {
  return pools
    .filter((pool) => blocksAhead(pool) === 0 && isOpenTo(pool, input))
    .flatMap((pool) => pool.families.map((family) => ({ pool, family })))
    .filter(({ pool, family }) => blockLength(pool, family) !== undefined);
}
