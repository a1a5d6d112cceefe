// SPDX-License-Identifier: Apache-2.0
import type { Claim } from "../../allocator/claim.ts";
import { type Housekeeping, keepHouse } from "../../allocator/housekeeping.ts";
import type { Mirror } from "../../allocator/mirror.ts";
import { unmetered } from "../../allocator/ports.ts";
import { Reaper } from "../../allocator/reaper.ts";
import { guarded } from "../../webhook/admission/guard.ts";
import { createHandlers } from "../../webhook/admission/handlers.ts";
import type { AdmissionRequest, AdmissionResponse } from "../../webhook/admission/review.ts";
import type { Route } from "../../webhook/app.ts";
import type { Permit } from "./letting-go.ts";
import type { Process } from "./process.ts";
import { outfit, type Setting } from "./setting.ts";

/** One replica of the webhook, with its housekeeping if it has one. */
export class Webhook {
  readonly process: Process;
  readonly mirror: Mirror;
  readonly #setting: Setting;
  readonly #handlers: ReturnType<typeof createHandlers>;
  readonly #log: Parameters<typeof guarded>[1]["log"];
  #house: Housekeeping | undefined;

  constructor(process: Process, setting: Setting, keepsHouse: boolean) {
    const { context, cluster, inventory, mirror, synced } = outfit(process, setting, "webhook");
    this.process = process;
    this.mirror = mirror;
    this.#setting = setting;
    this.#log = context.log;
    const { suspect } = setting;
    this.#handlers = createHandlers({ context, inventory, embedded: cluster, suspect });
    if (!keepsHouse) return;
    void synced.then(() => {
      this.#house = keepHouse(context, new Reaper(context, inventory), unmetered);
    });
  }

  get keepsHouse(): boolean {
    return this.#house !== undefined;
  }

  suspect(claim: Claim): void {
    this.#house?.suspect(claim);
  }

  /** The answer, or undefined when there is none: the process died, or was not ready. */
  async review(route: Route, request: AdmissionRequest): Promise<AdmissionResponse | undefined> {
    const { process } = this;
    if (!process.alive || !this.mirror.ready) return undefined;
    const { clock } = process;
    const options = { route, log: this.#log, metrics: unmetered, clock };
    const decide = guarded((asked, signal) => this.#handle(route, asked, signal), options);
    return await process.run(new AbortController(), (signal) => decide(request, signal));
  }

  async #handle(route: Route, request: AdmissionRequest, signal: AbortSignal): Promise<AdmissionResponse> {
    const permit = permitFor(this.process, route, request);
    const revoke = permit && this.#setting.witness.permit(permit);
    try {
      return await this.#handlers[route](request, signal);
    } finally {
      revoke?.();
    }
  }
}

/** What the review may release: a claim that a person deletes, or what it took itself for a workload that is refused. */
function permitFor(process: Process, route: Route, request: AdmissionRequest): Permit | undefined {
  const key = `${request.namespace}/${request.name}`;
  if (route === "/validate/workloads")
    return { process, unused: true, isFor: (claim) => claim.startsWith(`${key}-`) };
  if (route !== "/validate/claims" || request.operation !== "DELETE") return undefined;
  return { process, unused: false, isFor: (claim) => claim === key };
}
