// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { authoritiesIn, issuerAmong } from "../certificate-bundle.ts";
import type { Sight } from "../certificate-keeper.ts";
import { type Kept, type Terms, usableLeaf } from "../certificate-plan.ts";
import { Past, TestReplica, type Trust } from "./certificate-replica.ts";

export const DAY_MS = 24 * 60 * 60 * 1000;
export const TERMS: Terms = {
  names: { dnsNames: ["berth-webhook.berth-system.svc"], addresses: [] },
  leafMs: 90 * DAY_MS,
  authorityMs: 720 * DAY_MS,
  settleMs: 60_000,
};
/** API servers and replicas hear of everything within that time: a little less than they are given. */
const LAG_MS = 59_000;
const BLANK: Kept = {
  ...{ bundle: "", authorityKey: "", leaf: { cert: "", key: "" }, rotate: "", retireAfter: "" },
};
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

/** One Secret, two configurations, API servers that still hold what was there a moment ago, and replicas. */
export class CertificateWorld {
  readonly terms = TERMS;
  time = Date.UTC(2026, 0, 1);
  readonly secret = new Past<Kept>(BLANK);
  readonly configurations = Array.from(
    { length: CONFIGURATIONS },
    () => new Past<Trust>({ bundle: "", foreign: true }),
  );
  /** Every write of the Secret by Berth. */
  readonly written: Kept[] = [];
  readonly #replicas: readonly TestReplica[];
  readonly #story: string[] = [];

  constructor(replicas: number) {
    this.#replicas = Array.from({ length: replicas }, () => new TestReplica(this));
  }

  get bundle(): string {
    return this.secret.now.bundle;
  }

  get authorities(): number {
    return authoritiesIn(this.bundle).length;
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
        this.#write({ ...this.secret.now, rotate: act.what });
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

  /** Reads and writes wait at `gate`, at which anything may happen. The configurations are read first. */
  async look(gate: () => Promise<void>): Promise<Sight> {
    await gate();
    const trusts = this.configurations.map(({ now, revision }) => ({ ...now, revision }));
    await gate();
    const { revision, now: kept } = this.secret;
    return {
      known: { kept, trusted: trusts.map(({ bundle }) => [bundle]) },
      keep: async (next) => {
        await gate();
        if (this.secret.revision !== revision) return false;
        this.written.push(next);
        this.#write(next);
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
      for (const { versions, currentAt } of this.#held()) {
        for (const { value } of versions.slice(currentAt)) {
          if (value.foreign) continue;
          const verified = issuerAmong(authoritiesIn(value.bundle), served);
          assert.ok(verified !== undefined, this.#tell(`a certificate of ${n} cannot be verified`));
        }
      }
    }
  }

  /** What must be so once everything has come to rest. */
  judgeRest(): void {
    const { now: kept } = this.secret;
    const leaf = usableLeaf(kept, TERMS.names);
    assert.ok(
      leaf.validToDate.getTime() - this.time > TERMS.leafMs / 4,
      this.#tell("the certificate is due"),
    );
    assert.equal(kept.rotate, "", this.#tell("what was demanded is not done"));
    assert.deepEqual([...this.served], [leaf.fingerprint256], this.#tell("not all serve it"));
    for (const { now } of this.configurations)
      assert.equal(now.bundle, kept.bundle, this.#tell("a configuration has another bundle"));
    const issuer = issuerAmong(authoritiesIn(kept.bundle).slice(0, 1), leaf);
    assert.ok(issuer !== undefined, this.#tell("it is not of the newest authority"));
  }

  #held() {
    return this.configurations.map((one) => {
      return { versions: one.versions, currentAt: one.currentAt(this.time - LAG_MS) };
    });
  }

  /** Time passes in pieces, in which everybody hears of what is older than the longest lag. */
  #pass(ms: number): void {
    this.time += ms;
    const before = this.time - LAG_MS;
    const configurations = this.configurations.map((one) => one.currentAt(before));
    for (const replica of this.#replicas) replica.see(this.secret.currentAt(before), configurations);
  }

  #write(kept: Kept): void {
    this.secret.versions.push({ value: kept, since: this.time });
  }

  #damage(what: string): void {
    // an authority that nobody knows any more cannot be trusted on
    if (what !== "leaf" && this.configurations.some(({ now }) => now.bundle === "")) return;
    const { now } = this.secret;
    const garbage = { cert: "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", key: "x" };
    if (what === "leaf") this.#write({ ...now, leaf: garbage });
    else if (what === "key") this.#write({ ...now, authorityKey: "" });
    else if (what === "authority") this.#write({ ...now, bundle: garbage.cert });
    else this.#write(BLANK);
  }

  #clear(n: number): void {
    const { bundle } = this.secret.now;
    if (authoritiesIn(bundle).length === 0) return;
    this.configuration(n).versions.push({ value: { bundle: "", foreign: true }, since: this.time });
  }

  #replica(n: number): TestReplica {
    return this.#replicas[n] ?? assert.fail();
  }

  #tell(words: string): string {
    return `${words}\n${this.#story.join("\n")}`;
  }
}
