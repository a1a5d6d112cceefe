// SPDX-License-Identifier: Apache-2.0
import type { Address } from "../ip/address.ts";
import type { Reservation } from "../model/reservation.ts";
import type { Stored } from "../store/store.ts";
import { Interned } from "./interned.ts";
import type { Packing } from "./kept-records.ts";
import { secondsOf, ValueReader, ValueWriter } from "./own-values.ts";

/** What reservations have in common. */
interface Form {
  readonly beside: Omit<Stored<"reservation">, "key" | "record" | "uid" | "revision" | "createdAt">;
  readonly rest: Pick<Reservation, "pool" | "marked" | "cooldownMs">;
  readonly namespace: string;
  readonly isCooling: boolean;
}

interface PackedReservation {
  readonly form: Form;
  /** Of `createdAt`. */
  readonly seconds: number;
  readonly own: string;
}

/** A reservation in memory, of which the address is the key. */
export class ReservationPacking implements Packing<"reservation", PackedReservation> {
  readonly #forms = new Interned<Form>();

  pack(stored: Stored<"reservation">): PackedReservation | undefined {
    const { key, uid, revision, createdAt, record, ...beside } = stored;
    const { address, claim, nonce, releasedAt, ...rest } = record;
    const isCooling = releasedAt !== undefined;
    const values = new ValueWriter()
      .text(uid)
      .text(revision)
      .text(claim.name)
      .text(nonce)
      .number(createdAt - 1000 * secondsOf(createdAt));
    if (isCooling) values.number(releasedAt);
    const own = values.written;
    if (own === undefined || key !== address) return undefined;
    const form: Form = { beside, rest, namespace: claim.namespace, isCooling };
    return { form: this.#forms.one(JSON.stringify(form), form), seconds: secondsOf(createdAt), own };
  }

  unpack(key: string, { form, seconds, own }: PackedReservation): Stored<"reservation"> {
    const { beside, rest, namespace, isCooling } = form;
    const values = new ValueReader(own);
    const [uid, revision, name, nonce] = [values.text(), values.text(), values.text(), values.text()];
    const ms = values.number();
    const taken: Reservation = { address: key as Address, ...rest, claim: { namespace, name }, nonce };
    const record = isCooling ? { ...taken, releasedAt: values.number() } : taken;
    return { key, record, uid, revision, createdAt: seconds * 1000 + ms, ...beside };
  }
}
