// SPDX-License-Identifier: Apache-2.0
import type { Claim, ClaimStatus, Identity } from "../model/claim.ts";
import type { Reservation } from "../model/reservation.ts";
import type { Stored } from "../store/store.ts";

/** What is remembered of equal parts. Once that many were seen it begins anew: shared ones stay shared. */
const REMEMBERED = 20_000;

/**
 * Records as they stay in memory, of which there may be 100,000: equal to what they are made of, in half the space.
 * Parts that many records have in common are there once, and objects are laid out whole instead of field by field.
 */
export class RecordInterner {
  readonly #texts = new Map<string, string>(); // text -> the one that is kept of it
  readonly #parts = new Map<string, object>(); // JSON -> the object that is kept of it

  /** `reservation` is any of its reservations. */
  claim(stored: Stored<"claim">, reservation?: Reservation): Stored<"claim"> {
    const { key, uid, revision, createdAt, record: whole, ...seldom } = stored;
    const record = this.#claim(whole, reservation);
    return { key, record, uid, revision, createdAt, ...seldom };
  }

  /** `claim` is the one that it is for. */
  reservation(stored: Stored<"reservation">, claim?: Claim): Stored<"reservation"> {
    const { key: _, uid, revision, createdAt, record: whole, ...seldom } = stored;
    const { address, pool, claim: key, nonce, ...rest } = whole;
    const record: Reservation = {
      address,
      pool: this.#text(pool),
      claim: { namespace: this.#text(key.namespace), name: same(key.name, claim?.name) },
      nonce: same(nonce, claim?.nonce),
      ...rest,
    };
    return { key: address, record, uid, revision, createdAt, ...seldom };
  }

  #claim(claim: Claim, reservation: Reservation | undefined): Claim {
    const { namespace, name, identity, request, retention, addresses, nonce, status, ...rest } = claim;
    const { admittedAt, binding, ...seldom } = rest;
    const lean = {
      namespace: this.#text(namespace),
      name: same(name, reservation?.claim.name),
      identity: this.#identity(identity),
      request: request.addresses === undefined ? this.#part(request) : request,
      retention: this.#part(retention),
      addresses:
        reservation === undefined ? addresses : addresses.map((one) => same(one, reservation.address)),
      nonce: same(nonce, reservation?.nonce),
      status: this.#status(status),
      admittedAt: admittedAt ?? 0,
    };
    const bound = binding === undefined ? {} : { binding: { ...binding, node: this.#text(binding.node) } };
    if (admittedAt !== undefined) return { ...lean, ...bound, ...seldom };
    const { admittedAt: _, ...unadmitted } = lean;
    return { ...unadmitted, ...bound, ...seldom };
  }

  #identity({ kind, apiVersion, name, uid, ordinal, ...rest }: Identity): Identity {
    const whose = { kind: this.#text(kind), apiVersion: this.#text(apiVersion), name: this.#text(name) };
    const owner = uid === undefined ? {} : { uid: this.#text(uid) };
    return { ...whose, ...owner, ...(ordinal === undefined ? {} : { ordinal }), ...rest };
  }

  #status(status: ClaimStatus): ClaimStatus {
    return status.attachment === undefined && status.message === undefined ? this.#part(status) : status;
  }

  #text(text: string): string {
    const kept = this.#texts.get(text);
    if (kept !== undefined) return kept;
    if (this.#texts.size >= REMEMBERED) this.#texts.clear();
    this.#texts.set(text, text);
    return text;
  }

  #part<T extends object>(part: T): T {
    const json = JSON.stringify(part);
    const kept = this.#parts.get(json);
    if (kept !== undefined) return kept as T; // of the same JSON
    if (this.#parts.size >= REMEMBERED) this.#parts.clear();
    this.#parts.set(json, part);
    return part;
  }
}

/** The one that is there already, if it is the same text. */
function same<T extends string>(text: T, there: T | undefined): T {
  return text === there ? there : text;
}
