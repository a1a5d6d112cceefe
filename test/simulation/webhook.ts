// SPDX-License-Identifier: Apache-2.0

import { BerthError } from "../../allocator/base/errors.ts";
import { noopMetrics } from "../../allocator/base/ports.ts";
import {
  type BlockEvidence,
  divide,
  endCooldown,
  giveBack,
  recall,
  returnedBy,
} from "../../allocator/blocks/give-back.ts";
import { finishGrant, grantSingle } from "../../allocator/blocks/grant.ts";
import { grantBlock } from "../../allocator/blocks/testing/grant-block.ts";
import type { RecordCache } from "../../allocator/cache/cache.ts";
import type { Context } from "../../allocator/cache/context.ts";
import { GarbageCollector } from "../../allocator/gc/garbage-collector.ts";
import { type GcLoop, startGcLoop } from "../../allocator/gc/gc-loop.ts";
import { fromNumber, parseCidr } from "../../allocator/ip/address.ts";
import { IntervalSet } from "../../allocator/ip/interval-set.ts";
import { fullInterval } from "../../allocator/ip/ip-range.ts";
import { returnedOf } from "../../allocator/model/block.ts";
import type { Claim } from "../../allocator/model/claim.ts";
import type { ClusterState } from "../../allocator/model/cluster-state.ts";
import type { Stored } from "../../allocator/store/store.ts";
import { createHandlers } from "../../webhook/admission/routes.ts";
import type { AdmissionRequest, AdmissionResponse, Route } from "../../webhook/review/admission-review.ts";
import { withDeadline } from "../../webhook/review/deadline.ts";

import { applied, type Json } from "../support/objects.ts";
import { WEB } from "./cast.ts";
import { objectOf } from "./cluster.ts";
import type { Permit } from "./letting-go.ts";
import type { Process } from "./process.ts";
import { processDeps, type Setting } from "./setting.ts";

/** One replica of the webhook, with its garbage collector if it has one. */
export class Webhook {
  readonly process: Process;
  readonly cache: RecordCache;
  readonly #setting: Setting;
  readonly #context: Context;
  readonly #inventory: ClusterState;
  readonly #handlers: ReturnType<typeof createHandlers>;
  readonly #log: Parameters<typeof withDeadline>[1]["log"];
  #gcLoop: GcLoop | undefined;

  constructor(process: Process, setting: Setting, collectsGarbage: boolean) {
    const { context, cluster, inventory, cache, synced } = processDeps(process, setting, "webhook");
    this.process = process;
    this.cache = cache;
    this.#setting = setting;
    this.#context = context;
    this.#inventory = inventory;
    this.#log = context.log;
    const { enqueueForGc } = setting;
    this.#handlers = createHandlers({ context, inventory, embedded: cluster, enqueueForGc });
    if (!collectsGarbage) return;
    void synced.then(() => {
      const collector = new GarbageCollector(context, inventory);
      const tampered = setting.injection.collector?.(collector, context, inventory) ?? collector;
      this.#gcLoop = startGcLoop(context, tampered, noopMetrics);
    });
  }

  get collectsGarbage(): boolean {
    return this.#gcLoop !== undefined;
  }

  enqueueForGc(claim: Claim): void {
    this.#gcLoop?.enqueue(claim);
  }

  /** The answer, or undefined when there is none: the process died, or was not ready. */
  async review(route: Route, request: AdmissionRequest): Promise<AdmissionResponse | undefined> {
    const { process } = this;
    if (!process.alive || !this.cache.ready) return undefined;
    const { clock } = process;
    const options = { route, log: this.#log, metrics: noopMetrics, clock };
    const decide = withDeadline((asked, signal) => this.#handle(route, asked, signal), options);
    return await process.run(new AbortController(), (signal) => decide(request, signal));
  }

  /** Hands a block of the pool out, as a controller does. */
  async grant(node: string): Promise<void> {
    const pool = this.#context.view.pool(WEB);
    const request = { family: "IPv4", node, nodeUID: `uid-of-${node}` } as const;
    if (pool !== undefined)
      await this.#alone(() => grantBlock(this.#context, pool, request, new IntervalSet()));
  }

  /** Goes on with a grant that broke off. */
  async finish(block: Stored<"block">): Promise<void> {
    await this.#alone(() => finishGrant(this.#context, block));
  }

  /**
   * Goes on with taking the block back: its node is fenced, or its agent has given it back; else the agent is asked for it. Where
   * no agent serves from blocks, nothing of it is used.
   */
  async takeBack(block: Stored<"block">): Promise<void> {
    await this.#alone(async () => {
      const evidence = await this.#evidenceOf(block);
      if (block.record.releasedAt !== undefined) await endCooldown(this.#context, block);
      else if (evidence !== undefined) await giveBack(this.#context, block, evidence);
      else if (block.record.granted !== true) await finishGrant(this.#context, block);
      else await recall(this.#context, block);
    });
  }

  /** Asks the owner for one address more. */
  async askForAddress(block: Stored<"block">): Promise<void> {
    const recalledAddresses = returnedOf(block.record).length + 1;
    await this.#alone(() =>
      this.#context.store.replace("block", block, { ...block.record, recalledAddresses }),
    );
  }

  /** Makes an address of the block a block of the node's own, if its owner has given it back, or nobody has it. */
  async grantSingle(block: Stored<"block">, node: string, n: number): Promise<void> {
    const network = parseCidr(block.key);
    if (network === undefined) return;
    const { first, last } = fullInterval(network);
    const address = fromNumber(first + (BigInt(n) % (last - first + 1n)), network.family);
    const { store } = this.#context;
    await this.#alone(async () => {
      if (block.record.division === undefined && (await divide(store, block, "returned")) === "changed")
        return;
      const pool = this.#context.view.pool(WEB);
      const request = { within: block.key, address, node, nodeUID: `uid-of-${node}` };
      if (pool !== undefined) await grantSingle(this.#context, pool, request);
    });
  }

  async #evidenceOf(block: Stored<"block">): Promise<BlockEvidence | undefined> {
    const { blocks, injection } = this.#setting;
    if (!blocks) return { kind: "returned", uid: block.uid };
    if (injection.blockEvidence !== undefined) return injection.blockEvidence(block);
    const { node } = block.record;
    const returned = returnedBy(block);
    if (returned !== undefined || block.record.releasedAt !== undefined) return returned;
    return (await this.#inventory.fenced(node)) ? { kind: "fenced", node } : undefined;
  }

  async #alone(work: () => Promise<unknown>): Promise<void> {
    try {
      await this.process.run(new AbortController(), work);
    } catch (error) {
      if (!(error instanceof BerthError) || error.code === "INTERNAL") throw error;
    }
  }

  async #handle(route: Route, request: AdmissionRequest, signal: AbortSignal): Promise<AdmissionResponse> {
    const permit = permitFor(this.process, route, request);
    const revoke = permit && this.#setting.invariants.permit(permit);
    try {
      const response = await this.#handlers[route](request, signal);
      if (route === "/mutate/pods" && response.patch !== undefined) {
        const pod = objectOf(applied(request.object as Json, response));
        await this.#setting.injection.reviewed?.(this.#context, this.#inventory, pod);
      }
      return response;
    } finally {
      revoke?.();
    }
  }
}

/** What the review may release: a claim that a person deletes, or what it took itself for a workload that is refused. */
function permitFor(process: Process, route: Route, request: AdmissionRequest): Permit | undefined {
  const key = `${request.namespace}/${request.name}`;
  if (route === "/validate/workloads")
    return { process, unused: true, isFor: (claim) => claim.startsWith(`${key}-`) };
  if (route !== "/validate/claims" || request.operation !== "DELETE") return undefined;
  return { process, unused: false, isFor: (claim) => claim === key };
}
