// SPDX-License-Identifier: Apache-2.0
import type { X509Certificate } from "node:crypto";
import type { ServerNames } from "../certificates/issue.ts";
import {
  type CertSecret,
  type RotationPolicy,
  type Served,
  validateServingCert,
} from "../certificates/rotation.ts";
import { CertificateRotator, type Snapshot, type StepResult } from "../certificates/rotator.ts";

interface Version<T> {
  readonly value: T;
  readonly since: number;
}

/** An object as the API server has it, with its past. */
export class Past<T> {
  readonly versions: Version<T>[];

  constructor(value: T) {
    this.versions = [{ value, since: Number.NEGATIVE_INFINITY }];
  }

  get revision(): number {
    return this.versions.length - 1;
  }

  get now(): T {
    return this.at(this.revision);
  }

  at(revision: number): T {
    const version = this.versions[revision];
    if (version === undefined) throw new Error(`there is no revision ${revision}`);
    return version.value;
  }

  /** The first revision that was current at that time or later. */
  currentAt(time: number): number {
    return Math.max(
      this.versions.findLastIndex(({ since }) => since <= time),
      0,
    );
  }
}

/** What stands in a configuration. */
export interface Trust {
  readonly bundle: string;
  /** Written by somebody else than Berth, or by nobody yet: what then fails is not Berth's doing. */
  readonly foreign: boolean;
}

/** What a replica can reach. */
export interface Surroundings {
  readonly terms: RotationPolicy;
  readonly time: number;
  readonly authority: Past<Omit<CertSecret, keyof Served>>;
  readonly secret: Past<Served>;
  readonly configurations: readonly Past<Trust>[];
  look(gate: () => Promise<void>): Promise<Snapshot>;
}

/** Revisions that watches have brought. */
interface Seen {
  readonly authority: number;
  readonly secret: number;
  readonly configurations: readonly number[];
}

/** A webhook and an issuer in one process, with a keeper of its own, whose calls of the API server wait until they are let through. */
export class TestReplica {
  readonly #world: Surroundings;
  keeper!: CertificateRotator;
  seen: Seen;
  served: X509Certificate | undefined;
  offsetMs = 0;
  /** How the last turn ended. */
  last: StepResult | undefined;
  #running: Promise<void> | undefined;
  #open: (() => void) | undefined;
  #arrived: () => void = () => {};
  #life = 0;
  /** What its keeper observed last, and when; empty: it has gone on since. */
  #observed = "";
  readonly #judged = new WeakMap<Served, { readonly leaf: X509Certificate | undefined }>();

  constructor(world: Surroundings) {
    this.#world = world;
    this.seen = { authority: 0, secret: 0, configurations: world.configurations.map(() => 0) };
    this.restart();
  }

  restart(): void {
    const life = ++this.#life;
    const world = this.#world;
    const clock = { now: () => world.time + this.offsetMs, monotonic: () => world.time };
    this.keeper = new CertificateRotator({
      terms: this.#world.terms,
      clock,
      look: () => world.look(() => this.#gate(life)),
    });
    this.served = undefined;
    this.#observed = "";
    this.#running = undefined;
    this.#open = undefined;
  }

  /** To the next gate, or to the end of the turn; whether the turn goes on. */
  async go(): Promise<boolean> {
    this.#observed = "";
    const arrived = new Promise<void>((resolve) => {
      this.#arrived = resolve;
    });
    if (this.#running === undefined) {
      const running = this.keeper.takeStep().then((ended) => {
        if (this.#running !== running) return;
        this.#running = undefined;
        this.last = ended;
      });
      this.#running = running;
    } else {
      this.#open?.();
    }
    await Promise.race([arrived, this.#running]);
    return this.#running !== undefined;
  }

  /** Turn after turn until nothing is to be done now; for how long, ms. */
  async rest(): Promise<number> {
    // a turn that is under way may have read what was there before
    while (this.#running !== undefined) await this.go();
    for (;;) {
      while (await this.go());
      if (this.last?.kind === "rests") return this.last.ms;
    }
  }

  hear(): void {
    const { authority, secret, configurations } = this.#world;
    this.see({
      authority: authority.revision,
      secret: secret.revision,
      configurations: configurations.map(({ revision }) => revision),
    });
  }

  /** The watches have come to these revisions at least. */
  see({ authority, secret, configurations }: Seen): void {
    this.seen = {
      authority: Math.max(this.seen.authority, authority),
      secret: Math.max(this.seen.secret, secret),
      configurations: this.seen.configurations.map((one, n) => Math.max(one, configurations[n] ?? 0)),
    };
    // to see the same again at the same moment changes nothing: so says a test of rotation.test.ts
    const observed = JSON.stringify([this.seen, this.#world.time, this.offsetMs]);
    if (observed === this.#observed) return;
    this.#observed = observed;
    const served = this.#world.secret.at(this.seen.secret);
    const kept = { ...this.#world.authority.at(this.seen.authority), ...served };
    const trusted = this.seen.configurations.map((one, n) => [
      this.#world.configurations[n]?.at(one).bundle ?? "",
    ]);
    this.keeper.observe({ kept, trusted });
    this.#serve(served);
  }

  /** As server.ts does: what has expired by this clock is taken all the same if it ends later. */
  #serve(served: Served): void {
    const leaf = this.#usable(served);
    if (leaf === undefined) return; // what is served stays
    const outlives = this.served !== undefined && leaf.validToDate > this.served.validToDate;
    if (outlives || leaf.validToDate.getTime() > this.#world.time + this.offsetMs) this.served = leaf;
  }

  /** Judged once for each revision, which is seen again and again: no time changes that. */
  #usable(served: Served): X509Certificate | undefined {
    const known = this.#judged.get(served);
    if (known !== undefined) return known.leaf;
    const judged = { leaf: judge(served, this.#world.terms.names) };
    this.#judged.set(served, judged);
    return judged.leaf;
  }

  /** Waits for its turn at the API server; of a process that is dead, for ever. */
  async #gate(life: number): Promise<void> {
    await new Promise<void>((resolve) => {
      if (life !== this.#life) return;
      this.#open = resolve;
      this.#arrived();
    });
  }
}

function judge({ leaf, beside }: Served, names: ServerNames): X509Certificate | undefined {
  try {
    return validateServingCert({ leaf, bundle: beside }, names);
  } catch {
    return undefined;
  }
}
