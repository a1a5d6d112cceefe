// SPDX-License-Identifier: Apache-2.0
import type { ApiServer, Kept } from "../support/api-server.ts";
import type { SeededRandom } from "../support/random.ts";
import type { Manifest } from "../support/review.ts";
import { addressesIn, type Runtime, type Sandbox, sandboxOf } from "../support/runtime.ts";
import type { Promises } from "./promises.ts";

/** What a subject acts on. The stack behind it may be killed at any moment. */
export interface Site {
  /** That of the process which runs now, or ran last. */
  readonly api: () => ApiServer;
  readonly runtime: Runtime;
  readonly random: SeededRandom;
  readonly promises: Promises;
  /** Counts what was done, by its name. */
  readonly count: (what: string) => void;
  /** Something that must not happen, killed or not. */
  readonly fault: (words: string) => void;
}

/** One pod, or one container, with a life of its own; one step at a time. */
export interface Subject {
  step(site: Site): Promise<void>;
  /** Ends whatever it has. */
  end(site: Site): Promise<void>;
}

/** Codes of refusals that pass by themselves. */
const PASSING = ["CLAIM_RELEASING", "CLAIM_BUSY"];

/** Attaches and says whether that was answered with success. */
async function attach(site: Site, sandbox: Sandbox, expected?: string): Promise<boolean> {
  const { promises, count, fault } = site;
  const answer = await site.runtime.add(sandbox);
  if (answer.kind === "failed") {
    // Without a code it is a result whose acknowledgement came too late for the agent: nobody may count on it.
    if (answer.code !== 11 && answer.code !== undefined) fault(`ADD: ${answer.code} ${answer.msg}`);
    count(answer.code === undefined ? "ADD not acknowledged" : "ADD failed");
    return false;
  }
  const addresses = addressesIn(answer)
    .map((cidr) => cidr.split("/", 1)[0])
    .sort()
    .join(",");
  if (addresses === "" || (expected !== undefined && addresses !== expected)) {
    fault(`ADD of ${sandbox.pod?.name} gave "${addresses}" instead of ${expected}`);
  }
  count("ADD succeeded");
  promises.attached(sandbox.containerID, addresses);
  return true;
}

async function detach(site: Site, sandbox: Sandbox): Promise<void> {
  site.promises.attachmentUncertain(sandbox.containerID);
  await site.runtime.detach(sandbox);
  site.promises.detached(sandbox.containerID);
  site.count("DEL");
}

export function sorted(addresses: string): string {
  return addresses.split(",").sort().join(",");
}

/** A pod that is admitted over TLS, attached, deleted and created again. */
export class PodSubject implements Subject {
  readonly name: string;
  /** Whether its claim outlives its pods. */
  readonly #sticky: boolean;
  readonly #manifest: () => Manifest;
  #pod: Kept | undefined;
  #sandbox: Sandbox | undefined;
  #before: Sandbox | undefined;
  /** Its creation or its deletion was cut off: there may be a pod, whose uid nobody knows, and a second is refused. */
  #mayBeThere = false;

  constructor(name: string, sticky: boolean, manifest: () => Manifest) {
    this.name = name;
    this.#sticky = sticky;
    this.#manifest = manifest;
  }

  async step(site: Site): Promise<void> {
    if (this.#pod === undefined)
      return await (this.#mayBeThere ? this.#deleteUnknown(site) : this.#admit(site));
    if (this.#sandbox === undefined) return await this.#attachNew(site);
    const acts = [
      () => this.#attachAgain(site),
      () => this.#attachNew(site),
      () => this.#detach(site),
      () => this.#replace(site),
      () => this.#rob(site),
      () => this.#detachLate(site),
      () => this.#delete(site),
    ];
    await site.random.pick(acts)();
  }

  /** Deletes the pod even if nobody knows whether there is one. */
  async end(site: Site): Promise<void> {
    await this.#detachLate(site);
    await this.#detach(site);
    await (this.#pod === undefined ? this.#deleteUnknown(site) : this.#delete(site));
  }

  async #deleteUnknown(site: Site): Promise<void> {
    const { metadata, ...manifest } = this.#manifest();
    this.#pod = { ...manifest, metadata: { ...metadata, name: this.name, uid: "unknown" } };
    await this.#delete(site);
  }

  /** The addresses that the pod was given, kept ones only. */
  async #admit(site: Site): Promise<void> {
    const outcome = await site
      .api()
      .write(this.#manifest())
      .catch(() => undefined);
    if (outcome === undefined) {
      this.#mayBeThere = true;
      site.count("admission cut off");
    } else if (outcome.kind === "refused") {
      if (!PASSING.includes(outcome.reason)) site.fault(`${this.name} is refused: ${outcome.message}`);
      site.count("admission refused");
    } else {
      this.#admitted(site, outcome.object);
    }
  }

  #admitted({ promises, count, fault }: Site, pod: Kept): void {
    const addresses = sorted(pod.metadata.annotations?.["berth.dev/addresses"] ?? "");
    const before = promises.addressesOf(this.name);
    if (before !== undefined && before !== addresses) fault(`${this.name} had ${before}, now ${addresses}`);
    promises.admitted(this.name, addresses);
    this.#pod = pod;
    count("pod admitted");
  }

  /** A sandbox with another container id; the one before may still be there, as after a crash of the runtime. */
  async #attachNew(site: Site): Promise<void> {
    const { promises } = site;
    if (this.#before !== undefined) await detach(site, this.#before);
    this.#before = this.#sandbox;
    if (this.#before !== undefined) promises.attachmentUncertain(this.#before.containerID);
    this.#sandbox = sandboxOf(this.#pod);
    await attach(site, this.#sandbox, promises.addressesOf(this.name));
  }

  async #attachAgain(site: Site): Promise<void> {
    if (this.#sandbox !== undefined) {
      await attach(site, this.#sandbox, site.promises.addressesOf(this.name));
    }
  }

  async #detach(site: Site): Promise<void> {
    const sandbox = this.#sandbox;
    this.#sandbox = undefined;
    if (sandbox !== undefined) await detach(site, sandbox);
  }

  async #detachLate(site: Site): Promise<void> {
    const sandbox = this.#before;
    this.#before = undefined;
    if (sandbox !== undefined) await detach(site, sandbox);
  }

  /** As a StatefulSet does it in haste: the successor is there before the sandbox of the first is gone. */
  async #replace(site: Site): Promise<void> {
    await this.#delete(site);
    if (!this.#mayBeThere) await this.#admit(site);
    if (this.#pod !== undefined) await this.#attachNew(site);
  }

  async #delete(site: Site): Promise<void> {
    if (this.#pod === undefined) return;
    if (!this.#sticky) site.promises.claimUncertain(this.name);
    const outcome = await site
      .api()
      .delete(this.#pod)
      .catch(() => undefined);
    this.#pod = undefined;
    this.#mayBeThere = outcome === undefined;
    site.count(outcome === undefined ? "deletion cut off" : "pod deleted");
  }

  /** Somebody else asks for the addresses that this one has. */
  async #rob(site: Site): Promise<void> {
    const held = site.promises.addressesOf(this.name);
    if (held === undefined) return;
    const { name = "" } = this.#manifest().metadata;
    const thief: Manifest = {
      ...this.#manifest(),
      metadata: { namespace: "shop", name: `not-${name}`, annotations: { "berth.dev/ips": held } },
    };
    const object = { route: "/mutate/pods", operation: "CREATE", object: thief } as const;
    const verdict = await site
      .api()
      .ask({ ...object, oldObject: null, dryRun: false })
      .catch(() => undefined);
    if (verdict?.allowed === true) site.fault(`not-${name} is let through with ${held} of ${name}`);
    site.count(verdict === undefined ? "admission cut off" : "conflict refused");
  }
}

/** A container that gets any address: of a pool, for a pod that nobody admitted, or of the configuration's ranges. */
export class PlainSubject implements Subject {
  readonly #runtime: Runtime;
  readonly #pod: { namespace: string; name: string; uid: string } | undefined;
  #sandbox: Sandbox | undefined;

  constructor(runtime: Runtime, podName?: string) {
    this.#runtime = runtime;
    this.#pod =
      podName === undefined ? undefined : { namespace: "shop", name: podName, uid: `uid-of-${podName}` };
  }

  async step(site: Site): Promise<void> {
    const own = { ...site, runtime: this.#runtime };
    if (this.#sandbox === undefined) {
      this.#sandbox = sandboxOf(this.#pod);
      await attach(own, this.#sandbox);
    } else if (site.random.below(2) === 0) {
      await attach(own, this.#sandbox);
    } else {
      await this.end(site);
    }
  }

  async end(site: Site): Promise<void> {
    const sandbox = this.#sandbox;
    this.#sandbox = undefined;
    if (sandbox !== undefined) await detach({ ...site, runtime: this.#runtime }, sandbox);
  }
}
