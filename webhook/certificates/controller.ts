// SPDX-License-Identifier: Apache-2.0

import { messageOf } from "../../allocator/base/errors.ts";
import type { Clock, Logger, Random, Readiness } from "../../allocator/base/ports.ts";
import type { Connection } from "../../kube/api/connection.ts";
import { CONFIGURATIONS, type ObjectName, SECRETS } from "../../kube/api/resource.ts";
import type { Controller } from "../../kube/controller/run-queue.ts";
import { Reflector } from "../../kube/watch/reflector.ts";
import { type CertificatePair, readCertificate } from "../../system/pem/pair.ts";
import { issuerAmong, parseBundle } from "./ca-bundle.ts";
import { MESSAGES } from "./events.ts";
import type { ServerNames } from "./issue.ts";
import { allTrust, type Served, validateServingCert } from "./rotation.ts";
import { CONFIGURATION, secretSeen, servedIn, watchBundles } from "./secret.ts";

interface CertificatesOptions {
  readonly connection: Connection;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  /** What the issuer fills. */
  readonly secret: Required<ObjectName>;
  readonly names: ServerNames;
  /** Serves the certificate from now on. Throws BerthError CERTIFICATE_INVALID, and the old one stays. */
  readonly reload: (leaf: CertificatePair) => void;
}

interface Certificates extends Controller {
  /** Once the API server can verify what is served. What happens to its trust later is put right, and is no reason to leave. */
  ready(): Readiness;
  /** PEM of what is in use: `serving`, `authority`. */
  certificates(): Readonly<Record<string, string>>;
}

/** Serves the certificate that the issuer puts into a Secret, and is ready once the API server trusts it. Writes nothing. */
export function startCertificates(options: CertificatesOptions): Certificates {
  return new SecretCertificates(options).start();
}

class SecretCertificates {
  readonly #options: CertificatesOptions;
  readonly #secret: Reflector<Served>;
  readonly #configurations: readonly Reflector<readonly string[]>[];
  /** What is served; undefined before anything of the Secret was. */
  #served: CertificatePair | undefined;
  #refused = "";
  #missing = false;
  #trusted = false;

  constructor(options: CertificatesOptions) {
    this.#options = options;
    const { connection, secret, clock, random, log } = options;
    const { namespace, name } = secret;
    this.#secret = new Reflector({
      ...{ connection, clock, random, log, resource: SECRETS },
      project: (item) => servedIn(secretSeen(item)),
      selection: { namespace, fieldSelector: `metadata.name=${name}` },
    });
    this.#configurations = watchBundles({ connection, clock, random, log });
  }

  start(): Certificates {
    const stop = new AbortController();
    const watched = [this.#secret, ...this.#configurations];
    const undo = watched.map((reflector) => reflector.onChange(() => this.#look()));
    const following = watched.map((reflector) => reflector.run(stop.signal));
    for (const reflector of watched) void reflector.synced.then(() => this.#look());
    return {
      ready: () => this.#ready(),
      certificates: () => this.#inUse(),
      close: async () => {
        for (const take of undo) take();
        stop.abort();
        await Promise.all(following);
      },
    };
  }

  /** Takes in what the watches have seen. */
  #look(): void {
    if (![this.#secret, ...this.#configurations].every(({ isSynced }) => isSynced)) return;
    const kept = this.#kept();
    if (kept === undefined) this.#miss();
    else this.#serve(kept);
    this.#trusted ||= this.#isTrusted(kept);
  }

  #kept(): Served | undefined {
    const { namespace, name } = this.#options.secret;
    return this.#secret.get(`${namespace}/${name}`);
  }

  #miss(): void {
    if (this.#missing) return;
    this.#missing = true;
    this.#options.log.error(MESSAGES.missing, { ...this.#options.secret });
  }

  #serve({ leaf, beside }: Served): void {
    this.#missing = false;
    if (leaf.cert === this.#served?.cert && leaf.key === this.#served.key) return;
    const { names, log, reload } = this.#options;
    try {
      const certificate = validateServingCert({ leaf, bundle: beside }, names);
      reload(leaf);
      this.#served = leaf;
      this.#refused = "";
      log.info(MESSAGES.served, { expires: certificate.validToDate.toISOString() });
    } catch (error) {
      const blank = leaf.cert === "" && leaf.key === "";
      if (!blank && this.#refused !== leaf.cert) log.warn(MESSAGES.refused, { error: messageOf(error) });
      this.#refused = leaf.cert;
    }
  }

  #isTrusted(kept: Served | undefined): boolean {
    if (this.#served === undefined || kept === undefined) return false;
    const issuer = issuerAmong(parseBundle(kept.beside), readCertificate(this.#served.cert));
    if (issuer === undefined) return false;
    const trusted = this.#configurations.map((reflector) => reflector.get(CONFIGURATION.name));
    return trusted.every((bundles) => bundles !== undefined && allTrust(bundles, issuer));
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
    const [authority] = parseBundle(this.#kept()?.beside ?? "");
    return {
      ...(this.#served === undefined ? {} : { serving: this.#served.cert }),
      ...(authority === undefined ? {} : { authority: authority.toString() }),
    };
  }
}
