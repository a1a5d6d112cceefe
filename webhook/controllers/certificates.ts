// SPDX-License-Identifier: Apache-2.0
import { messageOf } from "../../allocator/errors.ts";
import type { Clock, Logger, Random } from "../../allocator/ports.ts";
import type { Connection } from "../../kube/connection.ts";
import type { Notice } from "../../kube/events.ts";
import { Reflector } from "../../kube/reflector.ts";
import type { Place } from "../../kube/resource.ts";
import { DONE, type Outcome, WorkQueue } from "../../kube/workqueue.ts";
import type { Readiness } from "../app.ts";
import { authoritiesIn, issuerAmong } from "../certificate-bundle.ts";
import { CertificateKeeper } from "../certificate-keeper.ts";
import { noticeOf, WORDS } from "../certificate-notices.ts";
import { type CertificatePair, readCertificate } from "../certificate-pair.ts";
import { areTrusting, type Kept, type Known, type Terms, usableLeaf } from "../certificate-plan.ts";
import {
  CertificateRecords,
  CONFIGURATION,
  CONFIGURATIONS,
  configurationSeen,
  keptIn,
  SECRETS,
} from "../certificate-records.ts";
import type { Controller } from "./controller.ts";
import { running } from "./running.ts";

export interface CertificatesOptions {
  readonly connection: Connection;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly events: { record(notice: Notice): void };
  readonly secret: Required<Place>;
  readonly terms: Terms;
  /** Serves the certificate from now on. Throws BerthError CERTIFICATE_INVALID, and the old one stays. */
  readonly reload: (leaf: CertificatePair) => void;
}

export interface Certificates extends Controller {
  /** Once the API server can verify what is served. What happens to its trust later is put right, and is no reason to leave. */
  ready(): Readiness;
  /** PEM of what is in use: `serving`, `authority`. */
  certificates(): Readonly<Record<string, string>>;
}

const KEY = "certificates";
/** When somebody else was first. */
const LOST_MS = 50;
/** Wall clocks jump. */
const LONGEST_MS = 600_000;

/**
 * Keeps authority and certificate in a Secret, and the authority in our two webhook configurations, on every replica: what
 * is written only if nothing has changed needs no leader.
 */
export function startCertificates(options: CertificatesOptions): Certificates {
  return new SecretCertificates(options).start();
}

class SecretCertificates {
  readonly #options: CertificatesOptions;
  readonly #keeper: CertificateKeeper;
  readonly #queue: WorkQueue;
  readonly #secret: Reflector<Kept>;
  readonly #configurations: readonly Reflector<readonly string[]>[];
  /** What is served; undefined before anything of the Secret was. */
  #served: CertificatePair | undefined;
  #refused = "";
  #missing = false;
  #trusted = false;

  constructor(options: CertificatesOptions) {
    this.#options = options;
    const { connection, secret, terms, clock, random, log } = options;
    const records = new CertificateRecords(connection, secret);
    this.#keeper = new CertificateKeeper({ terms, clock, look: () => records.look() });
    const { namespace, name } = secret;
    this.#secret = new Reflector({
      ...{ connection, clock, random, log, resource: SECRETS, project: keptIn },
      selection: { namespace, fieldSelector: `metadata.name=${name}` },
    });
    this.#configurations = CONFIGURATIONS.map(
      (resource) =>
        new Reflector({
          ...{ connection, clock, random, log, resource },
          selection: { fieldSelector: `metadata.name=${CONFIGURATION.name}` },
          project: (item) => configurationSeen(item).bundles,
        }),
    );
    const work = () => this.#turn();
    this.#queue = new WorkQueue({ name: KEY, work, clock, random, log });
  }

  start(): Certificates {
    const stop = new AbortController();
    const watched = [this.#secret, ...this.#configurations];
    const undo = watched.map((reflector) => reflector.onChange(() => this.#look()));
    const following = watched.map((reflector) => reflector.run(stop.signal));
    for (const reflector of watched) void reflector.synced.then(() => this.#look());
    const queue = running(this.#queue, undo);
    return {
      ready: () => this.#ready(),
      certificates: () => this.#inUse(),
      close: async () => {
        await queue.close();
        stop.abort();
        await Promise.all(following);
      },
    };
  }

  /** Takes in what the watches have seen. */
  #look(): void {
    if (![this.#secret, ...this.#configurations].every(({ isSynced }) => isSynced)) return;
    const known = this.#known();
    const step = this.#keeper.observe(known);
    if (known.kept === undefined) this.#miss();
    else this.#serve(known.kept);
    this.#trusted ||= this.#isTrusted(known);
    if (step.kind === "wait") this.#queue.addAfter(KEY, Math.min(step.ms, LONGEST_MS));
    else this.#queue.add(KEY);
  }

  #known(): Known {
    const { namespace, name } = this.#options.secret;
    return {
      kept: this.#secret.get(`${namespace}/${name}`),
      trusted: this.#configurations.map((reflector) => reflector.get(CONFIGURATION.name)),
    };
  }

  #miss(): void {
    if (this.#missing) return;
    this.#missing = true;
    const { log, events, secret } = this.#options;
    log.error(WORDS.missing, { ...secret });
    events.record(noticeOf(secret, { kind: "missing" }));
  }

  #serve(kept: Kept): void {
    this.#missing = false;
    const { leaf } = kept;
    if (leaf.cert === this.#served?.cert && leaf.key === this.#served.key) return;
    const { terms, log, reload } = this.#options;
    try {
      const certificate = usableLeaf(kept, terms.names);
      reload(leaf);
      this.#served = leaf;
      this.#refused = "";
      log.info(WORDS.served, { expires: certificate.validToDate.toISOString() });
    } catch (error) {
      const blank = leaf.cert === "" && leaf.key === "";
      if (!blank && this.#refused !== leaf.cert) log.warn(WORDS.refused, { error: messageOf(error) });
      this.#refused = leaf.cert;
    }
  }

  #isTrusted({ kept, trusted }: Known): boolean {
    if (this.#served === undefined || kept === undefined) return false;
    const issuer = issuerAmong(authoritiesIn(kept.bundle), readCertificate(this.#served.cert));
    if (issuer === undefined) return false;
    return trusted.every((bundles) => bundles !== undefined && areTrusting(bundles, issuer));
  }

  async #turn(): Promise<Outcome> {
    const { secret, events, log } = this.#options;
    try {
      const turn = await this.#keeper.turn();
      if (turn.kind === "lost") return { kind: "again", afterMs: LOST_MS };
      if (turn.kind === "rests") {
        return turn.ms === Number.POSITIVE_INFINITY
          ? DONE
          : { kind: "again", afterMs: Math.min(turn.ms, LONGEST_MS) };
      }
      const notice = noticeOf(secret, turn.step);
      events.record(notice);
      log.info(WORDS.stepped, { reason: notice.reason, note: notice.note });
      return { kind: "again", afterMs: 0 };
    } catch (error) {
      events.record(noticeOf(secret, { kind: "failed", why: messageOf(error) }));
      throw error;
    }
  }

  #ready(): Readiness {
    const no = (reason: string) => ({ ready: false, reason });
    if (this.#served === undefined) {
      const { namespace, name } = this.#options.secret;
      if (this.#missing) return no(`the secret ${namespace}/${name} is not there`);
      return no("no certificate is served yet");
    }
    if (this.#trusted) return { ready: true, reason: "" };
    const absent = this.#configurations.findIndex((one) => one.get(CONFIGURATION.name) === undefined);
    const kind = CONFIGURATIONS[absent]?.kind;
    if (kind !== undefined) return no(`the ${kind} ${CONFIGURATION.name} is not there`);
    return no("the webhook configurations do not trust the certificate yet");
  }

  #inUse(): Readonly<Record<string, string>> {
    const [authority] = authoritiesIn(this.#known().kept?.bundle ?? "");
    return {
      ...(this.#served === undefined ? {} : { serving: this.#served.cert }),
      ...(authority === undefined ? {} : { authority: authority.toString() }),
    };
  }
}
