// SPDX-License-Identifier: Apache-2.0
import { KeyedMutex } from "../../allocator/mutex.ts";
import { type Clock, type Logger, type Metrics, type Random, unmetered } from "../../allocator/ports.ts";
import type { Database } from "../../allocator/store/database.ts";
import type { NetworkConfig } from "../cni/config.ts";
import type { Invocation } from "../cni/environment.ts";
import { Attachments } from "./attachments.ts";
import type { Call } from "./frame.ts";
import { type Host, linuxHost } from "./host.ts";
import { InFlight } from "./in-flight.ts";
import { Journal } from "./journal.ts";
import type { Mooring } from "./mooring.ts";
import { Notices } from "./notices.ts";
import { Receipts } from "./receipts.ts";

/** The namespace that this process runs in: the host's, for an agent that is set up as it should be. */
const OWN_NETNS = "/proc/self/ns/net";

export interface PartsOptions {
  /** Where the journal is kept; stays the caller's to close. */
  readonly database: Database;
  readonly mooring: Mooring;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly metrics?: Metrics;
  /** /proc/sys/kernel/random/boot_id: what another boot attached is gone. */
  readonly bootId: string;
  readonly host?: Host;
  /** Why no claim can be lent yet; undefined once they can, and from then on. Absent: they always can. */
  readonly notReady?: () => string | undefined;
}

/** What the verbs work with. */
export interface Parts {
  readonly journal: Journal;
  readonly attachments: Attachments;
  /** Serialises ADD, DEL and GC of one place, and ADDs of one claim. */
  readonly turns: KeyedMutex;
  readonly inFlight: InFlight;
  readonly receipts: Receipts;
  readonly notices: Notices;
  readonly mooring: Mooring;
  readonly host: Host;
  readonly notReady: () => string | undefined;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly bootId: string;
  /** Identity of the host's network namespace, which is no sandbox. */
  readonly hostNetns: string | undefined;
}

/** A call whose environment and network name are good. */
export interface Request {
  readonly call: Call;
  readonly invocation: Invocation;
  readonly config: NetworkConfig;
  /** Aborts when the client goes away. */
  readonly signal: AbortSignal;
}

/** Reads the journal. Throws BerthError of the database, STATE_CORRUPT for a row that does not decode. */
export async function createParts(options: PartsOptions): Promise<Parts> {
  const { mooring, clock, random, log, metrics = unmetered, bootId, host = linuxHost } = options;
  const { notReady = () => undefined } = options;
  const journal = new Journal(options.database);
  const attachments = new Attachments(journal);
  return {
    journal,
    attachments,
    turns: new KeyedMutex(),
    inFlight: new InFlight(),
    receipts: new Receipts(),
    notices: new Notices({ attachments, mooring, clock, random, log }),
    mooring,
    host,
    notReady,
    clock,
    log,
    metrics,
    bootId,
    hostNetns: await host.identity(OWN_NETNS),
  };
}
