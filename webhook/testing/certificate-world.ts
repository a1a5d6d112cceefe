// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import type { X509Certificate } from "node:crypto";
import { issuerAmong, parseBundle } from "../certificates/ca-bundle.ts";
import {
  type CertSecret,
  type RotationPolicy,
  type Served,
  validateServingCert,
} from "../certificates/rotation.ts";
import type { Snapshot } from "../certificates/rotator.ts";
import { Past, TestReplica, type Trust } from "./certificate-replica.ts";

export const DAY_MS = 24 * 60 * 60 * 1000;
export const TERMS: RotationPolicy = {
  names: { dnsNames: ["berth-webhook.berth-system.svc"], addresses: [] },
  leafMs: 90 * DAY_MS,
  authorityMs: 720 * DAY_MS,
  settleMs: 60_000,
};
/** API servers and replicas hear of everything within that time: a little less than they are given. */
const LAG_MS = 59_000;
type Authority = Omit<CertSecret, keyof Served>;
const BLANK: Authority = { bundle: "", authorityKey: "", rotate: "", retireAfter: "", mixed: false };
const NOTHING: Served = { beside: "", leaf: { cert: "", key: "" } };
const CONFIGURATIONS = 2;

export type Act =
  /** The replica's turn goes on to its next call of the API server, or a new one begins. */
  | { readonly kind: "go"; readonly replica: number }
  /** It carries out all that there is to do. */
  | { readonly kind: "rest"; readonly replica: number }
  /** Its watches bring it up to date. */
  | { readonly kind: "hear"; readonly replica: number }
  | { readonly kind: "crash"; readonly replica: number }
  | { readonly kind: "pass"; readonly ms: number }
  /** Its wall clock is wrong by so much from now on. */
  | { readonly kind: "jump"; readonly replica: number; readonly days: number }
  | { readonly kind: "demand"; readonly what: string }
  | { readonly kind: "damage"; readonly what: string }
  /** Somebody takes the caBundle out of a configuration. */
  | { readonly kind: "clear"; readonly configuration: number };

/** Two Secrets, two configurations, API servers that still hold what was there a moment ago, and replicas. */
export class CertificateWorld {
  readonly terms = TERMS;
  time = Date.UTC(2026, 0, 1);
  readonly authority = new Past<Authority>(BLANK);
  readonly secret = new Past<Served>(NOTHING);
  readonly configurations = Array.from(
    { length: CONFIGURATIONS },
    () => new Past<Trust>({ bundle: "", foreign: true }),
  );
  /** Every certificate that Berth wrote. */
  readonly written: Served[] = [];
  readonly #replicas: readonly TestReplica[];
  readonly #story: string[] = [];
  /** Bundles by which a certificate that is served was verified: they are judged after every act, and stay what they are. */
  readonly #verifiedBy = new WeakMap<X509Certificate, Set<string>>();

  constructor(replicas: number) {
    this.#replicas = Array.from({ length: replicas }, () => new TestReplica(this));
  }

  get bundle(): string {
    return this.authority.now.bundle;
  }

  get authorities(): number {
    return parseBundle(this.bundle).length;
  }

  /** Fingerprints. */
  get served(): ReadonlySet<string> {
    return new Set(this.#replicas.map(({ served }) => served?.fingerprint256 ?? ""));
  }

  configuration(n: number): Past<Trust> {
    return this.configurations[n] ?? assert.fail();
  }

  async act(act: Act): Promise<void> {
    this.#story.push(JSON.stringify(act));
    switch (act.kind) {
      case "go":
        await this.#replica(act.replica).go();
        break;
      case "rest":
        await this.#replica(act.replica).rest();
        break;
      case "hear":
        this.#replica(act.replica).hear();
        break;
      case "crash":
        this.#replica(act.replica).restart();
        break;
      case "pass":
        this.#pass(act.ms);
        break;
      case "jump":
        this.#replica(act.replica).offsetMs = act.days * DAY_MS;
        break;
      case "demand":
        this.#write({ ...this.authority.now, rotate: act.what });
        break;
      case "damage":
        this.#damage(act.what);
        break;
      default:
        this.#clear(act.configuration);
    }
    this.judge();
  }

  setClocksRight(): void {
    for (const replica of this.#replicas) replica.offsetMs = 0;
  }

  /** Everybody works and hears until nothing is left to do but to wait for days. */
  async settle(): Promise<void> {
    for (let quiet = false; !quiet; ) {
      const rests: number[] = [];
      for (const replica of this.#replicas) {
        rests.push(await replica.rest());
        for (const each of this.#replicas) each.hear();
        this.judge();
      }
      quiet = Math.min(...rests) > 2 * TERMS.settleMs;
      if (!quiet) this.#pass(TERMS.settleMs);
    }
  }

  /** Reads and writes wait at `gate`, at which anything may happen. The configurations are read first, the authority last. */
  async look(gate: () => Promise<void>): Promise<Snapshot> {
    await gate();
    const trusts = this.configurations.map(({ now, revision }) => ({ ...now, revision }));
    await gate();
    const { revision, now: served } = this.secret;
    await gate();
    const authority = { revision: this.authority.revision, now: this.authority.now };
    return {
      known: { kept: { ...authority.now, ...served }, trusted: trusts.map(({ bundle }) => [bundle]) },
      rereadTrust: async () => {
        await gate();
        return this.configurations.map(({ now }) => [now.bundle]);
      },
      keepAuthority: async ({ bundle, authorityKey, rotate, retireAfter }) => {
        await gate();
        if (this.authority.revision !== authority.revision) return false;
        this.#write({ bundle, authorityKey, rotate, retireAfter, mixed: false });
        return true;
      },
      keepServed: async ({ beside, leaf }) => {
        await gate();
        if (this.secret.revision !== revision) return false;
        const next = { beside, leaf };
        if (leaf !== served.leaf) this.written.push(next);
        this.#serve(next);
        return true;
      },
      trust: async (bundle) => {
        let all = true;
        for (const [n, seen] of trusts.entries()) {
          if (seen.bundle === bundle) continue;
          await gate();
          const configuration = this.configuration(n);
          if (configuration.revision === seen.revision)
            configuration.versions.push({ value: { bundle, foreign: false }, since: this.time });
          else all = false;
        }
        return all;
      },
    };
  }

  /** Each certificate that is served, by each bundle that some API server may hold. */
  judge(): void {
    for (const [n, { served }] of this.#replicas.entries()) {
      if (served === undefined) continue;
      // nobody renewed it in time: every replica slept
      if (served.validToDate.getTime() <= this.time) continue;
      assert.ok(served.validFromDate.getTime() <= this.time, this.#tell(`${n} serves what is not valid yet`));
      for (const bundle of this.#held())
        if (!this.#isVerified(served, bundle))
          assert.fail(this.#tell(`a certificate of ${n} cannot be verified`));
    }
  }

  #isVerified(served: X509Certificate, bundle: string): boolean {
    const by = this.#verifiedBy.get(served) ?? new Set();
    this.#verifiedBy.set(served, by);
    if (by.has(bundle)) return true;
    const isVerified = issuerAmong(parseBundle(bundle), served) !== undefined;
    if (isVerified) by.add(bundle);
    return isVerified;
  }

  /** What must be so once everything has come to rest. */
  judgeRest(): void {
    const kept = { ...this.authority.now, ...this.secret.now };
    const leaf = validateServingCert(kept, TERMS.names);
    assert.ok(
      leaf.validToDate.getTime() - this.time > TERMS.leafMs / 4,
      this.#tell("the certificate is due"),
    );
    assert.equal(kept.rotate, "", this.#tell("what was demanded is not done"));
    assert.deepEqual([...this.served], [leaf.fingerprint256], this.#tell("not all serve it"));
    assert.equal(kept.beside, kept.bundle, this.#tell("another bundle lies beside the certificate"));
    for (const { now } of this.configurations)
      assert.equal(now.bundle, kept.bundle, this.#tell("a configuration has another bundle"));
    const issuer = issuerAmong(parseBundle(kept.bundle).slice(0, 1), leaf);
    assert.ok(issuer !== undefined, this.#tell("it is not of the newest authority"));
  }

  /** What Berth wrote into configurations, and some API server may still hold. */
  #held(): readonly string[] {
    return this.configurations.flatMap((one) =>
      one.versions
        .slice(one.currentAt(this.time - LAG_MS))
        .filter(({ value }) => !value.foreign)
        .map(({ value }) => value.bundle),
    );
  }

  /** Time passes in pieces, in which everybody hears of what is older than the longest lag. */
  #pass(ms: number): void {
    this.time += ms;
    const before = this.time - LAG_MS;
    const seen = {
      authority: this.authority.currentAt(before),
      secret: this.secret.currentAt(before),
      configurations: this.configurations.map((one) => one.currentAt(before)),
    };
    for (const replica of this.#replicas) replica.see(seen);
  }

  #write(authority: Authority): void {
    this.authority.versions.push({ value: authority, since: this.time });
  }

  #serve(served: Served): void {
    this.secret.versions.push({ value: served, since: this.time });
  }

  #damage(what: string): void {
    // an authority that nobody knows any more cannot be trusted on
    if (what !== "leaf" && this.configurations.some(({ now }) => now.bundle === "")) return;
    const { now } = this.authority;
    const garbage = { cert: "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", key: "x" };
    if (what === "leaf") this.#serve({ ...this.secret.now, leaf: garbage });
    else if (what === "key") this.#write({ ...now, authorityKey: "" });
    else if (what === "authority") this.#write({ ...now, bundle: garbage.cert });
    else {
      this.#write(BLANK);
      this.#serve(NOTHING);
    }
  }

  #clear(n: number): void {
    const { bundle } = this.authority.now;
    if (parseBundle(bundle).length === 0) return;
    this.configuration(n).versions.push({ value: { bundle: "", foreign: true }, since: this.time });
  }

  #replica(n: number): TestReplica {
    return this.#replicas[n] ?? assert.fail();
  }

  #tell(words: string): string {
    return `${words}\n${this.#story.join("\n")}`;
  }
}
