// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import type { AuditedAttachment } from "../../allocator/gc/audited-attachment.ts";
import type { PoolRecord } from "../../allocator/pool/pool.ts";
import type { AttachmentKey, PodRef } from "../../ipam-plugin/agent/claims/claim-source.ts";
import { EmbeddedClaims } from "../../ipam-plugin/agent/claims/embedded.ts";
import { mutatePods } from "../../webhook/admission/mutate-pod.ts";
import { validatePods } from "../../webhook/admission/validate-pod.ts";
import { validateWorkloads } from "../../webhook/admission/validate-workload.ts";
import type { Handler } from "../../webhook/review/admission-review.ts";
import { applied, deniedAs, type Json, review } from "../support/objects.ts";
import { openWorld, type World } from "../support/world.ts";

export const NODES = ["node-a", "node-b", "node-c"] as const;
const LIVE = new AbortController().signal;

/** A pod that the API server has, or whose sandbox still runs. */
export interface Running {
  readonly ref: PodRef;
  readonly object: Json;
  /** Empty until it is scheduled; a pod never moves. */
  node: string;
  /** Addresses that it asked for by name, if it did. */
  readonly wants: string;
}

export interface Sandbox {
  readonly pod: Running;
  readonly key: AttachmentKey;
  readonly claim: string;
  readonly attachment: AuditedAttachment;
}

/**
 * What surrounds the allocator in a cluster of three nodes, one step at a time: the API server's objects, the kubelets
 * with their sandboxes, and an agent on each node. Everything goes in through the real handlers.
 */
export class LittleCluster {
  readonly world: World;
  readonly pods = new Map<string, Running>(); // name -> pod that exists
  readonly sandboxes: Sandbox[] = [];
  readonly ended: Sandbox[] = [];
  readonly workloads = new Set<string>();
  readonly refusals = new Map<string, number>(); // code -> how often
  readonly #agents = new Map<string, EmbeddedClaims>(); // node -> its claims
  #made = 0;

  private constructor(world: World) {
    this.world = world;
    const { context, objects: inventory } = world;
    for (const node of NODES) {
      this.#agents.set(node, new EmbeddedClaims({ context, inventory, node, enqueueForGc: () => undefined }));
    }
  }

  static async open(pools: readonly PoolRecord[], seed: number): Promise<LittleCluster> {
    return new LittleCluster(await openWorld({ pools, seed }));
  }

  async #ask(
    handler: (admission: World["admission"]) => Handler,
    object: Json,
    operation: "CREATE" | "UPDATE" | "DELETE",
  ) {
    const request = review(object, operation);
    const response = await handler(this.world.admission)(request, LIVE);
    await this.world.settle();
    const code = deniedAs(response).split(":")[0] ?? "";
    if (code !== "") this.refusals.set(code, (this.refusals.get(code) ?? 0) + 1);
    return response;
  }

  /** Sends a pod through both webhooks; true when it exists afterwards. */
  async createPod(object: Json, name: string, wants = ""): Promise<boolean> {
    if (this.pods.has(name)) return false;
    const mutated = await this.#ask(mutatePods, object, "CREATE");
    if (!mutated.allowed) return false;
    const uid = `p-${this.#made++}`;
    const patched = applied(object, mutated);
    const made = { ...patched, metadata: { ...(patched["metadata"] as Json), name, uid } };
    if (!(await this.#ask(validatePods, made, "CREATE")).allowed) return false;
    this.pods.set(name, { ref: { namespace: "shop", name, uid }, object: made, node: "", wants });
    return true;
  }

  /** The API object goes; a sandbox runs on until its node is told. */
  async deletePod(pod: Running): Promise<void> {
    this.pods.delete(pod.ref.name);
    assert.ok((await this.#ask(validatePods, pod.object, "DELETE")).allowed);
  }

  async putWorkload(object: Json): Promise<boolean> {
    const name = String((object["metadata"] as Json)["name"]);
    const operation = this.workloads.has(name) ? "UPDATE" : "CREATE";
    const { allowed } = await this.#ask(validateWorkloads, object, operation);
    if (allowed) this.workloads.add(name);
    return allowed;
  }

  async deleteWorkload(object: Json): Promise<void> {
    this.workloads.delete(String((object["metadata"] as Json)["name"]));
    assert.ok((await this.#ask(validateWorkloads, object, "DELETE")).allowed);
  }

  /** ADD on the pod's node: a new sandbox with the pod's claim, or a refusal and another try later. */
  async add(pod: Running): Promise<boolean> {
    const containerID = `c-${this.#made++}`;
    const key = { network: "lan", containerID, interface: "eth0" };
    const asked = { pod: pod.ref, attachment: key, pools: [], addresses: [], annotations: undefined };
    const agent = this.#agentOf(pod.node);
    const found = await agent.find(asked, LIVE);
    const got = found.kind === "found" ? await agent.attach(found, asked, LIVE) : found;
    await this.world.settle();
    assert.notEqual(got.kind, "unclaimed", `${pod.ref.name} would start without its fixed address`);
    if (got.kind !== "claimed") {
      const code = got.kind === "refused" ? got.code : "";
      this.refusals.set(code, (this.refusals.get(code) ?? 0) + 1);
      return false;
    }
    const addresses = got.addresses.map(({ address }) => address);
    if (pod.wants !== "") assert.equal(addresses.join(","), pod.wants);
    const claim = got.claim ?? "";
    const attachment = { ...key, node: pod.node, claim, addresses };
    const before = this.sandboxes.filter((other) => other.claim === claim && other.pod.node === pod.node);
    for (const other of before) this.#stop(other);
    this.sandboxes.push({ pod, key, claim, attachment });
    // The node takes the old sandbox down before it sets the new one up; its DEL is told late.
    for (const other of before) await this.tell(other);
    return true;
  }

  /** The sandbox ends and its node says so. */
  async end(sandbox: Sandbox): Promise<void> {
    this.#stop(sandbox);
    await this.tell(sandbox);
  }

  /** The node says, perhaps not for the first time, that a sandbox has ended. */
  async tell({ claim, pod, key }: Sandbox): Promise<void> {
    await this.#agentOf(pod.node).detached({ claim, pod: pod.ref, attachment: key });
    await this.world.settle();
  }

  #stop(sandbox: Sandbox): void {
    this.sandboxes.splice(this.sandboxes.indexOf(sandbox), 1);
    this.ended.push(sandbox);
  }

  #agentOf(node: string): EmbeddedClaims {
    const agent = this.#agents.get(node);
    assert.ok(agent, node);
    return agent;
  }
}
