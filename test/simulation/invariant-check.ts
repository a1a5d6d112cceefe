// SPDX-License-Identifier: Apache-2.0

import { isRefusal } from "../../allocator/base/errors.ts";
import { isOwnedIn } from "../../allocator/cache/block-index.ts";
import { audit } from "../../allocator/gc/audit.ts";
import type { AuditedAttachment } from "../../allocator/gc/audited-attachment.ts";
import type { Address } from "../../allocator/ip/address.ts";
import { type Block, isReturned, returnedOf } from "../../allocator/model/block.ts";
import { type Claim, claimKey } from "../../allocator/model/claim.ts";
import { parseAddresses } from "../../allocator/model/interfaces.ts";
import { type Pool, type PoolRecord, parsePool } from "../../allocator/pool/pool.ts";
import type { MemoryRecords, Written } from "../model/memory-records.ts";
import { ClaimReads } from "./claim-reads.ts";
import type { Cluster } from "./cluster.ts";
import type { Sandbox } from "./cni-call.ts";
import { isPlace } from "./cni-call.ts";
import { Doubt } from "./doubt.ts";
import { LettingGo, type Permit } from "./letting-go.ts";
import type { Node } from "./node.ts";
import { assignedOn } from "./pod.ts";
import { BEGIN, Process } from "./process.ts";
import type { Schedule } from "./schedule.ts";
import { freedTooSoon } from "./terms.ts";

/** An invariant is broken: what ends a run. */
export class Violation extends Error {
  override readonly name = "Violation";
}

export interface InvariantCheckOptions {
  readonly records: MemoryRecords;
  readonly cluster: Cluster;
  readonly schedule: Schedule;
  readonly pools: readonly PoolRecord[];
}

/** Sees everything that happens, knows what is true, and compares it with the invariants of the design. */
export class InvariantCheck {
  readonly reads: ClaimReads;
  readonly #options: InvariantCheckOptions;
  readonly #pools: readonly Pool[];
  readonly #doubt: Doubt;
  readonly #lettingGo: LettingGo;
  readonly #objections: string[] = [];
  #nodes: readonly Node[] = [];
  /** Something changed since the last judgement. */
  #stirred = true;

  constructor(options: InvariantCheckOptions) {
    const { records, cluster, schedule } = options;
    this.#options = options;
    this.#pools = options.pools.map(parsedPool);
    this.#doubt = new Doubt(records);
    this.reads = new ClaimReads(schedule);
    this.#lettingGo = new LettingGo({ records, cluster, schedule, reads: this.reads, doubt: this.#doubt });
    records.listen((written) => this.#onWrite(written));
  }

  get pools(): readonly Pool[] {
    return this.#pools;
  }

  watchOver(nodes: readonly Node[]): void {
    this.#nodes = nodes;
  }

  /** Ends the run at the next judgement. */
  object(words: string): void {
    this.#objections.push(words);
    this.#stirred = true;
  }

  permit(permit: Permit): () => void {
    return this.#lettingGo.permit(permit);
  }

  beforeChange(): void {
    this.#lettingGo.beforeChange();
  }

  /** A pod was let in, and told what it has. */
  admitted(claim: string, addresses: readonly string[]): void {
    if (this.#doubt.wasSure(claim, parseAddresses(addresses).addresses)) return;
    this.object(
      `invariant 7: a pod was admitted with ${addresses.join("+")}, which claim ${claim} never had for sure`,
    );
  }

  /** The runtime has the answer to an ADD and uses what it says. */
  wentUp(sandbox: Sandbox, addresses: readonly Address[]): void {
    this.#stirred = true;
    const { pod } = sandbox;
    const words = `sandbox ${sandbox.id} of pod ${pod.name}/${pod.uid} went up with ${addresses.join("+")}`;
    const assigned = assignedOn(pod, sandbox.interface);
    if (assigned !== undefined && !sameAddresses(assigned, addresses)) {
      this.object(`invariant 7: ${words}, and the pod was admitted with ${assigned.join("+")}`);
    }
    if (
      sandbox.phase === "up" &&
      sandbox.addresses.length > 0 &&
      !sameAddresses(sandbox.addresses, addresses)
    ) {
      this.object(`invariant 4: ${words}, and was told ${sandbox.addresses.join("+")} before`);
    }
  }

  /** Throws a Violation for the first invariant that does not hold now. */
  judge(): void {
    const stirred = this.#stirred;
    this.#stirred = false;
    const words =
      this.#objections[0] ??
      (stirred ? (this.#judgeUse() ?? this.#judgeRecords()) : undefined) ??
      this.#judgeJournals();
    if (words !== undefined) throw new Violation(words);
  }

  #onWrite(written: Written): void {
    this.#stirred = true;
    const { acting } = this.#options.schedule;
    const by = acting instanceof Process ? acting : undefined;
    const words = this.#lettingGo.judge(written, by);
    if (words !== undefined) this.object(`invariant 5: ${words}`);
    const freed = freedTooSoon(written, this.#pools, BEGIN + this.#options.schedule.time);
    if (freed !== undefined) this.object(`invariant 6: ${freed}`);
    this.#doubt.note(written);
  }

  /** Of what sandboxes use: it changes with the records, and when one goes up. */
  #judgeUse(): string | undefined {
    const users = new Map<Address, Sandbox>(); // address -> live sandbox
    for (const node of this.#nodes) {
      for (const sandbox of node.sandboxes) {
        if (sandbox.phase !== "up") continue;
        const words =
          sharedUse(users, sandbox) ??
          (sandbox.fromBlock
            ? this.#judgeOwned(node, sandbox)
            : (this.#judgeBound(node, sandbox) ?? this.#judgeBlocks(sandbox)));
        if (words !== undefined) return words;
      }
    }
    return undefined;
  }

  #judgeJournals(): string | undefined {
    for (const node of this.#nodes) {
      const words = judgeJournal(node);
      if (words !== undefined) return words;
    }
    return undefined;
  }

  /** Invariants 3 and 8: what a live sandbox uses is its claim's, and the claim is bound to its node. */
  #judgeBound(node: Node, sandbox: Sandbox): string | undefined {
    for (const address of sandbox.addresses) {
      const who = `sandbox ${sandbox.id} of pod ${sandbox.pod.name}/${sandbox.pod.uid} on ${node.name} uses ${address}`;
      const reservation = this.#options.records.get("reservation", address)?.record;
      if (reservation === undefined) return `invariant 3: ${who}, which is not reserved any more`;
      if (reservation.releasedAt !== undefined) return `invariant 3: ${who}, which was given back`;
      const stored = this.#options.records.get("claim", claimKey(reservation.claim));
      if (stored === undefined)
        return `invariant 3: ${who}, whose claim ${claimKey(reservation.claim)} is gone`;
      const { record } = stored;
      if (
        record.releasing === true ||
        record.nonce !== reservation.nonce ||
        !record.addresses.includes(address)
      ) {
        return `invariant 3: ${who}, which claim ${stored.key} does not hold`;
      }
      if (record.binding?.node !== node.name) {
        return `invariant 3: ${who}, and claim ${stored.key} is bound to ${record.binding?.podName ?? "nobody"} on ${record.binding?.node || "no node"}`;
      }
    }
    return undefined;
  }

  /** Invariant 3 for blocks: what a sandbox has of one is of a block that its node owns, and that nobody has taken from it. */
  #judgeOwned({ name }: Node, { id, addresses }: Sandbox): string | undefined {
    const all = this.#options.records.list("block").map(({ record }) => record);
    // an address that is a block of its own is of that, and not of the block around it
    const isSingle = (one: Block) => one.within !== undefined;
    const blocks = [
      ...all.filter((one) => isSingle(one) && one.granted === true),
      ...all.filter((one) => !isSingle(one)),
    ];
    for (const address of addresses) {
      const block = blocks.find((one) => isOwnedIn(one, address));
      if (block !== undefined && returnedOf(block).includes(address))
        return `invariant 3: sandbox ${id} on ${name} uses ${address}, which was given back of block ${block.cidr}`;
      if (block?.node !== name || block.granted !== true)
        return `invariant 3: sandbox ${id} on ${name} uses ${address} of a block, which is ${block?.node ?? "nobody"}'s`;
      if (block.releasedAt !== undefined || isReturned(block))
        return `invariant 3: sandbox ${id} on ${name} uses ${address}, and its block ${block.cidr} was given back`;
    }
    return undefined;
  }

  /** A node may give what its block has to a pod which asked for nothing, at any moment. */
  #judgeBlocks({ id, addresses }: Sandbox): string | undefined {
    const blocks = this.#options.records.list("block").filter(({ record }) => record.granted === true);
    for (const address of addresses) {
      const block = blocks.find(({ record }) => isOwnedIn(record, address));
      if (block !== undefined)
        return `invariant 3: sandbox ${id} uses ${address}, and block ${block.key} of ${block.record.node} has it to give`;
    }
    return undefined;
  }

  /** What `berthctl check` would call a defect. A claim that is a try is nobody's yet. */
  #judgeRecords(): string | undefined {
    const { records } = this.#options;
    const claims = records
      .list("claim")
      .filter((stored) => stored.record.nonce === "" || this.#doubt.isSure(stored));
    const findings = audit({
      pools: this.#pools,
      claims: claims.map(({ record }) => record),
      reservations: records.list("reservation").map(({ record }) => record),
      blocks: records.list("block").map(({ record }) => record),
      attachments: this.#nodes.flatMap((node) =>
        node.sandboxes.flatMap((sandbox) => this.#audited(node, sandbox)),
      ),
    });
    const defect = findings.find(({ severity }) => severity === "defect");
    if (defect !== undefined) return `audit: ${defect.message}`;
    return twoClaims(claims.map(({ record }) => record));
  }

  #audited(node: Node, { phase, addresses, fromBlock, ...place }: Sandbox): AuditedAttachment[] {
    if (phase !== "up") return [];
    const [first] = addresses;
    const reservation = first && this.#options.records.get("reservation", first)?.record;
    // a reserver that comes to such an address finds the block, and goes on
    const claim = reservation && !fromBlock ? { claim: claimKey(reservation.claim) } : {};
    const { containerID, interface: name } = place;
    return [{ node: node.name, network: "net", containerID, interface: name, ...claim, addresses }];
  }
}

function sharedUse(users: Map<Address, Sandbox>, sandbox: Sandbox): string | undefined {
  for (const address of sandbox.addresses) {
    const other = users.get(address);
    if (other !== undefined)
      return `invariant 3: ${address} is used by sandboxes ${other.id} and ${sandbox.id}`;
    users.set(address, sandbox);
  }
  return undefined;
}

/** Invariant 4: what an ADD answered is in the journal, also in that which a new process has read. */
function judgeJournal({ name, agent, sandboxes }: Node): string | undefined {
  if (agent?.attachments === undefined || !agent.process.alive) return undefined;
  const up = sandboxes.filter(({ phase }) => phase === "up");
  const attached = up.length === 0 ? [] : agent.attachments.attached();
  for (const sandbox of up) {
    const { id, addresses } = sandbox;
    const found = attached.find((one) => isPlace(one, sandbox));
    if (found === undefined)
      return `invariant 4: sandbox ${id} is up, and the journal of ${name} does not have it`;
    const known = found.result.addresses.map(({ address }) => address);
    if (!sameAddresses(known, addresses))
      return `invariant 4: sandbox ${id} uses ${addresses.join("+")}, and the journal of ${name} has ${known.join("+")}`;
  }
  return undefined;
}

/** Invariant 2, of identities that are counted. */
function twoClaims(claims: readonly Claim[]): string | undefined {
  const owners = new Map<string, string>(); // identity -> claim
  for (const { namespace, name, identity, releasing, nonce } of claims) {
    const { kind, ordinal, slot } = identity;
    if ((ordinal ?? slot) === undefined || releasing === true || nonce === "") continue;
    const id = `${namespace}/${kind}/${identity.name}/${ordinal}/${slot}`;
    const other = owners.get(id);
    if (other !== undefined) return `invariant 2: one identity has two claims, ${other} and ${name}`;
    owners.set(id, name);
  }
  return undefined;
}

export function sameAddresses(a: readonly string[], b: readonly string[]): boolean {
  if (a.length !== b.length) return false;
  return a.every((one, n) => one === b[n]) || a.toSorted().join() === b.toSorted().join();
}

export function parsedPool(record: PoolRecord): Pool {
  const pool = parsePool(record);
  if (isRefusal(pool)) throw new TypeError(pool.message);
  return pool;
}
