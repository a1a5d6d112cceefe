// SPDX-License-Identifier: Apache-2.0
import { BerthError, isRefusal, type Refusal } from "../../../../allocator/base/errors.ts";
import type { Logger } from "../../../../allocator/base/ports.ts";
import type { ClaimAttachment } from "../../../../allocator/model/claim.ts";
import { claimIn, placeOf } from "../claim-place.ts";
import type {
  AttachRequest,
  ClaimMatch,
  ClaimResult,
  ClaimSource,
  NoClaim,
  RequireOurs,
  SandboxEnd,
  SandboxNotice,
} from "../claim-source.ts";

interface SideClaimsOptions {
  /** In the API server, or in the etcd that the agent was started with. */
  readonly own: ClaimSource;
  /** name -> claims in an etcd that a network named */
  readonly sides: (name: string) => ClaimSource | undefined;
  readonly names: () => Iterable<string>;
  readonly log: Logger;
}

/** Claims in several places, each told of what is its own: by what stands before the name of a claim. */
export class SideClaims implements ClaimSource {
  readonly #options: SideClaimsOptions;

  constructor(options: SideClaimsOptions) {
    this.#options = options;
  }

  async find(request: AttachRequest, signal: AbortSignal): Promise<ClaimMatch | NoClaim | Refusal> {
    const { etcd } = request;
    if (etcd === undefined) return await this.#options.own.find(request, signal);
    const found = await this.#side(etcd).find(request, signal);
    return !isRefusal(found) && found.kind === "found"
      ? { ...found, claim: claimIn(etcd, found.claim) }
      : found;
  }

  async attach(
    found: ClaimMatch,
    request: AttachRequest,
    signal: AbortSignal,
  ): Promise<ClaimResult | NoClaim | Refusal> {
    const { etcd, claim } = placeOf(found.claim);
    if (etcd === undefined) return await this.#options.own.attach(found, request, signal);
    const given = await this.#side(etcd).attach({ ...found, claim }, request, signal);
    if (isRefusal(given) || given.kind !== "claimed" || given.claim === undefined) return given;
    return { ...given, claim: claimIn(etcd, given.claim) };
  }

  async attached(notice: SandboxNotice): Promise<void> {
    await this.#report(notice, async (source, own) => await source.attached(own));
  }

  async detached(notice: SandboxEnd): Promise<void> {
    await this.#report(notice, async (source, own) => await source.detached(own));
  }

  async lastSandboxes(name: string): Promise<readonly ClaimAttachment[]> {
    const { etcd, claim } = placeOf(name);
    return await this.#side(etcd).lastSandboxes(claim);
  }

  inUse(): readonly string[] {
    const { own, names } = this.#options;
    const ofSides = [...names()].flatMap((name) =>
      this.#side(name)
        .inUse()
        .map((claim) => claimIn(name, claim)),
    );
    return [...own.inUse(), ...ofSides];
  }

  async absent(name: string, requireOurs?: RequireOurs): Promise<void> {
    const { etcd, claim } = placeOf(name);
    await this.#side(etcd).absent(claim, requireOurs);
  }

  async #report(
    notice: SandboxNotice,
    tell: (source: ClaimSource, own: SandboxNotice) => Promise<void>,
  ): Promise<void> {
    const { etcd, claim } = placeOf(notice.claim);
    const { own, sides, log } = this.#options;
    const source = etcd === undefined ? own : sides(etcd);
    if (source !== undefined) return await tell(source, { ...notice, claim });
    // kept as long as an attachment needs it: only somebody's hand can have taken it out of the journal
    log.error("the journal does not say how the etcd of a claim is reached; fence this host there", {
      claim,
    });
  }

  #side(etcd: string | undefined): ClaimSource {
    const { own, sides } = this.#options;
    const source = etcd === undefined ? own : sides(etcd);
    if (source !== undefined) return source;
    throw new BerthError("STATE_CORRUPT", `the journal does not say how ${etcd} is reached`);
  }
}
