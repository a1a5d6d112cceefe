// SPDX-License-Identifier: Apache-2.0
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
import type { Stored } from "../store/store.ts";
import { Interned } from "./interned.ts";
import type { Packing } from "./kept-records.ts";
import { secondsOf, ValueReader, ValueWriter } from "./own-values.ts";

type Own = "namespace" | "name" | "addresses" | "nonce" | "admittedAt";
type Parts = "identity" | "request" | "status" | "binding" | "retained";

/** What claims have in common with those of other workloads. */
interface Form {
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
  readonly form: Form;
  /** Name and UID of its identity, which the claims of a StatefulSet share. */
  readonly whose: string;
  /** Of `createdAt`. */
  readonly seconds: number;
  readonly own: string;
}

const BETWEEN = ",";

/** A claim in memory, of which namespace and name are the key. */
export class ClaimPacking implements Packing<"claim", PackedClaim> {
  readonly #forms = new Interned<Form>();
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

function formOf(stored: Stored<"claim">): Form {
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

function identityOf({ identity }: Form, whose: string, ordinal: number | undefined): Identity {
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
