// SPDX-License-Identifier: Apache-2.0

import { isOwnedIn } from "../../allocator/cache/block-index.ts";
import type { Address } from "../../allocator/ip/address.ts";
import { isDetached } from "../../allocator/lifecycle/bind.ts";
import { returnedOf } from "../../allocator/model/block.ts";
import { defectOf, type Process } from "./process.ts";
import { inWords, type RunState } from "./run-state.ts";

/** What must hold in every state of every run. Gives the words for the first that does not. */
export function firstBroken(state: RunState, processes: readonly Process[]): string | undefined {
  return (
    state.broken[0] ??
    brokenClaim(state) ??
    brokenUse(state) ??
    brokenBlock(state) ??
    brokenGift(state) ??
    brokenHold(state) ??
    processes.map(defectOf).find((words) => words !== undefined)
  );
}

/** A claim in use has its reservations, and no two claims in use share an address. */
function brokenClaim(state: RunState): string | undefined {
  const users = new Map<Address, string>(); // address -> claim
  for (const { key, record } of state.records.list("claim")) {
    if (isDetached(record)) continue;
    for (const address of record.addresses) {
      if (!state.holds(address, record.nonce))
        return `${inWords(record)} is bound and ${address} is not reserved for it`;
      const other = users.get(address);
      if (other !== undefined) return `${address} is bound twice: by ${other} and by ${key}`;
      users.set(address, key);
    }
  }
  return undefined;
}

/** What a live sandbox was given is its claim's as long as it lives. */
function brokenUse(state: RunState): string | undefined {
  for (const [sandbox, { key, nonce, addresses }] of state.uses) {
    const claim = state.records.get("claim", key)?.record;
    const its = claim?.nonce === nonce && claim.releasing !== true;
    const lost = addresses.find((a) => !its || !claim.addresses.includes(a) || !state.holds(a, nonce));
    if (lost !== undefined) return `sandbox ${sandbox} uses ${lost}, and claim ${key} does not hold it`;
  }
  return undefined;
}

/** What a node gives out of its block no claim in use has. */
function brokenBlock(state: RunState): string | undefined {
  const users = state.records.list("claim").filter(({ record }) => !isDetached(record));
  for (const { key, record } of state.records.list("block")) {
    const user = users.find(
      (claim) => record.granted === true && claim.record.addresses.some((a) => isOwnedIn(record, a)),
    );
    if (user !== undefined)
      return `${inWords(user.record)} is bound, and block ${key} of ${record.node} has its address to give`;
  }
  return undefined;
}

/** What a node gave out it gave once, and it has the block as long as that is used. */
function brokenGift({ dynamic, records }: RunState): string | undefined {
  const users = new Map<Address, string>(); // address -> sandbox
  for (const [sandbox, { block, address }] of dynamic) {
    const other = users.get(address);
    if (other !== undefined) return `${address} is given twice: to ${other} and to ${sandbox}`;
    users.set(address, sandbox);
    const now = records.get("block", block.key);
    if (now?.uid !== block.uid || now.record.releasedAt !== undefined)
      return `${sandbox} uses ${address}, and its node does not have block ${block.key} any more`;
    if (returnedOf(now.record).includes(address))
      return `${sandbox} uses ${address}, which its node has given back of block ${block.key}`;
  }
  return undefined;
}

/** A slot that is held for a pod stays held for it for its time. */
function brokenHold({ heldFor, records, now }: RunState): string | undefined {
  for (const [key, { token, until }] of heldFor) {
    if (now >= until) continue;
    const binding = records.get("claim", key)?.record.binding;
    if (binding?.token !== token)
      return `claim ${key} was held for the pod of token ${token}, and is bound to ${binding?.token ?? "nobody"}`;
  }
  return undefined;
}
