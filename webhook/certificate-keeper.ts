// SPDX-License-Identifier: Apache-2.0
import type { Clock } from "../allocator/ports.ts";
import { authoritiesIn, bundleOf } from "./certificate-bundle.ts";
import {
  type Kept,
  type Known,
  plan,
  type Standing,
  type Step,
  standingOf,
  type Terms,
} from "./certificate-plan.ts";
import { issueAuthority, issueLeaf } from "./certificates.ts";

/** What was read at one moment, and can be changed if nothing of it has changed since. */
export interface Sight {
  readonly known: Known;
  /** Writes the Secret; false when somebody else has changed it since. */
  keep(kept: Kept): Promise<boolean>;
  /** Writes the bundle where it is not; false when one of the configurations was changed since. */
  trust(bundle: string): Promise<boolean>;
}

export type Turn =
  /** Nothing to do for so many milliseconds, or until something changes. */
  | { readonly kind: "rests"; readonly ms: number }
  | { readonly kind: "done"; readonly step: Exclude<Step, { readonly kind: "wait" }> }
  /** Somebody else was first: look again. */
  | { readonly kind: "lost" };

export interface KeeperOptions {
  readonly terms: Terms;
  readonly clock: Pick<Clock, "now" | "monotonic">;
  /**
   * Reads from the authority, the configurations before the Secret: a configuration that has not changed since then
   * cannot hold an authority that is newer than what the Secret had.
   */
  readonly look: () => Promise<Sight>;
}

/** An authority is valid that long before it was made, as a share of its life; its leaves as long as it is. */
const BACKDATED = 1 / 10;

/** Carries out one step after the other. Any number of processes may do so at once: what was read decides. */
export class CertificateKeeper {
  readonly #options: KeeperOptions;
  #standing: Standing | undefined;

  constructor(options: KeeperOptions) {
    this.#options = options;
  }

  /** Takes note of what a watch has seen, and says what it would do: nothing must go unnoticed between two turns. */
  observe(known: Known): Step {
    const { clock, terms } = this.#options;
    const [now, monotonic] = [clock.now(), clock.monotonic()];
    this.#standing = standingOf(this.#standing, known, monotonic);
    return plan(known, this.#standing, terms, { now, monotonic });
  }

  /** Looks, and does what is to be done. Throws what `look` and writing throw. */
  async turn(): Promise<Turn> {
    const sight = await this.#options.look();
    const step = this.observe(sight.known);
    if (step.kind === "wait") return { kind: "rests", ms: step.ms };
    const done = step.kind === "trust" ? await sight.trust(step.bundle) : await this.#write(sight, step);
    return done ? { kind: "done", step } : { kind: "lost" };
  }

  async #write(sight: Sight, step: Exclude<Step, { readonly kind: "wait" | "trust" }>): Promise<boolean> {
    const { kept } = sight.known;
    if (kept === undefined) return false;
    switch (step.kind) {
      case "authority":
        return await sight.keep(await this.#withAuthority(kept, step));
      case "leaf":
        return await sight.keep(await this.#withLeaf({ ...kept, retireAfter: step.retireAfter }));
      default:
        return await sight.keep({ ...kept, bundle: step.bundle, retireAfter: step.retireAfter });
    }
  }

  async #withAuthority(kept: Kept, step: Step & { readonly kind: "authority" }): Promise<Kept> {
    const { terms, clock } = this.#options;
    const { authorityMs: ms } = terms;
    // clocks of this host may be fast: what is not valid yet for others would be refused
    const { cert, key } = await issueAuthority(clock, { ms, since: clock.now() - ms * BACKDATED });
    const bundle = bundleOf(authoritiesIn(cert + step.others));
    const next = { ...kept, bundle, authorityKey: key, rotate: "", retireAfter: step.retireAfter };
    return step.leaf ? await this.#withLeaf(next) : next;
  }

  async #withLeaf(kept: Kept): Promise<Kept> {
    const { terms, clock } = this.#options;
    const [authority] = authoritiesIn(kept.bundle);
    if (authority === undefined) return kept;
    const pair = { cert: authority.toString(), key: kept.authorityKey };
    const life = { ms: terms.leafMs, since: authority.validFromDate.getTime() };
    const leaf = await issueLeaf(pair, terms.names, clock, life);
    return { ...kept, leaf, rotate: kept.rotate === "authority" ? kept.rotate : "" };
  }
}
