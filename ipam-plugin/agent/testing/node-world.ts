// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { isRefusal, type Refusal } from "../../../allocator/base/errors.ts";
import { type Clock, type LogFields, noopLogger } from "../../../allocator/base/ports.ts";
import { bind } from "../../../allocator/lifecycle/bind.ts";
import { reserve } from "../../../allocator/lifecycle/reserve.ts";
import type { ClaimAttachment } from "../../../allocator/model/claim.ts";
import type { Pool } from "../../../allocator/pool/pool.ts";
import type { Store, Stored } from "../../../allocator/store/store.ts";
import { addrs, DB_POOL } from "../../../test/support/fixtures.ts";
import { openWorld, type World } from "../../../test/support/world.ts";
import type { AttachRequest, ClaimResult, NoClaim, SandboxNotice } from "../claims/claim-source.ts";
import type { NodePod } from "../claims/cluster/node-cache.ts";
import { NodeClaims } from "../claims/cluster/node-claims.ts";
import { StatusWriter } from "../claims/cluster/status-writer.ts";
import type { RecordState } from "../journal/runtime-records.ts";
import type { UnreadRecord } from "../journal/unread-records.ts";
import { PlainView } from "./plain-view.ts";

export const NODE = "node-a";
const NEVER = new AbortController().signal;

type Reporting = (real: Store["report"], ...of: Parameters<Store["report"]>) => ReturnType<Store["report"]>;

/** The claims of one node, over a store and a view that hears of it when the test says so. */
export class NodeWorld {
  readonly world: World;
  readonly view: PlainView;
  claims: NodeClaims;
  /** Reads and writes of the store, `get shop/a`. */
  readonly calls: string[] = [];
  readonly suspects: string[] = [];
  readonly warnings: LogFields[] = [];
  /** Pods as the API server has them. */
  readonly pods = new Map<string, NodePod>(); // namespace/name -> pod
  /** Pools that have blocks. */
  readonly blockPools = new Set<string>();
  /** All that there are, if the node knows them. */
  allPools: readonly Pool[] | undefined;
  /** How statuses are written, if not plainly. */
  reporting: Reporting | undefined;
  /** What the runtime says of its own record of an attachment. */
  runtimeRecord: RecordState = "unkept";
  /** How often it was asked for. */
  recordReads = 0;
  /** By the runtime's records at the start: address -> sandbox. */
  readonly recorded = new Map<string, ClaimAttachment>();
  /** A record of the runtime's that says nothing. */
  unread: UnreadRecord | undefined;
  /** Pods come to be without a review. */
  unreviewed = false;
  /** What a live look at a pod, or at the claim of its name, throws, while it is set. */
  fault: Error | undefined;

  private constructor(world: World) {
    this.world = world;
    this.view = new PlainView(world.cache);
    this.claims = this.another();
  }

  static async open(): Promise<NodeWorld> {
    return new NodeWorld(await openWorld({ pools: [DB_POOL] }));
  }

  /** What another process of this node knows: nothing of what this one wrote. */
  another(): NodeClaims {
    const { view } = this;
    const { clock } = this.world;
    const store = this.#store();
    const storedClaim = async (claim: string) => {
      if (this.fault !== undefined) throw this.fault;
      return await store.get("claim", claim);
    };
    return new NodeClaims({
      ...{ node: NODE, view, clock },
      reports: this.reportsBy(clock),
      livePod: async ({ namespace, name }) => {
        this.calls.push(`pod ${namespace}/${name}`);
        if (this.fault !== undefined) throw this.fault;
        return this.pods.get(`${namespace}/${name}`);
      },
      recordOf: async () => {
        this.recordReads++;
        return this.runtimeRecord;
      },
      recorded: {
        of: async ({ addresses: [address = ""] }) => {
          const sandbox = this.recorded.get(address);
          return sandbox === undefined ? [] : [sandbox];
        },
        journalled: () => {},
        unreadable: async () => this.unread,
      },
      hasBlocks: (pool) => this.blockPools.has(pool),
      allPools: () => this.allPools,
      ...(this.unreviewed ? { storedClaim } : {}),
      checkAfter: (claim) => void this.suspects.push(claim),
      log: { ...noopLogger, warn: (_, fields = {}) => void this.warnings.push(fields) },
    });
  }

  /** Of a claim that the journal knows nothing of. */
  async settle(claim: string): Promise<void> {
    await this.claims.settle(claim, () => false);
  }

  reportsBy(clock: Clock): StatusWriter {
    return new StatusWriter({ store: this.#store(), node: NODE, clock });
  }

  /** A claim of that name for the address. */
  async pin(name: string, address: string): Promise<void> {
    const addresses = addrs(address);
    const got = await reserve(
      this.world.context,
      {
        key: { namespace: "shop", name },
        identity: { kind: "Pod", apiVersion: "v1", name },
        request: { addresses },
        retention: { whenDeleted: "Release", whenScaled: "Retain", ttlMs: null },
        constraints: { namespace: "shop", name, namespaceLabels: {}, podLabels: {}, addresses },
      },
      "pod",
    );
    assert.equal(got.kind, "reserved");
    await this.world.settle();
  }

  /** What the binder does. */
  async bind(name: string, uid: string, node = NODE): Promise<Stored<"claim"> | Refusal> {
    const target = { name, uid, node, token: "" };
    return await bind(this.world.context, `shop/${name}`, target, async () => ({
      fenced: false,
      holdExpired: false,
    }));
  }

  /** A pod of the API server, which the view sees too. */
  see(pod: NodePod): void {
    this.pods.set(`${pod.namespace}/${pod.name}`, pod);
    this.view.seePod(pod, pod);
  }

  /** The pod's object is gone, and the view knows. */
  forget(name: string): void {
    this.pods.delete(`shop/${name}`);
    this.view.seePod({ namespace: "shop", name }, undefined);
  }

  /** The view hears of what the store has. */
  async hear(name: string): Promise<void> {
    const now = await this.world.realStore.get("claim", `shop/${name}`);
    this.view.seeClaim(`shop/${name}`, now?.record.binding?.node === NODE ? now : undefined);
  }

  /** A pod whose claim is bound to it here, and everybody knows. */
  async assign(name: string, address: string, uid = `uid-${name}`): Promise<void> {
    await this.pin(name, address);
    assert.ok(!isRefusal(await this.bind(name, uid)));
    this.see(podOf(name, { uid }));
    await this.hear(name);
  }

  async add(
    request: AttachRequest,
    { claims = this.claims, signal = NEVER }: { claims?: NodeClaims; signal?: AbortSignal } = {},
  ): Promise<ClaimResult | NoClaim | Refusal> {
    const found = await claims.find(request, signal);
    return found.kind === "found" ? await claims.attach(found, request, signal) : found;
  }

  /** What an ADD does, and the status that is written behind it. */
  async addAndReport(name: string): Promise<void> {
    assert.equal((await this.add(ask(name))).kind, "claimed");
    await this.claims.report(`shop/${name}`);
    await this.hear(name);
  }

  /** `10.20.0.70 of shop/a`, or `CODE: words`. */
  async said(request: AttachRequest, claims: NodeClaims = this.claims): Promise<string> {
    const got = await this.add(request, { claims });
    if (got.kind === "unclaimed") return "unclaimed";
    if (isRefusal(got)) return `${got.code}: ${got.message}`;
    return `${got.addresses.map(({ address }) => address).join(",")} of ${got.claim}`;
  }

  /** `Attached box-a for uid-a` */
  async status(name: string): Promise<string> {
    const found = await this.world.realStore.get("claim", `shop/${name}`);
    const { attachment } = found?.record.status ?? {};
    return attachment === undefined
      ? "not reported"
      : `${wordFor(attachment)} ${attachment.containerID} for ${attachment.podUID}`;
  }

  async close(): Promise<void> {
    await this.world[Symbol.asyncDispose]();
  }

  #store(): Pick<Store, "get" | "report"> {
    const { realStore } = this.world;
    return {
      get: async (kind, key) => {
        this.calls.push(`get ${key}`);
        return await realStore.get(kind, key);
      },
      report: async (seen, status) => {
        this.calls.push(
          `report ${seen.key} ${status.attachment === undefined ? "" : wordFor(status.attachment)}`,
        );
        const real: Store["report"] = (of, as) => realStore.report(of, as);
        return await (this.reporting?.(real, seen, status) ?? real(seen, status));
      },
    };
  }
}

function wordFor({ detached }: ClaimAttachment): string {
  return detached ? "Detached" : "Attached";
}

export function podOf(name: string, over: Partial<NodePod> = {}): NodePod {
  return {
    namespace: "shop",
    name,
    uid: `uid-${name}`,
    annotations: {},
    labels: {},
    finished: false,
    up: false,
    ...over,
  };
}

/** An ADD of the pod's sandbox `box-<name>`. */
export function ask(name: string, over: Partial<AttachRequest> = {}): AttachRequest {
  return {
    pod: { namespace: "shop", name, uid: `uid-${name}` },
    attachment: { network: "net", containerID: `box-${name}`, interface: "eth0" },
    pools: [],
    addresses: [],
    annotations: undefined,
    ...over,
  };
}

/** The sandbox of that pod, `box-<name>` if not another, as its claim is told of it. */
export function noticeOf(name: string, containerID = `box-${name}`): SandboxNotice {
  return {
    claim: `shop/${name}`,
    pod: { namespace: "shop", name, uid: `uid-${name}` },
    attachment: { network: "net", containerID, interface: "eth0" },
  };
}
