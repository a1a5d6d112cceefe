// SPDX-License-Identifier: Apache-2.0
import type { X509Certificate } from "node:crypto";
import { BerthError, messageOf } from "../../allocator/base/errors.ts";
import { type CertificatePair, readPair } from "../../system/pem/pair.ts";
import { bundleOf, issuerAmong, parseBundle, signerOf } from "./ca-bundle.ts";
import type { ServerNames } from "./issue.ts";
import { textOf, timesOf } from "./retirement.ts";

/** What stands in the Secret that is served: PEM, empty where there is nothing. */
export interface Served {
  /** Authorities that were trusted when it was written. */
  readonly beside: string;
  readonly leaf: CertificatePair;
}

/** What stands in both Secrets, the authority's and the one that is served. */
export interface CertSecret extends Served {
  /** Authorities that are trusted, the newest first; the first one signs. */
  readonly bundle: string;
  readonly authorityKey: string;
  /** The key of an authority lies in the Secret that is served, where older versions had it. */
  readonly mixed: boolean;
  /** What an administrator wants made anew: `leaf`, `authority`, or nothing. */
  readonly rotate: string;
  /** Until when leaves of the older authorities may be served, as `retirement.ts` reads it. */
  readonly retireAfter: string;
}

export interface ObservedCerts {
  /** Undefined: one of the Secrets is not there. */
  readonly kept: CertSecret | undefined;
  /** The caBundle of every entry of each configuration, PEM; undefined: there is no such configuration. */
  readonly trusted: readonly (readonly string[] | undefined)[];
}

/** What one process has seen without a break, by its own monotonic clock. */
export interface ObservedSince {
  /** Fingerprint of the newest authority; empty: there is none. */
  readonly authority: string;
  /** Since when all configurations trust it; undefined: they do not. */
  readonly trustedSince: number | undefined;
  /** Since when the leaf is of it; undefined: it is not. */
  readonly leadsSince: number | undefined;
}

export interface RotationPolicy {
  readonly names: ServerNames;
  readonly leafMs: number;
  /** At least three times `leafMs`. */
  readonly authorityMs: number;
  /** How long API servers and other replicas may lag behind what is written. */
  readonly settleMs: number;
}

interface Now {
  /** Milliseconds since 1970. */
  readonly now: number;
  readonly monotonic: number;
}

interface Retirement {
  /** What `Kept.retireAfter` is then. */
  readonly retireAfter: string;
}

export type Step =
  /** Nothing to do before so many milliseconds are over, or something changes. */
  | { readonly kind: "wait"; readonly ms: number }
  /** Make an authority, trusted beside `others`; with `leaf` it signs one at once, because nobody trusts another. */
  | (Retirement & {
      readonly kind: "authority";
      readonly others: string;
      readonly leaf: boolean;
      readonly why: string;
    })
  /** The newest authority signs a leaf. */
  | (Retirement & { readonly kind: "leaf"; readonly why: string })
  /** Older authorities of which nobody knows until when they are needed get a time. */
  | (Retirement & { readonly kind: "limit" })
  /** Nothing of an older authority is served any more: the rest is trusted. */
  | (Retirement & { readonly kind: "retire"; readonly bundle: string })
  /** Write the bundle into every entry of both configurations. */
  | { readonly kind: "trust"; readonly bundle: string }
  /** Put the bundle beside the certificate that is served. */
  | { readonly kind: "share" }
  /** Take the authority's key out of the Secret that is served, once the other one has it. */
  | { readonly kind: "move" };

/** The part of a life that is left when renewal is due: time to notice that it fails. */
const DUE_AT = 1 / 3;
/** Authorities that are taken over from a Secret that is damaged, or from the configurations. */
const MOST_OTHERS = 8;

/** Continues what was seen before, or begins anew. */
export function observedSinceOf(
  before: ObservedSince | undefined,
  known: ObservedCerts,
  monotonic: number,
): ObservedSince {
  const authorities = parseBundle(known.kept?.bundle ?? "");
  const [newest] = authorities;
  if (newest === undefined) return { authority: "", trustedSince: undefined, leadsSince: undefined };
  const same = before?.authority === newest.fingerprint256 ? before : undefined;
  const trusts = known.trusted.every((bundles) => bundles === undefined || allTrust(bundles, newest));
  const leaf = leafCertificate(known.kept?.leaf);
  const isOfNewest = leaf !== undefined && issuerAmong([newest], leaf) !== undefined;
  return {
    authority: newest.fingerprint256,
    trustedSince: trusts ? (same?.trustedSince ?? monotonic) : undefined,
    leadsSince: isOfNewest ? (same?.leadsSince ?? monotonic) : undefined,
  };
}

/** Whether each of the bundles holds the authority. */
export function allTrust(bundles: readonly string[], authority: X509Certificate): boolean {
  const { fingerprint256 } = authority;
  return bundles.every((bundle) => parseBundle(bundle).some((one) => one.fingerprint256 === fingerprint256));
}

/**
 * The next step towards a certificate that is served, trusted and not due. Pure: any number of replicas may carry it out at
 * any time, if what was read is what is changed. What must hold whatever happens in between: an authority signs only
 * once every API server trusts it, and is trusted until no leaf of it can be served any more.
 */
export function plan(known: ObservedCerts, since: ObservedSince, terms: RotationPolicy, moment: Now): Step {
  const { kept } = known;
  if (kept === undefined) return { kind: "wait", ms: Number.POSITIVE_INFINITY };
  if (kept.mixed) return { kind: "move" };
  const authorities = parseBundle(kept.bundle);
  const newest = signerOf({ cert: authorities[0]?.toString() ?? "", key: kept.authorityKey });
  if (newest === undefined) return replaceAuthority(known, authorities, reasonForAuthority(kept));
  const { now } = moment;
  if (newest.validToDate.getTime() <= now) return replaceAuthority(known, authorities, "it has expired");
  // the clock was ahead by more than it is backdated: until then no API server takes what it signs
  if (newest.validFromDate.getTime() > now)
    return replaceAuthority(known, authorities, "it is not valid yet");
  const bundle = bundleOf(authorities);
  if (kept.beside !== bundle) return { kind: "share" };
  const wrong = known.trusted.some((bundles) => bundles?.some((one) => one !== bundle));
  if (wrong) return { kind: "trust", bundle };
  const at = { kept, authorities, newest, observed: since, terms, moment };
  return planLeaf(at) ?? planRetirement(at) ?? planAuthority(at);
}

/**
 * The certificate of a leaf that can be served: whole, for the names, of one of the authorities.
 * @throws BerthError CERTIFICATE_INVALID for any other, saying why
 */
export function validateServingCert(
  { leaf, bundle }: { readonly leaf: CertificatePair; readonly bundle: string },
  names: ServerNames,
): X509Certificate {
  const certificate = readPair(leaf);
  const missing =
    names.dnsNames.find((name) => certificate.checkHost(name) === undefined) ??
    names.addresses.find((address) => certificate.checkIP(address) === undefined);
  if (missing !== undefined) throw unusable(`the certificate is not for ${missing}`);
  if (issuerAmong(parseBundle(bundle), certificate) === undefined) {
    throw unusable("the certificate is of none of the authorities beside it");
  }
  return certificate;
}

interface At {
  readonly kept: CertSecret;
  readonly authorities: readonly X509Certificate[];
  readonly newest: X509Certificate;
  readonly observed: ObservedSince;
  readonly terms: RotationPolicy;
  readonly moment: Now;
}

function reasonForAuthority(kept: CertSecret): string {
  return isBlank(kept) ? "there was none" : "the authority in the secret cannot be used";
}

function replaceAuthority(known: ObservedCerts, own: readonly X509Certificate[], why: string): Step {
  // leaves that are served somewhere now can be verified by these alone
  const texts = [bundleOf(own), ...known.trusted.flatMap((bundles) => bundles ?? [])];
  const others = bundleOf(parseBundle(texts.join("")).slice(0, MOST_OTHERS));
  return { kind: "authority", others, leaf: others === "", why, retireAfter: "" };
}

function planLeaf(at: At): Step | undefined {
  const { kept, authorities, newest, observed, terms, moment } = at;
  const why = reasonForLeaf(at);
  if (why === undefined) return undefined;
  const leaf = leafCertificate(kept.leaf);
  const succeeds = leaf !== undefined && issuerAmong([newest], leaf) !== undefined;
  // who trusts the leaf that was there, or had nobody else to trust, trusts the next one too
  const { retireAfter } = kept;
  if (succeeds || authorities.length === 1) return { kind: "leaf", retireAfter, why };
  const trustedMs = observed.trustedSince === undefined ? 0 : moment.monotonic - observed.trustedSince;
  if (observed.trustedSince === undefined || trustedMs < terms.settleMs) {
    return { kind: "wait", ms: terms.settleMs - trustedMs };
  }
  const last = Math.max(moment.now + terms.leafMs, leaf?.validToDate.getTime() ?? 0);
  return { kind: "leaf", retireAfter: withTime(retireAfter, authorities.slice(1), last), why };
}

/** Of the one whose leaf is followed. It is written before the next leaf is: somebody may have done so already, and have ended. */
function withTime(retireAfter: string, older: readonly X509Certificate[], last: number): string {
  const times = new Map(timesOf(retireAfter, older));
  const [latest] = older;
  if (latest !== undefined) times.set(latest, Math.max(last, times.get(latest) ?? last));
  return textOf(times);
}

function reasonForLeaf({ kept, newest, terms, moment }: At): string | undefined {
  try {
    const leaf = validateServingCert(kept, terms.names);
    if (issuerAmong([newest], leaf) === undefined) return "the authority is a new one";
    if (kept.rotate !== "" && kept.rotate !== "authority") return "an administrator wants a new one";
    // one that ends with its authority cannot live longer
    const ends = leaf.validToDate.getTime();
    const longer = ends < newest.validToDate.getTime();
    return longer && ends - moment.now <= terms.leafMs * DUE_AT ? "it was due" : undefined;
  } catch (error) {
    return isBlank(kept) ? "there was none" : messageOf(error);
  }
}

/** As long as somebody may serve a leaf of an older authority, that authority stays. */
function planRetirement(at: At): Step | undefined {
  const { kept, authorities, newest, observed, terms, moment } = at;
  const older = authorities.slice(1);
  if (older.length === 0 || kept.rotate === "authority") return undefined;
  const leadsMs = observed.leadsSince === undefined ? 0 : moment.monotonic - observed.leadsSince;
  const times = timesOf(kept.retireAfter, older);
  if (times.size < older.length) {
    // by now nothing is served that they sign, but where somebody has not heard of it yet
    const last = moment.now + terms.leafMs;
    const all = older.map((authority) => [authority, times.get(authority) ?? last] as const);
    return { kind: "limit", retireAfter: textOf(new Map(all)) };
  }
  // both clocks must have gone so far: this host's wall clock may have jumped
  const leftMs = (until: number) => Math.max(terms.settleMs - leadsMs, until - moment.now);
  const staying = new Map([...times].filter(([, until]) => leftMs(until) > 0));
  if (staying.size < times.size) {
    const bundle = bundleOf([newest, ...staying.keys()]);
    return { kind: "retire", bundle, retireAfter: textOf(staying) };
  }
  return { kind: "wait", ms: Math.min(leafDueMs(at), ...[...times.values()].map(leftMs)) };
}

function planAuthority(at: At): Step {
  const { kept, authorities, newest, terms, moment } = at;
  const others = bundleOf(authorities.slice(0, MOST_OTHERS));
  const { retireAfter } = kept;
  if (kept.rotate === "authority") {
    return { kind: "authority", others, leaf: false, why: "an administrator wants a new one", retireAfter };
  }
  const leftMs = newest.validToDate.getTime() - moment.now - terms.authorityMs * DUE_AT;
  if (leftMs <= 0) return { kind: "authority", others, leaf: false, why: "it was due", retireAfter };
  return { kind: "wait", ms: Math.min(leftMs, leafDueMs(at)) };
}

/** Until a leaf that can be served now is due. */
function leafDueMs({ kept, newest, terms, moment }: At): number {
  const ends = leafCertificate(kept.leaf)?.validToDate.getTime() ?? 0;
  const lastsWithAuthority = ends >= newest.validToDate.getTime();
  return ends - moment.now - (lastsWithAuthority ? 0 : terms.leafMs * DUE_AT);
}

function leafCertificate(leaf: CertificatePair | undefined): X509Certificate | undefined {
  try {
    return leaf === undefined ? undefined : readPair(leaf);
  } catch {
    return undefined;
  }
}

/** As the chart makes it: nothing was lost. */
function isBlank({ bundle, authorityKey, leaf }: CertSecret): boolean {
  return [bundle, authorityKey, leaf.cert, leaf.key].every((text) => text.trim() === "");
}

function unusable(message: string): BerthError {
  return new BerthError("CERTIFICATE_INVALID", message);
}
