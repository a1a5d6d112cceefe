// SPDX-License-Identifier: Apache-2.0
import { isRefusal } from "../../../allocator/base/errors.ts";
import type { Family } from "../../../allocator/ip/address.ts";
import { blockLength, blocksAhead } from "../../../allocator/pool/blocks.ts";
import type { Pool } from "../../../allocator/pool/pool.ts";
import { type ChoiceInput, choosePools, isOpenTo } from "../../../allocator/pool/pool-choice.ts";
import { isOnNetwork, namesAttachmentsAlone } from "../../../allocator/pool/pool-networks.ts";

/** A pool, by its name, that a pod needs an address of, perhaps for another interface than the first. */
interface Home {
  readonly pool: string;
  readonly family: Family;
  readonly isFurther: boolean;
}

/**
 * How a pod waits. `new`: its ADD may be under way. `in vain`: where its agent serves it from has nothing for it. `elsewhere`: other pods
 * of its node have addresses that are of no pool, and so will its first interface, most likely; `in vain elsewhere`: and its further ones,
 * which that says nothing of, have waited in vain.
 */
type Wait = "new" | "in vain" | "elsewhere" | "in vain elsewhere";

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
/** Where pods have addresses from elsewhere, one that is slow to start does not wait for Berth. */
const SLOW_MS = 30_000;

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
    if (now - since >= (isServedElsewhere ? SLOW_MS : IN_VAIN_MS)) return "in vain";
    if (!isServedElsewhere) return "new";
    return now - since >= IN_VAIN_MS ? "in vain elsewhere" : "elsewhere";
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
 * one for networks may be for fixed addresses alone, while those networks have addresses of their own.
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
  const further = pod.further.flatMap((networks) => {
    const own = pools.filter((pool) => isFor(pool, networks));
    const isLate = wait === "in vain" || wait === "in vain elsewhere";
    if (isLate) return openTo(own, pod.input);
    return pod.asksNothing ? chosenFor(own.filter(gives), { ...pod.input, networks }) : [];
  });
  const others = wait === "in vain" && pod.asksNothing ? openTo(pools.filter(mayBeOn(pod)), pod.input) : [];
  const at = (isFurther: boolean) => (one: Chosen) => ({ ...one, pool: one.pool.name, isFurther });
  const rest = at(pod.further.length > 0);
  const all = [...counted.map(at(false)), ...[...further, ...others].map(rest)];
  return [...new Map(all.reverse().map((home) => [`${home.pool}/${home.family}`, home])).values()];
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

/** Only agents know the name in a network's configuration; a pod's annotations say which NetworkAttachmentDefinitions it has. */
function mayBeOn({ input, further }: WaitingPod): (pool: Pool) => boolean {
  const names = [...(input.networks ?? []), ...further.flat()];
  return (pool) => !namesAttachmentsAlone(pool) || isOnNetwork(pool, names);
}

function openTo(pools: readonly Pool[], input: ChoiceInput): readonly Chosen[] {
  return pools
    .filter((pool) => blocksAhead(pool) === 0 && isOpenTo(pool, input))
    .flatMap((pool) => pool.families.map((family) => ({ pool, family })))
    .filter(({ pool, family }) => blockLength(pool, family) !== undefined);
}
