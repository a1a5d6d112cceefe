// SPDX-License-Identifier: Apache-2.0

import type { ObjectName } from "../../kube/api/resource.ts";
import type { EventInput } from "../../kube/controller/event-recorder.ts";
import type { StepResult } from "./rotator.ts";

/** What the log says; the fields beside it have the particulars. */
export const MESSAGES = {
  missing: "the secret of the certificates is not there; what is served stays",
  served: "certificate served",
  refused: "the certificate in the secret cannot be served; what is served stays",
  stepped: "certificates kept",
} as const;

/** Reasons that nobody wanted: something in the Secret was damaged, or somebody else's. */
const ORDINARY = [
  "there was none",
  "it was due",
  "the authority is a new one",
  "an administrator wants a new one",
];

type Happening =
  | (StepResult & { readonly kind: "done" })["step"]
  | { readonly kind: "missing" }
  | { readonly kind: "failed"; readonly why: string };

/** What people see with `kubectl describe secret`. */
export function noticeOf({ namespace, name }: Required<ObjectName>, happening: Happening): EventInput {
  const regarding = { apiVersion: "v1", kind: "Secret", namespace, name };
  const { reason, note, warns = false } = wordsFor(happening);
  return { regarding, type: warns ? "Warning" : "Normal", reason, action: "KeepingCertificates", note };
}

function wordsFor(happening: Happening): {
  readonly reason: string;
  readonly note: string;
  readonly warns?: boolean;
} {
  switch (happening.kind) {
    case "authority": {
      const then = happening.leaf
        ? "; it signed a certificate"
        : "; it signs once every API server trusts it";
      const note = `a new authority was made: ${happening.why}${then}`;
      return { reason: "AuthorityMade", note, warns: !ORDINARY.includes(happening.why) };
    }
    case "leaf":
      return {
        reason: "CertificateIssued",
        note: `a new certificate was issued: ${happening.why}`,
        warns: !ORDINARY.includes(happening.why),
      };
    case "limit":
      return {
        reason: "AuthorityLimited",
        note: "older authorities of which nobody knew until when they are needed are trusted for as long as a certificate of theirs could last",
      };
    case "retire":
      return {
        reason: "AuthorityRetired",
        note: "older authorities are not trusted any more: nothing of them is served",
      };
    case "trust":
      return {
        reason: "TrustWritten",
        note: "the caBundle of the webhook configurations berth was not that of this secret and was written",
      };
    case "share":
      return {
        reason: "AuthorityShared",
        note: "the authorities beside the certificate were not those that are trusted and were written",
      };
    case "move":
      return {
        reason: "AuthorityMoved",
        note: "the authority's key was taken out of this secret, into one that the webhook may not read",
      };
    case "missing":
      return {
        reason: "SecretMissing",
        note: "there is no such secret; make it again, empty, and berth fills it: helm upgrade does, or kubectl create secret generic",
        warns: true,
      };
    default:
      return { reason: "CertificatesNotKept", note: happening.why, warns: true };
  }
}
