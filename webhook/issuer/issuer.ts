// SPDX-License-Identifier: Apache-2.0

import { messageOf } from "../../allocator/base/errors.ts";
import type { Clock, Logger, Random } from "../../allocator/base/ports.ts";
import type { Connection } from "../../kube/api/connection.ts";
import { type ObjectName, SECRETS } from "../../kube/api/resource.ts";
import type { EventInput } from "../../kube/controller/event-recorder.ts";
import { type Controller, runQueue } from "../../kube/controller/run-queue.ts";
import { DONE, type Outcome, WorkQueue } from "../../kube/controller/workqueue.ts";
import { Reflector } from "../../kube/watch/reflector.ts";
import { MESSAGES, noticeOf } from "../certificates/events.ts";
import type { ObservedCerts, RotationPolicy } from "../certificates/rotation.ts";
import { CertificateRotator } from "../certificates/rotator.ts";
import {
  CertificateRecords,
  CONFIGURATION,
  readSecret,
  type SecretNames,
  type SecretSeen,
  secretSeen,
  watchBundles,
} from "../certificates/secret.ts";

interface IssuerOptions {
  readonly connection: Connection;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly events: { record(notice: EventInput): void };
  readonly secrets: SecretNames;
  readonly terms: RotationPolicy;
}

interface Issuer extends Controller {
  /** It has seen everything that it keeps. */
  ready(): boolean;
}

const KEY = "certificates";
/** When somebody else was first. */
const LOST_MS = 50;
/** Wall clocks jump. */
const LONGEST_MS = 600_000;

/**
 * Keeps the authority in a Secret of its own, the certificate in the one that the webhook serves, and the authority in our two
 * webhook configurations. What is written only if nothing has changed needs no leader: any number may run at once.
 */
export function startIssuer(options: IssuerOptions): Issuer {
  return new SecretIssuer(options).start();
}

class SecretIssuer {
  readonly #options: IssuerOptions;
  readonly #rotator: CertificateRotator;
  readonly #queue: WorkQueue;
  /** The authority's, and the one that is served. */
  readonly #secrets: readonly {
    readonly place: Required<ObjectName>;
    readonly seen: Reflector<SecretSeen>;
  }[];
  readonly #configurations: readonly Reflector<readonly string[]>[];
  #missing = "";

  constructor(options: IssuerOptions) {
    this.#options = options;
    const { connection, secrets, terms, clock, random, log } = options;
    const records = new CertificateRecords(connection, secrets);
    this.#rotator = new CertificateRotator({ terms, clock, look: () => records.look() });
    const { namespace, authority, served } = secrets;
    this.#secrets = [authority, served].map((name) => {
      const selection = { namespace, fieldSelector: `metadata.name=${name}` };
      const resource = SECRETS;
      const seen = new Reflector({
        connection,
        clock,
        random,
        log,
        resource,
        selection,
        project: secretSeen,
      });
      return { place: { namespace, name }, seen };
    });
    this.#configurations = watchBundles({ connection, clock, random, log });
    this.#queue = new WorkQueue({ name: KEY, work: () => this.#runOnce(), clock, random, log });
  }

  start(): Issuer {
    const stop = new AbortController();
    const watched = [...this.#secrets.map(({ seen }) => seen), ...this.#configurations];
    const undo = watched.map((reflector) => reflector.onChange(() => this.#look()));
    const following = watched.map((reflector) => reflector.run(stop.signal));
    for (const reflector of watched) void reflector.synced.then(() => this.#look());
    const queue = runQueue(this.#queue, undo);
    return {
      ready: () => this.#hasSeen(),
      close: async () => {
        await queue.close();
        stop.abort();
        await Promise.all(following);
      },
    };
  }

  #hasSeen(): boolean {
    return [...this.#secrets.map(({ seen }) => seen), ...this.#configurations].every(
      ({ isSynced }) => isSynced,
    );
  }

  /** Takes in what the watches have seen. */
  #look(): void {
    if (!this.#hasSeen()) return;
    const found = this.#secrets.map(({ place, seen }) => seen.get(`${place.namespace}/${place.name}`));
    const known: ObservedCerts = {
      kept: readSecret(found[0], found[1]),
      trusted: this.#configurations.map((reflector) => reflector.get(CONFIGURATION.name)),
    };
    this.#miss(this.#secrets.find((_, n) => found[n] === undefined)?.place);
    const step = this.#rotator.observe(known);
    if (step.kind === "wait") this.#queue.addAfter(KEY, Math.min(step.ms, LONGEST_MS));
    else this.#queue.add(KEY);
  }

  #miss(place: Required<ObjectName> | undefined): void {
    const { log, events } = this.#options;
    if (place !== undefined && this.#missing !== place.name) {
      log.error(MESSAGES.missing, { ...place });
      events.record(noticeOf(place, { kind: "missing" }));
    }
    this.#missing = place?.name ?? "";
  }

  async #runOnce(): Promise<Outcome> {
    const { events, log, secrets } = this.#options;
    const regarding = { namespace: secrets.namespace, name: secrets.served };
    try {
      const result = await this.#rotator.takeStep();
      if (result.kind === "lost") return { kind: "again", afterMs: LOST_MS };
      if (result.kind === "rests") {
        return result.ms === Number.POSITIVE_INFINITY
          ? DONE
          : { kind: "again", afterMs: Math.min(result.ms, LONGEST_MS) };
      }
      const notice = noticeOf(regarding, result.step);
      events.record(notice);
      log.info(MESSAGES.stepped, { reason: notice.reason, note: notice.note });
      return { kind: "again", afterMs: 0 };
    } catch (error) {
      events.record(noticeOf(regarding, { kind: "failed", why: messageOf(error) }));
      throw error;
    }
  }
}
