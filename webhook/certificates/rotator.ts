// SPDX-License-Identifier: Apache-2.0
import type { Clock } from "../../allocator/base/ports.ts";
import { bundleOf, parseBundle } from "./ca-bundle.ts";
import { issueAuthority, issueServingCertificate } from "./issue.ts";
import {
  type CertSecret,
  type ObservedCerts,
  type ObservedSince,
  observedSinceOf,
  plan,
  type RotationPolicy,
  type Served,
  type Step,
} from "./rotation.ts";

/** What was read at one moment, and can be changed if nothing of it has changed since. */
export interface Snapshot {
  readonly known: ObservedCerts;
  /** What the configurations trust now, read after the Secrets: what is `known` of it may be older than they are. */
  rereadTrust(): Promise<ObservedCerts["trusted"]>;
  /** Writes the authority's Secret; false when somebody else has changed it since. */
  keepAuthority(kept: CertSecret): Promise<boolean>;
  /** The same of the Secret that is served, which has nothing of the authority's key. */
  keepServed(served: Served & Pick<CertSecret, "rotate">): Promise<boolean>;
  /** Writes the bundle where it is not; false when one of the configurations was changed since. */
  trust(bundle: string): Promise<boolean>;
}

export type StepResult =
  /** Nothing to do for so many milliseconds, or until something changes. */
  | { readonly kind: "rests"; readonly ms: number }
  | { readonly kind: "done"; readonly step: Exclude<Step, { readonly kind: "wait" }> }
  /** Somebody else was first: look again. */
  | { readonly kind: "lost" };

interface RotatorOptions {
  readonly terms: RotationPolicy;
  readonly clock: Pick<Clock, "now" | "monotonic">;
  /**
   * Reads from the API server, the configurations first and the authority's Secret last: a configuration, or a certificate,
   * that has not changed since then cannot be of an authority that is newer than what that Secret had.
   */
  readonly look: () => Promise<Snapshot>;
}

/** An authority is valid that long before it was made, as a share of its life; its leaves as long as it is. */
const BACKDATED = 1 / 10;

/** Carries out one step after the other. Any number of processes may do so at once: what was read decides. */
export class CertificateRotator {
  readonly #options: RotatorOptions;
  #observedSince: ObservedSince | undefined;

  constructor(options: RotatorOptions) {
    this.#options = options;
  }

  /** Takes note of what a watch has seen, and says what it would do: nothing must go unnoticed between two turns. */
  observe(known: ObservedCerts): Step {
    const { clock, terms } = this.#options;
    const [now, monotonic] = [clock.now(), clock.monotonic()];
    this.#observedSince = observedSinceOf(this.#observedSince, known, monotonic);
    return plan(known, this.#observedSince, terms, { now, monotonic });
  }

  /**
   * Where an authority is lost, the configurations alone say whose certificates are served. What was read of them before its
   * Secret may be older than an authority that has come and gone since; that Secret is written only if it is still the same.
   */
  async #withTrustReread({ known, rereadTrust }: Snapshot, step: Step): Promise<Step> {
    if (step.kind !== "authority") return step;
    return this.observe({ ...known, trusted: await rereadTrust() });
  }

  /** Looks, and does what is to be done. Throws what `look` and writing throw. */
  async takeStep(): Promise<StepResult> {
    const snapshot = await this.#options.look();
    const step = await this.#withTrustReread(snapshot, this.observe(snapshot.known));
    if (step.kind === "wait") return { kind: "rests", ms: step.ms };
    const done =
      step.kind === "trust" ? await snapshot.trust(step.bundle) : await this.#write(snapshot, step);
    return done ? { kind: "done", step } : { kind: "lost" };
  }

  async #write(
    snapshot: Snapshot,
    step: Exclude<Step, { readonly kind: "wait" | "trust" }>,
  ): Promise<boolean> {
    const { kept } = snapshot.known;
    if (kept === undefined) return false;
    const next = await this.#after(kept, step);
    // Until when an old authority is needed must be known before its last certificate is written over.
    if (differ(kept, next) && !(await snapshot.keepAuthority(next))) return false;
    const beside = bundleOf(parseBundle(next.bundle));
    if (!kept.mixed && beside === kept.beside && next.leaf === kept.leaf) return true;
    return await snapshot.keepServed({ beside, leaf: next.leaf, rotate: next.rotate });
  }

  async #after(
    kept: CertSecret,
    step: Exclude<Step, { readonly kind: "wait" | "trust" }>,
  ): Promise<CertSecret> {
    switch (step.kind) {
      case "authority":
        return await this.#withAuthority(kept, step);
      case "leaf":
        return await this.#withLeaf({ ...kept, retireAfter: step.retireAfter });
      case "limit":
        return { ...kept, retireAfter: step.retireAfter };
      case "retire":
        return { ...kept, bundle: step.bundle, retireAfter: step.retireAfter };
      default:
        return kept;
    }
  }

  async #withAuthority(kept: CertSecret, step: Step & { readonly kind: "authority" }): Promise<CertSecret> {
    const { terms, clock } = this.#options;
    const { authorityMs: ms } = terms;
    // clocks of this host may be fast: what is not valid yet for others would be refused
    const { cert, key } = await issueAuthority(clock, { ms, since: clock.now() - ms * BACKDATED });
    const bundle = bundleOf(parseBundle(cert + step.others));
    const next = { ...kept, bundle, authorityKey: key, rotate: "", retireAfter: step.retireAfter };
    return step.leaf ? await this.#withLeaf(next) : next;
  }

  async #withLeaf(kept: CertSecret): Promise<CertSecret> {
    const { terms, clock } = this.#options;
    const [authority] = parseBundle(kept.bundle);
    if (authority === undefined) return kept;
    const pair = { cert: authority.toString(), key: kept.authorityKey };
    const life = { ms: terms.leafMs, since: authority.validFromDate.getTime() };
    const leaf = await issueServingCertificate(pair, terms.names, clock, life);
    return { ...kept, leaf, rotate: kept.rotate === "authority" ? kept.rotate : "" };
  }
}

/** Whether the authority's Secret changes; always when it is to be filled from the other one. */
function differ(was: CertSecret, is: CertSecret): boolean {
  const same =
    was.bundle === is.bundle &&
    was.authorityKey === is.authorityKey &&
    was.rotate === is.rotate &&
    was.retireAfter === is.retireAfter;
  return was.mixed || !same;
}
