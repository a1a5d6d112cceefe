// SPDX-License-Identifier: Apache-2.0
// Claims and reservations as they are kept in memory (ADR 0043): what many have in common once, and what is a record's own as one text.

import type { Address } from "../ip/address.ts";
import {
  type Binding,
  type Claim,
  type ClaimAttachment,
  type ClaimRequest,
  type ClaimStatus,
  claimKey,
  type Identity,
} from "../model/claim.ts";
import type { Reservation } from "../model/reservation.ts";
import type { Stored } from "../store/store.ts";
import type { Packing } from "./kept-records.ts";
import { secondsOf, ValueReader, ValueWriter } from "./own-values.ts";

/** So many are remembered. Then it begins anew: those that are in use stay as they are. */
const REMEMBERED = 20_000;
/** What has more characters is hardly anybody else's too, and would stay in memory when its record is gone. */
const LONGEST = 500;

/** Equal parts of many records, each kept once. */
class Interned<T extends object | string> {
  readonly #parts = new Map<string, T>(); // what it is in words -> the one that is kept of it

  /** The one that was given first with these words, which say all that is in it. */
  one(words: string, part: T): T {
    const kept = this.#parts.get(words);
    if (kept !== undefined) return kept;
    if (words.length > LONGEST) return part;
    if (this.#parts.size >= REMEMBERED) this.#parts.clear();
    this.#parts.set(words, part);
    return part;
  }
}

type Own = "namespace" | "name" | "addresses" | "nonce" | "admittedAt";
type Parts = "identity" | "request" | "status" | "binding" | "retained";

/** What claims have in common with those of other workloads. */
interface ClaimForm {
  readonly beside: Omit<Stored<"claim">, "key" | "record" | "uid" | "revision" | "createdAt">;
  readonly rest: Omit<Claim, Own | Parts>;
  readonly identity: Pick<Identity, "apiVersion" | "kind" | "slot">;
  readonly request: ClaimRequest;
  /** The request lists the addresses that the claim has. */
  readonly asksForOwn: boolean;
  readonly status: Omit<ClaimStatus, "attachment">;
  readonly binding?: Pick<Binding, "interface">;
  readonly attachment?: Pick<ClaimAttachment, "interface" | "detached">;
  readonly because?: NonNullable<Claim["retained"]>["because"];
}

interface PackedClaim {
  readonly form: ClaimForm;
  /** Name and UID of its identity, which the claims of a StatefulSet share. */
  readonly whose: string;
  /** Of `createdAt`. */
  readonly seconds: number;
  readonly own: string;
}

const BETWEEN = ",";

/** A claim in memory, of which namespace and name are the key. */
export class ClaimPacking implements Packing<"claim", PackedClaim> {
  readonly #forms = new Interned<ClaimForm>();
  readonly #owners = new Interned<string>();

  pack(stored: Stored<"claim">): PackedClaim | undefined {
    const { key, uid, revision, createdAt, record } = stored;
    const { identity, addresses, nonce, admittedAt, retained, binding, status } = record;
    const whose = new ValueWriter().text(identity.name).text(identity.uid).written;
    const values = new ValueWriter()
      .text(uid)
      .text(revision)
      .number(createdAt - 1000 * secondsOf(createdAt));
    values.number(identity.ordinal).text(nonce).text(addresses.join(BETWEEN)).number(admittedAt);
    if (retained !== undefined) values.number(retained.since);
    if (binding !== undefined) writeBinding(values, binding);
    if (status.attachment !== undefined) writeAttachment(values, status.attachment);
    const own = values.written;
    if (own === undefined || whose === undefined) return undefined;
    if (key !== claimKey(record)) return undefined;
    const form = formOf(stored);
    return {
      form: this.#forms.one(JSON.stringify(form), form),
      whose: this.#owners.one(whose, whose),
      seconds: secondsOf(createdAt),
      own,
    };
  }

  unpack(key: string, packed: PackedClaim): Stored<"claim"> {
    const { form, seconds, own } = packed;
    const values = new ValueReader(own);
    const [uid, revision, ms] = [values.text(), values.text(), values.number()];
    const record = recordOf(key, packed, values);
    return { key, record, uid, revision, createdAt: seconds * 1000 + ms, ...form.beside };
  }
}

function formOf(stored: Stored<"claim">): ClaimForm {
  const { key: _, uid: __, revision: ___, createdAt: ____, record, ...beside } = stored;
  const { namespace: _1, name: _2, nonce: _3, admittedAt: _4, addresses, ...more } = record;
  const { identity, request, retained, binding, status, ...rest } = more;
  const { apiVersion, kind, slot } = identity;
  const { addresses: asked, ...unlisted } = request;
  const { attachment, ...reported } = status;
  const asksForOwn = asked?.join(BETWEEN) === addresses.join(BETWEEN);
  return {
    ...{ beside, rest, status: reported, asksForOwn, request: asksForOwn ? unlisted : request },
    identity: { apiVersion, kind, ...(slot === undefined ? {} : { slot }) },
    ...(binding && { binding: binding.interface === undefined ? {} : { interface: binding.interface } }),
    ...(attachment && {
      attachment: { interface: attachment.interface, detached: attachment.detached },
    }),
    ...(retained && { because: retained.because }),
  };
}

function recordOf(key: string, { form, whose }: PackedClaim, values: ValueReader): Claim {
  const { rest, because, status } = form;
  const slash = key.indexOf("/");
  const identity = identityOf(form, whose, values.numberIfAny());
  const [nonce, listed, admittedAt] = [values.text(), values.text(), values.numberIfAny()];
  const addresses = listed === "" ? [] : (listed.split(BETWEEN) as Address[]); // as they were joined
  const request = form.asksForOwn ? { ...form.request, addresses } : form.request;
  const name = key.slice(slash + 1);
  const bare = { namespace: key.slice(0, slash), name, identity, request, addresses, nonce, status, ...rest };
  const claim = admittedAt === undefined ? bare : { ...bare, admittedAt };
  const kept = because && { retained: { since: values.number(), because } };
  const bound = form.binding && { binding: readBinding(values, form.binding) };
  const attachment = form.attachment && readAttachment(values, form.attachment);
  if (attachment === undefined) return kept || bound ? { ...claim, ...kept, ...bound } : claim;
  return { ...claim, ...kept, ...bound, status: { ...status, attachment } };
}

function identityOf({ identity }: ClaimForm, whose: string, ordinal: number | undefined): Identity {
  const values = new ValueReader(whose);
  const [name, uid] = [values.text(), values.textIfAny()];
  if (uid === undefined)
    return ordinal === undefined ? { ...identity, name } : { ...identity, name, ordinal };
  return ordinal === undefined ? { ...identity, name, uid } : { ...identity, name, uid, ordinal };
}

function writeBinding(values: ValueWriter, { token, podName, podUID, node, since }: Binding): void {
  values.text(token).text(podName).text(podUID).text(node).number(since);
}

function readBinding(values: ValueReader, frame: Pick<Binding, "interface">): Binding {
  const [token, podName, podUID, node] = [values.text(), values.text(), values.text(), values.text()];
  return { token, podName, podUID, node, since: values.number(), ...frame };
}

function writeAttachment(values: ValueWriter, attachment: ClaimAttachment): void {
  const { node, containerID, podUID, since, netns, bootID } = attachment;
  values.text(node).text(containerID).text(podUID).number(since).text(netns).text(bootID);
}

function readAttachment(
  values: ValueReader,
  frame: Pick<ClaimAttachment, "interface" | "detached">,
): ClaimAttachment {
  const [node, containerID, podUID, since] = [values.text(), values.text(), values.text(), values.number()];
  const [netns, bootID] = [values.textIfAny(), values.textIfAny()];
  const attachment = { node, containerID, podUID, since, ...frame };
  if (netns === undefined && bootID === undefined) return attachment;
  return {
    ...attachment,
    ...(netns === undefined ? {} : { netns }),
    ...(bootID === undefined ? {} : { bootID }),
  };
}

/** What reservations have in common. */
interface ReservationForm {
  readonly beside: Omit<Stored<"reservation">, "key" | "record" | "uid" | "revision" | "createdAt">;
  readonly rest: Pick<Reservation, "pool" | "marked" | "cooldownMs">;
  readonly namespace: string;
  readonly isCooling: boolean;
}

interface PackedReservation {
  readonly form: ReservationForm;
  /** Of `createdAt`. */
  readonly seconds: number;
  readonly own: string;
}

/** A reservation in memory, of which the address is the key. */
export class ReservationPacking implements Packing<"reservation", PackedReservation> {
  readonly #forms = new Interned<ReservationForm>();

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
    const form: ReservationForm = { beside, rest, namespace: claim.namespace, isCooling };
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
