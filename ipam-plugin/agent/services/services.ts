// SPDX-License-Identifier: Apache-2.0

import { KeyedMutex } from "../../../allocator/base/keyed-mutex.ts";
import {
  type Clock,
  type Logger,
  type Metrics,
  noopMetrics,
  type Random,
} from "../../../allocator/base/ports.ts";
import type { Address } from "../../../allocator/ip/address.ts";
import type { Pool } from "../../../allocator/pool/pool.ts";
import type { Database } from "../../../allocator/store/sqlite/database.ts";
import type { NetworkConfig } from "../../cni/config.ts";
import type { Invocation } from "../../cni/environment.ts";
import { BlockFollower } from "../blocks/block-follower.ts";
import { type BlockSource, noBlocks } from "../blocks/block-source.ts";
import { NodeBlocks } from "../blocks/node-blocks.ts";
import type { ClaimSource } from "../claims/claim-source.ts";
import type { SharedNetworks } from "../claims/shared-networks.ts";
import { AttachmentCache } from "../journal/attachment-cache.ts";
import { type Host, linuxHost } from "../journal/host.ts";
import { type HostLocalLeases, noLeases } from "../journal/host-local-leases.ts";
import { Journal } from "../journal/journal.ts";
import type { Call } from "../rpc/frame.ts";
import { DeliveryTracker } from "./delivery-tracker.ts";
import { DetachReporter } from "./detach-reporter.ts";
import { InFlight } from "./in-flight.ts";
import { KnownConfigurations } from "./known-configurations.ts";
import { NetworkWarnings } from "./network-warnings.ts";
import { RangeOverlaps } from "./range-overlaps.ts";

/** The namespace that this process runs in: the host's, for an agent that is set up as it should be. */
const OWN_NETNS = "/proc/self/ns/net";

export interface ServicesOptions {
  /** Where the journal is kept; stays the caller's to close. */
  readonly database: Database;
  readonly claimSource: ClaimSource;
  /** Absent: no pool has blocks. */
  readonly blockSource?: BlockSource;
  /** Every pool that there is; absent: those of `blockSource`, as soon as it has told of them. */
  readonly pools?: () => Iterable<Pool>;
  /** Networks whose addresses are kept in etcd for many hosts; absent: this agent has no etcd. */
  readonly sharedNetworks?: SharedNetworks;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly metrics?: Metrics;
  /** /proc/sys/kernel/random/boot_id: what another boot attached is gone. */
  readonly bootId: string;
  readonly host?: Host;
  /** What host-local gave away before its network was Berth's; absent: nothing. */
  readonly hostLocalLeases?: HostLocalLeases;
  /** Why no claim can be served yet; undefined once they can, and from then on. Absent: they always can. */
  readonly notReady?: () => string | undefined;
}

/** What the verbs work with. */
export interface AgentServices {
  readonly journal: Journal;
  readonly attachments: AttachmentCache;
  /** Blocks of this node, and which of their addresses may be given. */
  readonly blocks: NodeBlocks;
  readonly blockFollower: BlockFollower;
  /** Serialises ADD, DEL and GC of one place, and ADDs of one claim. */
  readonly locks: KeyedMutex;
  readonly inFlight: InFlight;
  readonly deliveries: DeliveryTracker;
  readonly detachReporter: DetachReporter;
  readonly claimSource: ClaimSource;
  readonly sharedNetworks: SharedNetworks | undefined;
  readonly pools: () => Iterable<Pool>;
  /** Whether `pools` gives all of them. */
  readonly knowsPools: () => boolean;
  /** Which networks' own ranges lie in one of them. */
  readonly rangeOverlaps: RangeOverlaps;
  /** What of networks' configurations has no effect. */
  readonly networkWarnings: NetworkWarnings;
  /** What networks' configurations were when they were read last. */
  readonly configurations: KnownConfigurations;
  readonly host: Host;
  readonly notReady: () => string | undefined;
  readonly hostLocalLeases: HostLocalLeases;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly bootId: string;
  /** Identity of the host's network namespace, which is no sandbox. */
  readonly hostNetns: string | undefined;
}

/** A call whose environment and network name are good. */
export interface CniRequest {
  readonly call: Call;
  readonly invocation: Invocation;
  readonly config: NetworkConfig;
  /** Aborts when the client goes away. */
  readonly signal: AbortSignal;
}

/** Takes and reads the journal. Throws BerthError of the database, STATE_CORRUPT for a row that does not decode. */
export async function createServices(options: ServicesOptions): Promise<AgentServices> {
  const { claimSource, clock, random, log, metrics = noopMetrics, bootId, host = linuxHost } = options;
  const { notReady = () => undefined, hostLocalLeases = noLeases, blockSource: source = noBlocks } = options;
  const journal = new Journal(options.database);
  await journal.take(random);
  const contents = journal.load();
  let follower: BlockFollower | undefined;
  // what the journal says was freed comes before its pools are read
  const cooldownOf = (address: Address) => follower?.cooldownOf(address) ?? Number.POSITIVE_INFINITY;
  const blocks = new NodeBlocks(() => clock.now(), cooldownOf);
  const attachments = new AttachmentCache(journal, blocks, contents);
  const blockFollower = new BlockFollower({ source, blocks, journal, contents, bootId });
  follower = blockFollower;
  const { pools } = options;
  return {
    journal,
    attachments,
    blocks,
    blockFollower,
    locks: new KeyedMutex(),
    inFlight: new InFlight(),
    deliveries: new DeliveryTracker(),
    detachReporter: new DetachReporter({ attachments, claimSource, clock, random, log }),
    claimSource,
    sharedNetworks: options.sharedNetworks,
    pools: pools ?? (() => blockFollower.everyPool()),
    knowsPools: () => pools !== undefined || blockFollower.knowsEveryPool,
    rangeOverlaps: new RangeOverlaps(log),
    networkWarnings: new NetworkWarnings(log),
    configurations: new KnownConfigurations(),
    host,
    notReady,
    hostLocalLeases,
    clock,
    log,
    metrics,
    bootId,
    hostNetns: await host.identity(OWN_NETNS),
  };
}
